package dev.fencelock.kotlin

import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.cancel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import dev.fencelock.kotlin.ffi.Lease as FfiLease

/**
 * A held lock. The lease is the ownership: whoever has it may release it, from any coroutine or thread.
 *
 * What it cannot do is stop you between checking it and writing; the [token] protects the data then.
 *
 * A lease that nobody refers to any more is *not* released, because the work that it protects may still
 * run: a warning names it, and it ends with `maxHold` or with the client.
 */
public class Lease internal constructor(
    // The client must not be collected before its leases.
    @Suppress("unused") private val client: Fencelock,
    /** The name of the lock. */
    public val name: String,
    private val lease: FfiLease,
) : AutoCloseable {
    /**
     * The fencing token: strictly greater than every earlier token of this name. Pass it on to what the
     * lock protects, which refuses a token lower than the highest that it has seen.
     */
    public val token: ULong = lease.token()

    /** The owner id, as [Fencelock.inspect] shows it. */
    public val owner: String get() = lease.owner()

    /** Whether the lock is ours now. Computed from the clock, without I/O: false from the deadline on. */
    public val isHeld: Boolean get() = lease.isHeld()

    /** Whether the lease was lost. Computed from the clock, without I/O; final once true. */
    public val isLost: Boolean get() = lease.isLost()

    /** For how long the lock is certainly ours without another renewal; zero when it is not held. */
    public val remaining: Duration get() = lease.remaining().seconds

    /**
     * [isHeld] as an exception, for use between two steps of the work. No I/O.
     *
     * @throws LockLostException when the lease is lost or was released
     */
    public fun check(): Unit = calling { lease.check() }

    /**
     * Waits for the end of the lease: true when it is lost, at its deadline at the latest, whatever the
     * server does; false when it was released, because then it never will be lost.
     */
    public suspend fun lost(): Boolean = calling { lease.ended() }

    /**
     * Sets the lease to a full ttl from now; needed only with `renew = false`.
     *
     * @throws LockLostException when it is not ours any more
     * @throws UnavailableException when the backend does not answer; the lease then goes on until its
     *   deadline
     */
    public suspend fun renew(): Unit = calling { lease.renew() }

    /**
     * Releases the lock and hands it to the next contender. [isHeld] is false from the call on. It may be
     * called again: after a success it does nothing, after an error it asks again. A cancelled coroutine
     * does it all the same.
     *
     * @throws LockLostException when the lease had ended before
     * @throws UnavailableException when the backend does not answer; the release then goes on in the
     *   background until the deadline
     */
    public suspend fun release() {
        lease.letGo()
        withContext(NonCancellable) { calling { lease.release() } }
    }

    /**
     * Releases it as the end of a `use` block, blocking the thread; in a coroutine, [Lock.withLock] and
     * [release] do it without. Does not fail when the backend does not answer: the release then goes on in
     * the background until the deadline, and is logged.
     *
     * @throws LockLostException when the lease was lost
     */
    override fun close(): Unit = blocking { leave() }

    /** [release] as a block ends: only a loss is an error. */
    private suspend fun leave() {
        try {
            release()
        } catch (_: ClosedException) {
            // It was released when the client was closed.
        } catch (error: UnavailableException) {
            Library.log.log(System.Logger.Level.WARNING, "${error.message}; the release goes on in the background")
        }
    }

    internal suspend fun <T> during(body: suspend (Lease) -> T): T {
        val result = try {
            guarded(body)
        } catch (failure: Throwable) {
            val loss = lossOnLeaving()
            if (failure is LostMeanwhile && failure.lease === this) {
                throw loss ?: LockLostException("lock \"$name\": the lease was lost")
            }
            loss?.let(failure::addSuppressed)
            throw failure
        }
        leave()
        return result
    }

    private suspend fun lossOnLeaving(): FencelockException? =
        try {
            leave()
            null
        } catch (error: FencelockException) {
            error
        }

    /** Runs the body, which is cancelled when the lease is lost. */
    private suspend fun <T> guarded(body: suspend (Lease) -> T): T = coroutineScope {
        val scope = this
        // Not on the dispatcher of the body, all of whose threads the body may keep busy; and begun here,
        // because a body that is unconfined itself would come first.
        val watch = launch(Dispatchers.Unconfined, CoroutineStart.UNDISPATCHED) {
            if (lost()) scope.cancel(LostMeanwhile(this@Lease))
        }
        try {
            body(this@Lease)
        } finally {
            watch.cancel()
        }
    }

    override fun toString(): String = "Lease[$name, token=$token${if (isHeld) ", held]" else ", not held]"}"

    /** Why the body is cancelled; by the lease it is told from the loss of one further out. */
    private class LostMeanwhile(val lease: Lease) :
        CancellationException("lock \"${lease.name}\": the lease was lost")
}
