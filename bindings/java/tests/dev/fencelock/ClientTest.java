package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Clients, leases, errors, and what a hostile host does to them. */
class ClientTest {
    @TempDir static Path directory;

    @Test
    void everyKindOfErrorHasAClassOfItsOwn() {
        String[] codes = new String(Native.errorCodes(), StandardCharsets.UTF_8).split(" ");
        assertTrue(codes.length >= 11);
        for (String code : codes) {
            FencelockException error = Errors.of(code, "text");
            assertEquals(code, error.code());
            assertEquals("text", error.getMessage(), "fell to the default");
            if (!code.equals("INTERNAL")) {
                assertNotEquals(InternalException.class, error.getClass());
            }
        }
    }

    @Test
    void versionsAgree() throws Exception {
        assertEquals(Fencelock.version(), new String(Native.version(), StandardCharsets.UTF_8));
        String pom = Files.readString(Path.of("pom.xml"));
        assertTrue(pom.contains("<version>" + Fencelock.version() + "</version>"));
    }

    @Test
    void aPanicIsAnInternalError() throws Exception {
        InternalException error =
                assertThrows(
                        InternalException.class,
                        () -> Call.await((ticket, out) -> Native.panicForTest(ticket, false, out)));
        assertTrue(error.getMessage().contains("asked for by a test"), error.getMessage());
        CompletableFuture<Object> later =
                Call.async(
                        (ticket, out) -> {
                            byte[] details = Native.panicForTest(ticket, true, out);
                            Native.cancel(ticket);
                            return details;
                        },
                        answer -> null,
                        unwanted -> {});
        ExecutionException failed =
                assertThrows(ExecutionException.class, () -> later.get(20, TimeUnit.SECONDS));
        assertInstanceOf(InternalException.class, failed.getCause());
    }

    @Test
    void madeUpHandlesAreErrors() {
        assertThrows(
                InvalidArgumentException.class,
                () -> Call.await((ticket, out) -> Native.close(ticket, 12345, out)));
        assertThrows(
                InvalidArgumentException.class,
                () -> Call.await((ticket, out) -> Native.acquire(ticket, 12345, 0, -1, out)));
        assertThrows(
                FencelockException.class,
                () -> Call.await((ticket, out) -> Native.release(ticket, -1, out)));
        Native.freeLease(77);
        Native.cancel(Long.MIN_VALUE);
        assertFalse(Native.isHeld(0));
    }

    @Test
    void wrongArgumentsAreRefusedBeforeAnything() {
        try (Fencelock client = Fencelock.connect("memory:")) {
            assertThrows(NullPointerException.class, () -> client.lock(null));
            assertThrows(NullPointerException.class, () -> client.inspect(null));
            assertThrows(NullPointerException.class, () -> client.lock("a").acquire(null));
            assertThrows(NullPointerException.class, () -> Fencelock.connect((String) null));
            assertThrows(UnsupportedException.class, () -> Fencelock.connect("nonsense:"));
            assertThrows(InvalidArgumentException.class, Fencelock::connect);
            InvalidArgumentException negative =
                    assertThrows(
                            InvalidArgumentException.class,
                            () -> client.lock("a").acquire(Duration.ofMillis(-1500)));
            assertTrue(negative.getMessage().contains("-1500 ms"), negative.getMessage());
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void leases(String backend) throws Exception {
        try (Fencelock client = Fencelock.connect(Support.url(backend, directory))) {
            RustLock lock = client.lock("a");
            Lease lease = lock.tryAcquireLease().orElseThrow();
            assertTrue(lock.tryAcquireLease().isEmpty(), "leases are not reentrant");
            assertTrue(lock.tryAcquire().isEmpty());
            assertTrue(lock.tryAcquireAsync().get(20, TimeUnit.SECONDS).isEmpty());
            assertEquals(lease.owner(), client.inspect("a").owner());
            assertTrue(lease.remaining().compareTo(Duration.ofSeconds(5)) > 0);
            lease.check();
            lease.renew();
            lease.release();
            lease.release();
            lease.close();
            assertFalse(lease.isHeld());
            assertFalse(lease.isLost());
            assertEquals(Duration.ZERO, lease.remaining());
            assertThrows(LockLostException.class, lease::check);
            assertThrows(LockLostException.class, lease::renew);
            assertTrue(lease.lost().isCancelled());
            Support.untilFree(client, "a");
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void closingEndsWaitsAndReleases(String backend) throws Exception {
        String url = Support.url(backend, directory);
        try (Fencelock other = Fencelock.connect(url)) {
            Fencelock client = Fencelock.connect(url);
            RustLock lock = client.lock("a");
            lock.lock();
            Support.Threads threads = new Support.Threads();
            for (int i = 0; i < 3; i++) {
                threads.start(() -> assertThrows(ClosedException.class, lock::lock));
            }
            Support.untilQueued(other, "a", 3);
            long start = System.nanoTime();
            client.close();
            Support.assertWithin(Duration.ofMillis(500), Support.since(start));
            client.close();
            assertTrue(client.isClosed());
            threads.join(Support.LIMIT);
            Support.untilFree(other, "a");
            assertThrows(ClosedException.class, () -> client.lock("b").lock());
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void closedDuringCallsFromTwentyThreads(String backend) throws Exception {
        String url = Support.url(backend, directory);
        for (int round = 0; round < 5; round++) {
            Fencelock client = Fencelock.connect(url);
            AtomicInteger calls = new AtomicInteger();
            Support.Threads threads = new Support.Threads();
            for (int number = 0; number < 20; number++) {
                RustLock lock = client.lock("a/" + number % 4);
                threads.start(
                        () -> {
                            while (true) {
                                try (RustLock held = lock.acquire()) {
                                    calls.incrementAndGet();
                                } catch (ClosedException e) {
                                    return;
                                } catch (LockLostException e) {
                                    assertTrue(client.isClosed());
                                }
                            }
                        });
            }
            Support.until(() -> calls.get() > 20);
            client.close();
            threads.join(Support.LIMIT);
        }
    }

    @Test
    void oneLeaseReleasedByTwentyThreads() throws Exception {
        try (Fencelock client = Fencelock.connect("memory:")) {
            for (int round = 0; round < 200; round++) {
                Lease lease = client.lock("a").acquireLease(Duration.ZERO);
                Support.Threads threads = new Support.Threads();
                for (int number = 0; number < 20; number++) {
                    threads.start(lease::release);
                }
                threads.join(Support.LIMIT);
            }
        }
    }

    @Test
    void g2BlockedCallbacksDoNotStopRenewals() throws Exception {
        LockOptions shortly = LockOptions.defaults().ttl(Duration.ofMillis(1500));
        try (Fencelock client = Fencelock.connect(Support.url("redis", directory))) {
            Lease lease = client.lock("a", shortly).acquireLease();
            for (int i = 0; i < 50; i++) {
                client.lock("b" + i)
                        .acquireAsync()
                        .thenAccept(
                                other -> {
                                    long end = System.nanoTime() + 1_900_000_000L;
                                    while (System.nanoTime() < end) {
                                        Thread.onSpinWait();
                                    }
                                });
            }
            Thread.sleep(1900);
            assertTrue(lease.isHeld());
            lease.release();
        }
    }

    @Test
    void g10ABlackHoleDoesNotHoldUpTryLock() throws Exception {
        try (RedisServer server = new RedisServer(directory);
                Fencelock client = Fencelock.connect(server.url)) {
            RustLock lock = client.lock("a");
            lock.lock();
            lock.unlock();
            server.freeze();
            Duration best = Duration.ofHours(1);
            // Of many, because a busy machine may stop all of us for that long.
            for (int i = 0; i < 40 && best.toMillis() >= 100; i++) {
                long start = System.nanoTime();
                assertFalse(lock.tryLock(50, TimeUnit.MILLISECONDS));
                Duration took = Support.since(start);
                best = took.compareTo(best) < 0 ? took : best;
            }
            assertTrue(best.toMillis() >= 50 && best.toMillis() < 100, best.toString());
            long start = System.nanoTime();
            assertThrows(UnavailableException.class, lock::tryLock);
            Support.assertWithin(Duration.ofMillis(2050), Support.since(start));
            server.thaw();
            Support.untilFree(client, "a");
        }
    }

    @Test
    void g2AFrozenServerMeansLostByTheDeadline() throws Exception {
        LockOptions shortly = LockOptions.defaults().ttl(Duration.ofMillis(500));
        try (RedisServer server = new RedisServer(directory);
                Fencelock client = Fencelock.connect(server.url)) {
            Lease lease = client.lock("a", shortly).acquireLease();
            server.freeze();
            long start = System.nanoTime();
            lease.lost().get(20, TimeUnit.SECONDS);
            Support.assertWithin(Duration.ofMillis(500), Support.since(start));
            assertFalse(lease.isHeld());
            assertTrue(lease.isLost());
            start = System.nanoTime();
            assertThrows(LockLostException.class, lease::close);
            Support.assertWithin(Duration.ZERO, Support.since(start));
            server.thaw();
        }
    }

    /** What was logged while it was open. */
    private static final class Log extends Handler {
        private final Logger logger = Logger.getLogger("dev.fencelock");
        private final StringBuffer text = new StringBuffer();

        Log() {
            logger.addHandler(this);
            logger.setUseParentHandlers(false);
        }

        @Override
        public void publish(LogRecord line) {
            Object[] parameters = line.getParameters();
            text.append(java.text.MessageFormat.format(line.getMessage(), parameters)).append('\n');
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            logger.removeHandler(this);
            logger.setUseParentHandlers(true);
        }
    }

    @Test
    void anUnreachableLeaseIsWarnedOfAndNotReleased() throws Exception {
        String url = Support.url("redis", directory);
        Log log = new Log();
        try (Fencelock other = Fencelock.connect(url)) {
            Fencelock client = Fencelock.connect(url);
            WeakReference<Lease> gone = new WeakReference<>(client.lock("a").acquireLease());
            Support.until(
                    () -> {
                        System.gc();
                        return gone.get() == null && log.text.indexOf("lease of lock \"a\"") >= 0;
                    });
            assertEquals(LockInfo.State.HELD, other.inspect("a").state());
            assertEquals(1, client.orphans.size());
            client.close();
            assertEquals(0, client.orphans.size());
            Support.untilFree(other, "a");
        } finally {
            log.close();
        }
    }

    @Test
    void warningsReachTheLogger() throws Exception {
        String url = Support.url("redis", directory);
        Log log = new Log();
        LockOptions fixed = LockOptions.defaults().ttl(Duration.ofMillis(200)).renew(false);
        try (Fencelock client = Fencelock.connect(url)) {
            Lease lease = client.lock("lost/{0}", fixed).acquireLease();
            Support.until(() -> log.text.indexOf("lease lost") >= 0);
            assertTrue(lease.isLost());
            assertTrue(log.text.indexOf("lost/{0}") >= 0, log.text.toString());
        } finally {
            log.close();
        }
    }
}
