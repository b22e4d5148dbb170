package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The end of a JVM with something in flight: quick, quiet, code 0, and leases are released. */
class ExitTest {
    @TempDir static Path directory;

    static Stream<Arguments> programs() {
        Stream<Arguments> all =
                Stream.of("held", "lease", "forgotten", "renewals", "waits", "working", "lost", "exit")
                        .map(program -> Arguments.of(program, "redis"));
        Stream<Arguments> elsewhere =
                Stream.of("file", "mongodb", "zookeeper")
                        .map(backend -> Arguments.of("waits", backend));
        return Stream.concat(all, elsewhere);
    }

    @ParameterizedTest
    @MethodSource("programs")
    void g7TheJvmExitsByItselfAndReleases(String program, String backend) throws Exception {
        String url = Support.url(backend, directory);
        try (Fencelock client = Fencelock.connect(url);
                Support.Program jvm = new Support.Program(program, url, "a")) {
            if (program.equals("forgotten")) {
                // It says so, unless the JVM is gone before.
                jvm.process.getErrorStream().readAllBytes();
            }
            String output = jvm.end(0);
            long ended = System.currentTimeMillis();
            long took = ended - Long.parseLong(output.substring(output.lastIndexOf('\n') + 1));
            // The JVM's own end is a part of it.
            assertTrue(took < 1500, took + " ms");
            Support.untilFree(client, "a");
            Support.until(() -> client.list().isEmpty());
        }
    }

    @Test
    void g7AHookOfTheUserCanStillUnlock() throws Exception {
        String url = Support.url("redis", directory);
        try (Support.Program jvm = new Support.Program("hook", url, "a")) {
            assertTrue(jvm.end(0).endsWith("unlocked"));
        }
    }

    @Test
    void g7ASignalReleases() throws Exception {
        String url = Support.url("redis", directory);
        try (Fencelock client = Fencelock.connect(url);
                Support.Program jvm = new Support.Program("sleeping", url, "a")) {
            assertEquals("held", jvm.line());
            jvm.signal("TERM");
            jvm.end(128 + 15);
            Support.untilFree(client, "a");
        }
    }

    @Test
    void whileConnectingToASilentServer() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            // An accept hears no interrupt, so no timeout of JUnit either.
            silent.setSoTimeout((int) Support.LIMIT.toMillis());
            String url = "redis://127.0.0.1:" + silent.getLocalPort() + "/";
            try (Support.Program jvm = new Support.Program("connecting", url, "a");
                    Socket connection = silent.accept()) {
                assertTrue(connection.isConnected());
                jvm.say("now");
                long took = -Long.parseLong(jvm.end(0)) + System.currentTimeMillis();
                assertTrue(took < 1500, took + " ms");
            }
        }
    }

    @Test
    void g2AStoppedProcessSaysLostFirstThing() throws Exception {
        String url = Support.url("redis", directory);
        try (Fencelock client = Fencelock.connect(url);
                Support.Program jvm = new Support.Program("stopped", url, "a")) {
            long token = Long.parseUnsignedLong(jvm.line());
            jvm.signal("STOP");
            long start = System.nanoTime();
            Lease lease = client.lock("a").acquireLease(Support.LIMIT);
            // G4: ttl + 1 s.
            Support.assertWithin(Duration.ofMillis(1500), Support.since(start));
            assertTrue(Long.compareUnsigned(lease.token(), token) > 0);
            long left = 1250 - Support.since(start).toMillis();
            Thread.sleep(Math.max(0, left));
            jvm.signal("CONT");
            assertEquals("false true", jvm.line());
            assertTrue(lease.isHeld());
            lease.release();
        }
    }

    @Test
    void g4AKilledHolderBlocksForItsTtlAtMost() throws Exception {
        String url = Support.url("redis", directory);
        try (Fencelock client = Fencelock.connect(url);
                Support.Program jvm = new Support.Program("stopped", url, "a")) {
            jvm.line();
            jvm.signal("KILL");
            long start = System.nanoTime();
            client.lock("a").acquireLease(Support.LIMIT).release();
            Support.assertWithin(Duration.ofMillis(1500), Support.since(start));
        }
    }

    @Test
    void onlyDaemonThreadsAreOurs() throws Exception {
        try (Fencelock client = Fencelock.connect("memory:")) {
            client.lock("a").acquireLease().lost().cancel(true);
            List<Thread> ours =
                    Thread.getAllStackTraces().keySet().stream()
                            .filter(thread -> thread.getName().startsWith("fencelock"))
                            .toList();
            assertTrue(!ours.isEmpty());
            assertTrue(ours.stream().allMatch(Thread::isDaemon));
        }
    }
}
