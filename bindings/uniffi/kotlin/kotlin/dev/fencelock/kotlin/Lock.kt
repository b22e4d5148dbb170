package dev.fencelock.kotlin

import dev.fencelock.kotlin.ffi.Attempt
import kotlin.time.Duration
import dev.fencelock.kotlin.ffi.Lock as FfiLock

/**
 * A lock: a name plus options. A stateless handle that any number of coroutines may share: each acquire
 * is a place of its own, so two coroutines that use one object exclude each other. Not reentrant.
 */
public class Lock internal constructor(
    // The client must not be collected before its locks.
    internal val client: Fencelock,
    /** The name. */
    public val name: String,
    private val lock: FfiLock,
) {
    /**
     * Waits for the lock. A coroutine that is cancelled leaves nothing behind: its place in the queue is
     * withdrawn, and a lease that was granted just then is released.
     *
     * What hands the result on may be cancelled just then and drop the lease, which then stays held:
     * `withTimeout` (use [timeout]), `withContext`, `async`. [withLock] has no such moment.
     *
     * @param timeout the longest wait; zero is one attempt, which can succeed; null = for ever
     * @throws LockTimeoutException when the wait reaches the limit
     * @throws InvalidArgumentException for a limit below zero or above 10 years
     * @throws UnavailableException when the backend never answered within the connect timeout or, once
     *   queued, not for 30 s
     */
    public suspend fun acquire(timeout: Duration? = null): Lease =
        checkNotNull(claim(calling { lock.acquire(timeout?.seconds()) }))

    /** Takes the lock if it is free and nobody waits for it, with one request; null if not. */
    public suspend fun tryAcquire(): Lease? = claim(lock.tryAcquire())

    private suspend fun claim(attempt: Attempt): Lease? = calling {
        // Freed however this ends: with what it was granted, unless that was claimed.
        attempt.use {
            if (it.granted()) Lease(client, name, checkNotNull(it.claim())) else null
        }
    }

    /**
     * Runs [body] while holding the lock, and releases it.
     *
     * When the lease is lost in between, the body is cancelled, and [LockLostException] is thrown; if the
     * body fails with something else, that is thrown and the loss is added to it as a suppressed one. A
     * backend that does not answer at the end is no error: the release goes on in the background until the
     * deadline, and is logged.
     *
     * @param timeout as of [acquire]
     * @throws LockLostException when the lease was lost
     */
    public suspend fun <T> withLock(timeout: Duration? = null, body: suspend (Lease) -> T): T =
        acquire(timeout).during(body)

    override fun toString(): String = "Lock[$name]"
}
