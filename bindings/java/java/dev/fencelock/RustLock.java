package dev.fencelock;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * A distributed lock: a {@link Lock} that all processes share. It drops in where a {@code
 * ReentrantLock}, a Redisson {@code RLock} or a hand-written {@code Lock} stood.
 *
 * <p>It is owned by client, name and thread, and reentrant: the count belongs to the client, so two
 * objects of one name agree. Threads of one JVM exclude each other as those of different JVMs do.
 *
 * <pre>{@code
 * RustLock lock = client.lock("orders/42");
 * lock.lock();
 * try {
 *     update(lock.token());
 * } finally {
 *     lock.unlock();
 * }
 *
 * try (RustLock held = lock.acquire(Duration.ofSeconds(5))) {
 *     update(held.token());
 * }
 * }</pre>
 *
 * <p>Beside the exceptions of each method, all that take the lock throw {@link
 * UnavailableException} when the backend never answered within the connect timeout or, once queued,
 * not for 30 s; {@link AuthFailedException}, {@link ConflictException} and {@link
 * UnsupportedException} as the backend says; and {@link ClosedException}. Then nothing is left
 * behind.
 */
public final class RustLock implements Lock, AutoCloseable {
    /** The core's longest wait. The contract of {@link Lock} knows no wait that is too long. */
    private static final Duration LONGEST_WAIT = Duration.ofDays(3650);

    private final NativeLock lock;
    // What acquire() returned has one; what lock() of the client returned has none.
    private final Holdings.Hold hold;

    RustLock(NativeLock lock, Holdings.Hold hold) {
        this.lock = lock;
        this.hold = hold;
    }

    /**
     * The name.
     *
     * @return the name
     */
    public String name() {
        return lock.name;
    }

    // The contract of java.util.concurrent.locks.Lock.

    /**
     * Waits for the lock, for ever if need be. An interrupt does not end the wait; the thread's flag
     * is set when it returns.
     *
     * @throws LockLostException if this thread had the lock and lost it
     */
    @Override
    public void lock() {
        if (holdings().again(lock.name, false) == null) {
            hold(lock.lease(Call.await(lock.acquire(null))), false);
        }
    }

    /**
     * Waits for the lock, unless the thread is interrupted.
     *
     * @throws InterruptedException if it is interrupted, or was before; nothing is left behind
     * @throws LockLostException if this thread had the lock and lost it
     */
    @Override
    public void lockInterruptibly() throws InterruptedException {
        takeInterruptibly(null);
    }

    /**
     * Takes the lock if it is free and nobody waits for it, or if this thread has it. One request;
     * it never queues.
     *
     * @return whether this thread has it now
     * @throws LockLostException if this thread had the lock and lost it
     */
    @Override
    public boolean tryLock() {
        if (holdings().again(lock.name, false) != null) {
            return true;
        }
        Call.Answer answer = Call.await(lock.tryAcquire());
        if (answer.value() == 0) {
            return false;
        }
        hold(lock.lease(answer), false);
        return true;
    }

    /**
     * Waits for the lock for some time. It returns by then + 50 ms, whatever the server does.
     *
     * @param time how long; zero or less is one attempt, which can succeed
     * @param unit the unit of {@code time}
     * @return whether this thread has it now
     * @throws InterruptedException if it is interrupted, or was before; nothing is left behind
     * @throws LockLostException if this thread had the lock and lost it
     */
    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        try {
            takeInterruptibly(limit(time, unit));
            return true;
        } catch (LockTimeoutException e) {
            return false;
        }
    }

    private static Duration limit(long time, TimeUnit unit) {
        if (time <= 0) {
            return Duration.ZERO;
        }
        return unit.toDays(time) >= LONGEST_WAIT.toDays()
                ? LONGEST_WAIT
                : Duration.of(time, unit.toChronoUnit());
    }

    private void takeInterruptibly(Duration timeout) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (holdings().again(lock.name, false) == null) {
            hold(lock.lease(Call.awaitInterruptibly(lock.acquire(timeout))), false);
        }
    }

    /**
     * Gives one hold of this thread back; with the last one the lock is released and handed to the
     * next contender. It is the newest that {@link #lock()} and the like took; what {@link #acquire()}
     * returned is left to its own {@link #close}, but for this very object.
     *
     * @throws IllegalMonitorStateException if this thread does not hold the lock
     * @throws LockLostException if the lock was lost before
     * @throws UnavailableException when the backend does not answer; the hold is given back all the
     *     same, and the release goes on in the background until the deadline
     */
    @Override
    public void unlock() {
        Holdings.Hold ours = holdings().toUnlock(lock.name, hold);
        if (ours == null || !giveBack(ours, false)) {
            throw notHeld();
        }
    }

    /**
     * Not supported: nobody could signal a condition of another process.
     *
     * @return never
     * @throws UnsupportedOperationException always
     */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("a distributed lock has no conditions");
    }

    // Blocks.

    /**
     * Waits for the lock, for ever if need be.
     *
     * @return a lock object whose {@link #close} gives back exactly this hold, once
     * @throws CancelledException if the thread is interrupted; its flag is set, and nothing is left
     *     behind
     * @throws LockLostException if this thread had the lock and lost it
     */
    public RustLock acquire() {
        return acquireWithin(null);
    }

    /**
     * Waits for the lock for some time. It returns by then + 50 ms, whatever the server does.
     *
     * @param timeout 0 to 10 years; zero is one attempt, which can succeed
     * @return a lock object whose {@link #close} gives back exactly this hold, once
     * @throws LockTimeoutException when the time is over
     * @throws CancelledException if the thread is interrupted; its flag is set, and nothing is left
     *     behind
     * @throws LockLostException if this thread had the lock and lost it
     * @throws InvalidArgumentException if the timeout is negative or too long
     */
    public RustLock acquire(Duration timeout) {
        return acquireWithin(NativeLock.checked(Objects.requireNonNull(timeout, "timeout")));
    }

    private RustLock acquireWithin(Duration timeout) {
        Holdings.Hold again = holdings().again(lock.name, true);
        return new RustLock(
                lock,
                again != null ? again : hold(lock.lease(Call.awaitOrCancel(lock.acquire(timeout))), true));
    }

    /**
     * Takes the lock if it is free and nobody waits for it, or if this thread has it. One request;
     * it never queues.
     *
     * @return a lock object whose {@link #close} gives back exactly this hold, or nothing
     * @throws CancelledException if the thread is interrupted
     * @throws LockLostException if this thread had the lock and lost it
     */
    public Optional<RustLock> tryAcquire() {
        Holdings.Hold again = holdings().again(lock.name, true);
        if (again != null) {
            return Optional.of(new RustLock(lock, again));
        }
        Call.Answer answer = Call.awaitOrCancel(lock.tryAcquire());
        return answer.value() == 0
                ? Optional.empty()
                : Optional.of(new RustLock(lock, hold(lock.lease(answer), true)));
    }

    /**
     * Gives back the hold that this object came with, once, from any thread; of no effect on a lock
     * object that no {@code acquire} returned. Waits for no I/O when the lease is lost, and does not
     * fail when the backend does not answer; the release then goes on in the background until the
     * deadline, and is logged.
     *
     * @throws LockLostException when the lease was lost; where the body of the {@code try} block has
     *     failed, that is added to its exception as a suppressed one
     */
    @Override
    public void close() {
        if (hold != null) {
            giveBack(hold, true);
        }
    }

    private boolean giveBack(Holdings.Hold ours, boolean leavingBlock) {
        boolean[] last = new boolean[1];
        if (!ours.giveBack(last)) {
            return false;
        }
        if (!last[0]) {
            // No other end is told: the rest may have been given back just now, or the client closed.
            if (ours.lease().isLost()) {
                ours.lease().check();
            }
        } else if (leavingBlock) {
            ours.lease().close();
        } else {
            ours.lease().release();
        }
        return true;
    }

    // The held lock.

    /**
     * Whether this thread holds the lock now. Computed from the clock, without I/O.
     *
     * @return false also when the lease was lost
     */
    public boolean isHeldByCurrentThread() {
        Holdings.Hold latest = holdings().latest(lock.name);
        return latest != null && latest.lease().isHeld();
    }

    /**
     * How often this thread has taken the lock and not given it back.
     *
     * @return zero when it does not hold it
     */
    public int holdCount() {
        return holdings().count(lock.name);
    }

    /**
     * The fencing token of the lease; see {@link Lease#token}. Of what {@code acquire} returned, it
     * is that lease's, for ever.
     *
     * @return an unsigned number; see {@link Long#compareUnsigned}
     * @throws IllegalMonitorStateException if this thread does not hold the lock
     */
    public long token() {
        return lease().token();
    }

    /**
     * For use between two steps of the work. No I/O.
     *
     * @throws LockLostException when the lease was lost, or this hold was given back
     * @throws IllegalMonitorStateException if this thread does not hold the lock
     */
    public void check() {
        if (hold != null && hold.isGivenBack()) {
            throw new LockLostException("lock \"" + lock.name + "\": this hold was given back");
        }
        lease().check();
    }

    /**
     * A future that completes when the lease is lost; see {@link Lease#lost}.
     *
     * @return the future, the same one for all callers until somebody cancels it
     * @throws IllegalMonitorStateException if this thread does not hold the lock
     */
    public CompletableFuture<Void> lost() {
        return lease().lost();
    }

    private Lease lease() {
        Holdings.Hold ours = hold != null ? hold : holdings().latest(lock.name);
        if (ours == null) {
            throw notHeld();
        }
        return ours.lease();
    }

    // Leases: no thread owns them, and they are not reentrant.

    /**
     * Waits for the lock, for ever if need be, and gives it as a lease that no thread owns.
     *
     * @return a lease of its own; this is not reentrant
     * @throws CancelledException if the thread is interrupted; its flag is set, and nothing is left
     *     behind
     */
    public Lease acquireLease() {
        return lock.lease(Call.awaitOrCancel(lock.acquire(null)));
    }

    /**
     * Waits for the lock for some time, and gives it as a lease that no thread owns.
     *
     * @param timeout 0 to 10 years; zero is one attempt, which can succeed
     * @return a lease of its own; this is not reentrant
     * @throws LockTimeoutException when the time is over
     * @throws CancelledException if the thread is interrupted; its flag is set, and nothing is left
     *     behind
     * @throws InvalidArgumentException if the timeout is negative or too long
     */
    public Lease acquireLease(Duration timeout) {
        NativeLock.checked(Objects.requireNonNull(timeout, "timeout"));
        return lock.lease(Call.awaitOrCancel(lock.acquire(timeout)));
    }

    /**
     * Takes the lock if it is free and nobody waits for it, as a lease that no thread owns.
     *
     * @return a lease of its own, or nothing; this is not reentrant
     * @throws CancelledException if the thread is interrupted
     */
    public Optional<Lease> tryAcquireLease() {
        return lock.maybeLease(Call.awaitOrCancel(lock.tryAcquire()));
    }

    /**
     * Waits for the lock in the background, for ever if need be.
     *
     * @return a future; cancelling it cancels the acquire, and nothing is left behind. What is
     *     attached to it runs on a thread of its own, or on one that waits for it right then, as with
     *     every {@link CompletableFuture}
     */
    public CompletableFuture<Lease> acquireAsync() {
        return Call.async(lock.acquire(null), lock::lease, Lease::abandon);
    }

    /**
     * Waits for the lock in the background for some time.
     *
     * @param timeout 0 to 10 years; zero is one attempt, which can succeed
     * @return a future that fails with {@link LockTimeoutException} when the time is over;
     *     cancelling it cancels the acquire, and nothing is left behind. What is attached to it runs
     *     on a thread of its own, or on one that waits for it right then, as with every {@link
     *     CompletableFuture}
     */
    public CompletableFuture<Lease> acquireAsync(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        return Call.async(lock.acquire(timeout), lock::lease, Lease::abandon);
    }

    /**
     * {@link #tryAcquireLease} in the background.
     *
     * @return a future; cancelling it cancels the acquire, and nothing is left behind
     */
    public CompletableFuture<Optional<Lease>> tryAcquireAsync() {
        return Call.async(
                lock.tryAcquire(), lock::maybeLease, lease -> lease.ifPresent(Lease::abandon));
    }

    private Holdings holdings() {
        return lock.client.holdings;
    }

    private Holdings.Hold hold(Lease lease, boolean closeable) {
        return holdings().first(lock.name, lease, closeable);
    }

    private IllegalMonitorStateException notHeld() {
        return new IllegalMonitorStateException(
                "lock \"" + lock.name + "\": this thread does not hold it");
    }

    @Override
    public String toString() {
        return "RustLock[" + lock.name + "]";
    }
}
