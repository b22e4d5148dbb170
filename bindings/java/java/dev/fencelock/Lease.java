package dev.fencelock;

import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * A held lock as a handle, for code that moves between threads. The lease is the ownership: whoever
 * has it may release it, from any thread.
 *
 * <p>What it cannot do is stop you between checking it and writing; the {@link #token} protects the
 * data then.
 *
 * <p>A lease that nobody refers to any more is <em>not</em> released, because the work that it
 * protects may still run: a warning names it, and it ends with {@code maxHold} or with the client.
 */
public final class Lease implements AutoCloseable {
    // The client must not be collected before its leases.
    private final Fencelock client;
    private final String name;
    private final long handle;
    private final long token;
    private final State state;
    private final Cleaner.Cleanable cleanable;
    private CompletableFuture<Void> lost;

    Lease(Fencelock client, String name, long handle) {
        this.client = client;
        this.name = name;
        this.handle = handle;
        this.token = Native.token(handle);
        this.state = new State(handle, token, name, client.orphans);
        this.cleanable = Native.CLEANER.register(this, state);
    }

    /** What is left when the lease is unreachable; it must not refer to it. */
    private static final class State implements Runnable {
        private final long handle;
        private final long token;
        private final String name;
        private final Set<Long> orphans;
        private volatile boolean released;

        State(long handle, long token, String name, Set<Long> orphans) {
            this.handle = handle;
            this.token = token;
            this.name = name;
            this.orphans = orphans;
        }

        @Override
        public void run() {
            if (released || !Native.isHeld(handle)) {
                Native.freeLease(handle);
                return;
            }
            // Those that have ended since, such as fixed leases.
            for (Long other : orphans) {
                if (!Native.isHeld(other) && orphans.remove(other)) {
                    Native.freeLease(other);
                }
            }
            orphans.add(handle);
            Native.LOG.log(
                    System.Logger.Level.WARNING,
                    "nothing refers to the lease of lock \"{0}\" (token {1}) any more, and it was"
                            + " not released; it is held until its client is closed",
                    name,
                    Long.toUnsignedString(token));
        }
    }

    /**
     * The name of the lock.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * The owner id, as {@link Fencelock#inspect} shows it.
     *
     * @return 32 hexadecimal digits; empty when the lease was released
     */
    public String owner() {
        return new String(Native.owner(handle), StandardCharsets.UTF_8);
    }

    /**
     * The fencing token: strictly greater than every earlier token of this name. Pass it on to what
     * the lock protects, which refuses a token lower than the highest that it has seen.
     *
     * @return an unsigned number; see {@link Long#compareUnsigned}
     */
    public long token() {
        return token;
    }

    /**
     * Whether the lock is ours now. Computed from the clock, without I/O; exact also first thing
     * after the process was stopped.
     *
     * @return false from the deadline on, and after a release
     */
    public boolean isHeld() {
        return !state.released && Native.isHeld(handle);
    }

    /**
     * Whether the lease was lost. Computed from the clock, without I/O; final once true.
     *
     * @return false while it is held, and after a release
     */
    public boolean isLost() {
        return !state.released && Native.isLost(handle);
    }

    /**
     * For how long the lock is certainly ours without another renewal.
     *
     * @return zero when it is not held
     */
    public Duration remaining() {
        return state.released ? Duration.ZERO : Duration.ofNanos(Native.remaining(handle));
    }

    /**
     * {@link #isHeld} as an exception, for use between two steps of the work. No I/O.
     *
     * @throws LockLostException when the lease is lost or was released
     */
    public void check() {
        if (!state.released) {
            try {
                Call.now((ticket, out) -> Native.check(handle, out));
                return;
            } catch (InvalidArgumentException freed) {
                if (!state.released) {
                    throw freed;
                }
            }
        }
        throw new LockLostException("lock \"" + name + "\": the lease was released");
    }

    /**
     * A future that completes when the lease is lost: at its deadline at the latest, whatever the
     * server does. When the lease is released it is cancelled, because then it never will be lost.
     *
     * <p>What is attached to it runs on a thread of its own, or on one that waits for it right then,
     * as with every {@link CompletableFuture}. It does not keep the lease alive.
     *
     * @return the future, the same one for all callers until somebody cancels it
     */
    public synchronized CompletableFuture<Void> lost() {
        if (lost == null || lost.isCancelled()) {
            lost = watch();
        }
        return lost;
    }

    private CompletableFuture<Void> watch() {
        CompletableFuture<Void> future = new CompletableFuture<>();
        if (state.released) {
            future.cancel(false);
            return future;
        }
        CompletableFuture<Void> ended =
                Call.async(
                        (ticket, out) -> Native.watch(ticket, handle, out), end -> null, end -> {});
        ended.whenComplete(
                (nothing, error) -> {
                    if (error == null) {
                        future.complete(null);
                    } else {
                        future.cancel(false);
                    }
                });
        future.whenComplete((nothing, error) -> ended.cancel(false));
        return future;
    }

    /**
     * Sets the lease to a full ttl from now; needed only with {@link LockOptions#renew
     * renew(false)}.
     *
     * @throws LockLostException when it is not ours any more
     * @throws UnavailableException when the backend does not answer; the lease then goes on until
     *     its deadline
     * @throws CancelledException when the thread is interrupted; the lease may have been lengthened
     */
    public void renew() {
        if (state.released) {
            check();
        }
        Call.awaitOrCancel((ticket, out) -> Native.renew(ticket, handle, out));
    }

    /**
     * Releases the lock and hands it to the next contender. {@link #isHeld} is false from the call
     * on. It may be called again: after a success it does nothing, after an error it asks again. An
     * interrupt does not end it.
     *
     * @throws LockLostException when the lease had ended before; at once and without I/O where that
     *     is known
     * @throws UnavailableException when the backend does not answer; the release then goes on in the
     *     background until the deadline
     */
    public void release() {
        if (state.released) {
            return;
        }
        try {
            Call.await((ticket, out) -> Native.release(ticket, handle, out));
        } catch (InvalidArgumentException freed) {
            if (!state.released) {
                throw freed;
            }
        }
        ended();
    }

    /**
     * {@link #release} without blocking. Cancelling the future does not end it.
     *
     * @return a future that fails as {@link #release} does
     */
    public CompletableFuture<Void> releaseAsync() {
        if (state.released) {
            return CompletableFuture.completedFuture(null);
        }
        // Kept from the collector until the end is known, or it would be warned of.
        return Call.async(
                (ticket, out) -> Native.release(ticket, handle, out),
                end -> {
                    ended();
                    return null;
                },
                end -> {});
    }

    private void ended() {
        state.released = true;
        cleanable.clean();
    }

    /** Nobody has got this lease: releases it in the background. */
    void abandon() {
        ended();
    }

    /**
     * Releases it, as the end of a {@code try} block: waits for no I/O when the lease is lost, and
     * does not fail when the backend does not answer; the release then goes on in the background
     * until the deadline, and is logged.
     *
     * @throws LockLostException when the lease was lost; where the body has failed, that is added to
     *     its exception as a suppressed one
     */
    @Override
    public void close() {
        try {
            release();
        } catch (ClosedException e) {
            // It was released when the client was closed.
        } catch (UnavailableException e) {
            Native.LOG.log(
                    System.Logger.Level.WARNING,
                    "{0}; the release goes on in the background",
                    e.getMessage());
        }
    }

    Fencelock client() {
        return client;
    }

    @Override
    public String toString() {
        return "Lease[" + name + ", token=" + Long.toUnsignedString(token)
                + (isHeld() ? ", held]" : ", not held]");
    }
}
