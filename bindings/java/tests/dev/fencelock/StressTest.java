package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Many threads, many calls: no update is lost, and nothing is left. */
class StressTest {
    private static final Duration LONG = Duration.ofMinutes(4);

    @TempDir static Path directory;

    // Handles are counted for the whole process: the collector may free those of other tests meanwhile.

    /** What the lock guards; nothing in it is atomic. */
    private int counter;

    @ParameterizedTest
    @ValueSource(strings = {"memory", "redis"})
    void g1TwoHundredThreadsOnOneLock(String backend) throws Exception {
        try (Fencelock client = Fencelock.connect(Support.url(backend, directory))) {
            RustLock lock = client.lock("a");
            long handles = Native.openHandles();
            Support.Threads threads = new Support.Threads();
            for (int thread = 0; thread < 200; thread++) {
                threads.start(
                        () -> {
                            for (int i = 0; i < 100; i++) {
                                lock.lock();
                                try {
                                    counter++;
                                } finally {
                                    lock.unlock();
                                }
                            }
                        });
            }
            threads.join(LONG);
            assertEquals(20_000, counter);
            Support.until(() -> Native.openHandles() <= handles);
            Support.untilFree(client, "a");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"memory", "file", "redis", "mongodb", "zookeeper"})
    void g7InterruptStormLeavesNothing(String backend) throws Exception {
        try (Fencelock client = Fencelock.connect(Support.url(backend, directory))) {
            RustLock lock = client.lock("a");
            long handles = Native.openHandles();
            Support.Threads threads = new Support.Threads();
            int[] taken = new int[1];
            List<Thread> workers =
                    java.util.stream.IntStream.range(0, 20)
                            .mapToObj(
                                    number ->
                                            threads.start(
                                                    () -> {
                                                        for (int i = 0; i < 15; i++) {
                                                            if (take(lock, number % 3)) {
                                                                counter++;
                                                                taken[0]++;
                                                                lock.unlock();
                                                            }
                                                        }
                                                    }))
                            .toList();
            Random random = new Random(7);
            while (workers.stream().anyMatch(Thread::isAlive)) {
                workers.get(random.nextInt(workers.size())).interrupt();
                Thread.sleep(0, 300_000);
            }
            threads.join(LONG);
            assertEquals(taken[0], counter);
            assertTrue(counter > 0);
            Support.untilFree(client, "a");
            Support.until(() -> Native.openHandles() <= handles);
        }
    }

    /** Were the waits inside native code, no more could wait than the machine has processors. */
    @ParameterizedTest
    @ValueSource(strings = {"memory", "redis"})
    @EnabledForJreRange(min = JRE.JAVA_21)
    void waitsOfVirtualThreadsPinNoCarrier(String backend) throws Exception {
        // Of Java 21, and this is compiled for 17.
        ExecutorService virtual =
                (ExecutorService)
                        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        try (Fencelock client = Fencelock.connect(Support.url(backend, directory))) {
            RustLock lock = client.lock("a");
            lock.lock();
            List<Future<?>> waits = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                waits.add(
                        virtual.submit(
                                () -> {
                                    lock.lock();
                                    try {
                                        counter++;
                                    } finally {
                                        lock.unlock();
                                    }
                                }));
            }
            Support.untilQueued(client, "a", 200);
            lock.unlock();
            for (Future<?> wait : waits) {
                wait.get(60, TimeUnit.SECONDS);
            }
            assertEquals(200, counter);
        } finally {
            virtual.shutdown();
        }
    }

    private static boolean take(RustLock lock, int way) {
        try {
            switch (way) {
                case 0 -> lock.lock();
                case 1 -> lock.lockInterruptibly();
                default -> {
                    return lock.tryLock(30, TimeUnit.SECONDS);
                }
            }
            return true;
        } catch (InterruptedException e) {
            return false;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"memory", "file", "redis", "mongodb", "zookeeper"})
    void g7CancelledAtRandomMoments(String backend) throws Exception {
        // So that some come while a request is under way, and some too late.
        int latest = backend.equals("mongodb") || backend.equals("zookeeper") ? 8_000_000 : 2_000_000;
        try (Fencelock client = Fencelock.connect(Support.url(backend, directory))) {
            RustLock lock = client.lock("a");
            long handles = Native.openHandles();
            Random random = new Random(11);
            int cancelled = 0;
            for (int i = 0; i < 300; i++) {
                // Every other one queues, and its cancellation meets the hand-off.
                Lease holder = i % 2 == 0 ? null : lock.acquireLease(Support.LIMIT);
                CompletableFuture<Lease> future = lock.acquireAsync();
                spin(random.nextInt(latest));
                CompletableFuture<Void> release = null;
                if (holder != null) {
                    release = holder.releaseAsync();
                    spin(random.nextInt(latest / 10));
                }
                if (future.cancel(true)) {
                    cancelled++;
                } else {
                    future.get().release();
                }
                if (release != null) {
                    release.get(20, TimeUnit.SECONDS);
                }
            }
            assertTrue(cancelled > 0);
            Support.untilFree(client, "a");
            lock.acquireLease(Support.LIMIT).release();
            Support.until(() -> Native.openHandles() <= handles);
        }
    }

    private static void spin(int nanos) {
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
    }

    /** Bytes of this process that are in memory. */
    private static long resident() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
            }
        }
        throw new AssertionError("no VmRSS");
    }

    private static void rounds(Fencelock client, int count, int first) {
        for (int i = first; i < first + count; i++) {
            try (RustLock lock = client.lock("name-" + i).acquire()) {
                lock.check();
            }
        }
    }

    @Test
    void memoryIsFlatOverDistinctNames() throws Exception {
        String given = System.getenv("FENCELOCK_TEST_ROUNDS");
        int rounds = given == null ? 100_000 : Integer.parseInt(given);
        try (Fencelock client = Fencelock.connect("memory:")) {
            rounds(client, rounds / 2, 0);
            System.gc();
            long before = resident();
            long start = System.nanoTime();
            rounds(client, rounds / 2, rounds);
            System.gc();
            long grown = (resident() - before) / 1024;
            System.out.printf(
                    "%d rounds: %d KiB more, %.1f us each%n",
                    rounds, grown, Support.since(start).toNanos() / 1e3 / (rounds / 2));
            assertTrue(grown < 40 * 1024, grown + " KiB");
            // The collector frees lock objects; leases are freed by their release.
            Support.until(
                    () -> {
                        System.gc();
                        return Native.openHandles() < 100;
                    });
        }
    }
}
