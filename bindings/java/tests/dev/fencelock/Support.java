package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** What several tests need. */
final class Support {
    /** Until something that should happen at once counts as not happening. Machines are busy. */
    static final Duration LIMIT = Duration.ofSeconds(20);

    /** How much later than it should a busy machine may let something happen. */
    static final Duration BUSY = Duration.ofMillis(500);

    private Support() {}

    static List<String> backends() {
        return List.of("memory", "file", "redis", "mongodb", "zookeeper");
    }

    /** Those that several processes can share. */
    static List<String> shared() {
        return List.of("file", "redis", "mongodb", "zookeeper");
    }

    /** The URL of the server that the environment names. */
    static String server(String backend) {
        String variable = "FENCELOCK_TEST_" + backend.toUpperCase() + "_URL";
        String url = System.getenv(variable);
        assertTrue(url != null && !url.isEmpty(), variable + " is not set: tests/services/run all …");
        return url;
    }

    static String withQuery(String url, String query) {
        return url + (url.contains("?") ? "&" : "?") + query;
    }

    /** A URL with an empty space of its own. */
    static String url(String backend, Path directory) {
        String id = UUID.randomUUID().toString();
        return switch (backend) {
            case "memory" -> "memory:" + id;
            case "file" -> "file://" + directory.resolve("locks-" + id);
            case "redis" -> withQuery(server(backend), "fl.prefix=java-" + id + ":");
            case "mongodb" -> withQuery(server(backend), "fl.collection=fencelock." + id);
            case "zookeeper" -> withQuery(server(backend), "fl.root=/java-" + id);
            default -> fail(backend);
        };
    }

    /** Returns as soon as the condition is true. */
    static void until(Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!condition.call()) {
            assertTrue(System.nanoTime() < end, "the expected state never came");
            Thread.sleep(2);
        }
    }

    static void untilQueued(Fencelock client, String name, int count) throws Exception {
        until(() -> client.inspect(name).queue().size() == count);
    }

    static void untilFree(Fencelock client, String name) throws Exception {
        until(
                () -> {
                    LockInfo info = client.inspect(name);
                    return info.state() == LockInfo.State.FREE && info.queue().isEmpty();
                });
    }

    static Duration since(long start) {
        return Duration.ofNanos(System.nanoTime() - start);
    }

    /** Until it has effect: on a busy machine, a server could answer before it stops. */
    static void signal(Process process, String name) throws Exception {
        assertEquals(0, run("kill", "-" + name, Long.toString(process.pid())));
        while (name.equals("STOP") && !hasStopped(process.pid())) {
            Thread.onSpinWait();
        }
    }

    private static boolean hasStopped(long pid) throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/" + pid + "/task"))) {
            for (Path task : tasks.toList()) {
                String stat = Files.readString(task.resolve("stat"));
                if (stat.charAt(stat.lastIndexOf(')') + 2) != 'T') {
                    return false;
                }
            }
        }
        return true;
    }

    static void assertWithin(Duration limit, Duration found) {
        Duration most = limit.plus(BUSY);
        assertTrue(found.compareTo(most) < 0, () -> found + " is more than " + limit);
    }

    @FunctionalInterface
    interface Work {
        void run() throws Exception;
    }

    /** Threads that all run to their end; the first thing that failed in one of them is thrown. */
    static final class Threads {
        private final List<Thread> threads = new ArrayList<>();
        private final List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());

        Thread start(Work work) {
            Thread thread =
                    new Thread(
                            () -> {
                                try {
                                    work.run();
                                } catch (Throwable e) {
                                    failed.add(e);
                                }
                            });
            threads.add(thread);
            thread.start();
            return thread;
        }

        void join(Duration limit) throws Exception {
            long end = System.nanoTime() + limit.toNanos();
            for (Thread thread : threads) {
                long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                thread.join(Math.max(1, left));
                assertTrue(!thread.isAlive(), "a thread hangs");
            }
            if (!failed.isEmpty()) {
                throw new AssertionError(failed.size() + " threads failed", failed.get(0));
            }
        }
    }

    /** A JVM of its own that runs one of the programs of {@link Programs}, talked to by lines. */
    static final class Program implements AutoCloseable {
        final Process process;
        private final BufferedReader output;

        Program(String... arguments) throws IOException {
            this(System.getProperty("java.class.path"), List.of(), "dev.fencelock.Programs", arguments);
        }

        Program(String classPath, List<String> options, String main, String... arguments)
                throws IOException {
            List<String> command = new ArrayList<>();
            command.add(java("java"));
            // It starts faster, and there are many.
            command.add("-XX:TieredStopAtLevel=1");
            command.add("-XX:+UseSerialGC");
            command.add("--enable-native-access=ALL-UNNAMED");
            command.addAll(options);
            if (main != null) {
                command.addAll(List.of("-cp", classPath, main));
            }
            command.addAll(List.of(arguments));
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().remove("FENCELOCK_URL");
            process = builder.start();
            output = process.inputReader(StandardCharsets.UTF_8);
        }

        String line() throws IOException {
            return output.readLine();
        }

        void say(String line) throws IOException {
            process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().flush();
        }

        void signal(String name) throws Exception {
            Support.signal(process, name);
        }

        /** Its last output, once it has ended quietly with this code. */
        String end(int code) throws Exception {
            String rest = String.join("\n", output.lines().toList());
            String errors =
                    String.join(
                            "\n",
                            new BufferedReader(new InputStreamReader(process.getErrorStream()))
                                    .lines()
                                    .toList());
            assertTrue(process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS), "it hangs");
            assertEquals("", errors);
            assertEquals(code, process.exitValue());
            return rest;
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }

    static String java(String tool) {
        return System.getProperty("java.home") + File.separator + "bin" + File.separator + tool;
    }

    static int run(String... command) throws Exception {
        Process process = new ProcessBuilder(command).inheritIO().start();
        assertTrue(process.waitFor(60, TimeUnit.SECONDS), () -> String.join(" ", command));
        return process.exitValue();
    }
}
