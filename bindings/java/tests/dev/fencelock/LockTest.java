package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The contract of {@code java.util.concurrent.locks.Lock}, case by case, on every backend. */
class LockTest {
    private static final Duration SHORT = Duration.ofMillis(100);

    @TempDir static Path directory;
    private Fencelock client;
    private Fencelock other;

    private RustLock open(String backend) {
        String url = Support.url(backend, directory);
        client = Fencelock.connect(url);
        other = Fencelock.connect(url);
        return client.lock("a");
    }

    @AfterEach
    void close() {
        assertFalse(Thread.interrupted());
        other.close();
        client.close();
    }

    private static Support.Threads thread(Support.Work work) {
        Support.Threads threads = new Support.Threads();
        threads.start(work);
        return threads;
    }

    private void assertFree() throws Exception {
        Support.untilFree(client, "a");
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void g1LockExcludesOtherThreadsAndClients(String backend) throws Exception {
        RustLock lock = open(backend);
        lock.lock();
        assertTrue(lock.isHeldByCurrentThread());
        assertFalse(other.lock("a").tryLock());
        thread(
                        () -> {
                            assertFalse(lock.tryLock());
                            assertFalse(lock.isHeldByCurrentThread());
                            assertEquals(0, lock.holdCount());
                            assertThrows(IllegalMonitorStateException.class, lock::token);
                            assertThrows(IllegalMonitorStateException.class, lock::check);
                            assertThrows(IllegalMonitorStateException.class, lock::lost);
                            assertThrows(IllegalMonitorStateException.class, lock::unlock);
                        })
                .join(Support.LIMIT);
        lock.unlock();
        assertFalse(lock.isHeldByCurrentThread());
        assertFree();
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void g3TokensRise(String backend) {
        RustLock lock = open(backend);
        lock.lock();
        long first = lock.token();
        lock.unlock();
        try (RustLock held = other.lock("a").acquire()) {
            assertTrue(Long.compareUnsigned(held.token(), first) > 0);
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void reentrantFiveDeepAcrossObjectsOfOneName(String backend) throws Exception {
        RustLock lock = open(backend);
        RustLock twin = client.lock("a", LockOptions.defaults().ttl(Duration.ofSeconds(5)));
        lock.lock();
        twin.lockInterruptibly();
        assertTrue(lock.tryLock());
        assertTrue(twin.tryLock(0, TimeUnit.SECONDS));
        RustLock fifth = lock.acquire(SHORT);
        assertEquals(5, twin.holdCount());
        assertEquals(lock.token(), twin.token());
        assertEquals(lock.token(), fifth.token());
        assertNotSame(lock, fifth);
        fifth.close();
        fifth.close();
        for (int left = 4; left > 0; left--) {
            assertEquals(left, lock.holdCount());
            assertEquals(LockInfo.State.HELD, other.inspect("a").state());
            (left % 2 == 0 ? lock : twin).unlock();
        }
        assertEquals(0, lock.holdCount());
        assertFree();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void lockIgnoresInterruptsAndRestoresTheFlag(String backend) throws Exception {
        RustLock lock = open(backend);
        Lease lease = other.lock("a").acquireLease();
        Support.Threads threads = new Support.Threads();
        Thread waiter =
                threads.start(
                        () -> {
                            lock.lock();
                            assertTrue(Thread.currentThread().isInterrupted());
                            lock.unlock();
                            assertTrue(Thread.currentThread().isInterrupted());
                        });
        Support.untilQueued(other, "a", 1);
        waiter.interrupt();
        waiter.interrupt();
        // Still in the queue: it takes the lock when that is free.
        assertEquals(1, other.inspect("a").queue().size());
        lease.release();
        threads.join(Support.LIMIT);
        assertFree();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void g7InterruptedWaitsEndAndLeaveNothing(String backend) throws Exception {
        RustLock lock = open(backend);
        try (Lease lease = other.lock("a").acquireLease()) {
            for (Support.Work wait :
                    new Support.Work[] {
                        lock::lockInterruptibly,
                        () -> lock.tryLock(1, TimeUnit.HOURS),
                        () -> {
                            assertThrows(CancelledException.class, lock::acquire);
                            assertTrue(Thread.interrupted());
                            throw new InterruptedException();
                        },
                        () -> {
                            assertThrows(CancelledException.class, lock::acquireLease);
                            assertTrue(Thread.interrupted());
                            throw new InterruptedException();
                        }
                    }) {
                Support.Threads threads = new Support.Threads();
                Thread waiter =
                        threads.start(
                                () -> {
                                    assertThrows(InterruptedException.class, wait::run);
                                    assertFalse(Thread.currentThread().isInterrupted());
                                    assertEquals(0, lock.holdCount());
                                });
                Support.untilQueued(other, "a", 1);
                long start = System.nanoTime();
                waiter.interrupt();
                threads.join(Support.LIMIT);
                Support.assertWithin(Duration.ofMillis(50), Support.since(start));
                Support.untilQueued(other, "a", 0);
            }
            assertTrue(lease.isHeld());
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void interruptedBeforeTheCall(String backend) throws Exception {
        RustLock lock = open(backend);
        for (Support.Work take :
                new Support.Work[] {
                    lock::lockInterruptibly, () -> lock.tryLock(1, TimeUnit.SECONDS)
                }) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, take::run);
            assertFalse(Thread.interrupted());
        }
        Thread.currentThread().interrupt();
        assertThrows(CancelledException.class, lock::acquire);
        assertTrue(Thread.interrupted());
        assertFree();
        Thread.currentThread().interrupt();
        lock.lock();
        assertTrue(Thread.interrupted());
        Thread.currentThread().interrupt();
        lock.unlock();
        assertTrue(Thread.interrupted());
        Thread.currentThread().interrupt();
        assertTrue(lock.tryLock());
        lock.unlock();
        assertTrue(Thread.interrupted());
        assertFree();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void timedTryLockWaitsOnlyWhatItMay(String backend) throws Exception {
        RustLock lock = open(backend);
        assertTrue(lock.tryLock(Long.MIN_VALUE, TimeUnit.NANOSECONDS));
        lock.unlock();
        assertTrue(lock.tryLock(Long.MAX_VALUE, TimeUnit.DAYS), "above the maximum = clamped");
        thread(
                        () -> {
                            assertFalse(lock.tryLock(0, TimeUnit.SECONDS));
                            assertFalse(lock.tryLock(-5, TimeUnit.SECONDS));
                            long start = System.nanoTime();
                            assertFalse(lock.tryLock(100, TimeUnit.MILLISECONDS));
                            assertTrue(Support.since(start).compareTo(SHORT) >= 0);
                            Support.assertWithin(Duration.ofMillis(150), Support.since(start));
                            assertThrows(LockTimeoutException.class, () -> lock.acquire(SHORT));
                        })
                .join(Support.LIMIT);
        Support.Threads waiter = thread(() -> assertTrue(lock.tryLock(20, TimeUnit.SECONDS)));
        Support.untilQueued(other, "a", 1);
        lock.unlock();
        waiter.join(Support.LIMIT);
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void conditionsAreNotSupported(String backend) {
        RustLock lock = open(backend);
        assertThrows(UnsupportedOperationException.class, lock::newCondition);
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void closeGivesBackThatHoldOnce(String backend) throws Exception {
        RustLock lock = open(backend);
        lock.close();
        try (RustLock outer = lock.acquire()) {
            RustLock inner = lock.acquire();
            assertEquals(2, lock.holdCount());
            thread(
                            () -> {
                                assertThrows(IllegalMonitorStateException.class, inner::unlock);
                                inner.close();
                                inner.close();
                            })
                    .join(Support.LIMIT);
            assertEquals(1, lock.holdCount());
            assertThrows(LockLostException.class, inner::check);
            outer.check();
            lock.close();
            outer.unlock();
            assertEquals(0, lock.holdCount());
            assertFree();
        }
        RustLock first = lock.acquire();
        first.close();
        RustLock second = lock.acquire();
        first.close();
        assertTrue(second.isHeldByCurrentThread());
        assertTrue(Long.compareUnsigned(second.token(), first.token()) > 0);
        second.close();
        assertFree();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void unlockGivesBackWhatLockTookAndCloseWhatAcquireTook(String backend) throws Exception {
        RustLock lock = open(backend);
        try (RustLock held = lock.acquire()) {
            held.lock();
            held.unlock();
            held.check();
            assertEquals(1, lock.holdCount());
        }
        assertFree();

        lock.lock();
        RustLock held = lock.acquire();
        lock.unlock();
        assertTrue(lock.isHeldByCurrentThread());
        held.close();
        assertFree();

        RustLock outer = lock.acquire();
        RustLock inner = lock.acquire();
        inner.close();
        assertThrows(IllegalMonitorStateException.class, inner::unlock);
        assertTrue(lock.isHeldByCurrentThread());
        outer.unlock();
        assertFree();
        outer.close();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void theCloseOfTheClientIsNoLoss(String backend) throws Exception {
        RustLock lock = open(backend);
        try (RustLock outer = lock.acquire();
                RustLock inner = outer.acquire()) {
            assertEquals(2, inner.holdCount());
            client.close();
        }
        Support.untilFree(other, "a");
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void g10ATimeoutIsCheckedAlsoWhereTheLockIsHeld(String backend) {
        RustLock lock = open(backend);
        lock.lock();
        Duration negative = Duration.ofMillis(-1);
        assertThrows(InvalidArgumentException.class, () -> lock.acquire(negative));
        assertEquals(1, lock.holdCount());
        lock.unlock();
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void aLostLock(String backend) throws Exception {
        RustLock lock = open(backend);
        lock.lock();
        RustLock again = lock.acquire();
        CompletableFuture<Void> lost = lock.lost();
        assertSame(lost, again.lost());
        assertTrue(other.forceRelease("a"));
        // The watchdog finds out at its next renewal, at ttl/3; asking is faster.
        Lease lease = new LeaseOf(lock).lease;
        assertThrows(LockLostException.class, lease::renew);
        lost.get(20, TimeUnit.SECONDS);
        assertFalse(lock.isHeldByCurrentThread());
        assertEquals(2, lock.holdCount());
        assertThrows(LockLostException.class, lock::check);
        assertThrows(LockLostException.class, lock::lock, "entering again");
        assertThrows(LockLostException.class, lock::tryLock);
        assertThrows(LockLostException.class, again::close);
        assertThrows(LockLostException.class, lock::unlock);
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        lock.lock();
        lock.unlock();
    }

    /** The lease below a lock that this thread holds. */
    private final class LeaseOf {
        final Lease lease;

        LeaseOf(RustLock lock) {
            lease = client.holdings.latest(lock.name()).lease();
        }
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void aBodyThatFailsOnALostLockGetsTheLossAsSuppressed(String backend) {
        RustLock lock = open(backend);
        IllegalStateException body =
                assertThrows(
                        IllegalStateException.class,
                        () -> {
                            try (RustLock held = lock.acquire()) {
                                other.forceRelease("a");
                                assertThrows(
                                        LockLostException.class, new LeaseOf(held).lease::renew);
                                throw new IllegalStateException("the body's");
                            }
                        });
        assertEquals(LockLostException.class, body.getSuppressed()[0].getClass());
    }

    @ParameterizedTest
    @MethodSource("dev.fencelock.Support#backends")
    void g7FuturesCancelTheirAcquire(String backend) throws Exception {
        RustLock lock = open(backend);
        Lease lease = lock.acquireAsync().get(20, TimeUnit.SECONDS);
        assertFalse(lock.isHeldByCurrentThread(), "no thread owns a lease");
        CompletableFuture<Void> lost = lease.lost();
        CompletableFuture<Lease> cancelled = lock.acquireAsync();
        CompletableFuture<Lease> timed = lock.acquireAsync(Duration.ofMinutes(1));
        CompletableFuture<Lease> behind = lock.acquireAsync();
        AtomicReference<Thread> ranOn = new AtomicReference<>();
        CountDownLatch never = new CountDownLatch(1);
        behind.thenAccept(
                ignored -> {
                    ranOn.set(Thread.currentThread());
                    try {
                        never.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
        behind.thenAccept(
                ignored -> {
                    throw new IllegalStateException("a callback that throws");
                });
        Support.untilQueued(other, "a", 3);
        assertTrue(cancelled.cancel(true));
        timed.orTimeout(1, TimeUnit.MILLISECONDS);
        Support.untilQueued(other, "a", 1);
        assertTrue(timed.isCompletedExceptionally());
        lease.releaseAsync().get(20, TimeUnit.SECONDS);
        // Not get() yet: it would run what is attached, as that of every CompletableFuture.
        Support.until(() -> ranOn.get() != null);
        Lease next = behind.get();
        // The callback that blocks holds up nobody.
        assertThrows(CancellationException.class, () -> lost.get(20, TimeUnit.SECONDS));
        next.release();
        lock.acquireLease(Support.LIMIT).release();
        never.countDown();
        assertFree();
    }
}
