package dev.fencelock.kotlin

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import dev.fencelock.kotlin.ffi.LockInfo as FfiInfo
import dev.fencelock.kotlin.ffi.LockState as FfiState

/**
 * What a backend knows of one name at one instant. For people and tools, never for decisions: it may be
 * out of date when it arrives.
 *
 * @property name the name of the lock
 * @property state who holds it, if anybody
 * @property owner the owner id of the holder, 32 hexadecimal digits; of a foreign holder its value; null
 *   if nobody holds it
 * @property token the fencing token of the lease; null for a foreign holder, and if nobody holds it
 * @property held for how long it has been held; null if that is not known
 * @property ttlLeft what is left of the holder's time; null if it has no limit, or nobody holds it
 * @property metadata what the holder said of itself; null if nothing
 * @property queue who waits, in the order of service; of very many, the first ones
 */
@ConsistentCopyVisibility
public data class LockInfo internal constructor(
    val name: String,
    val state: State,
    val owner: String?,
    val token: ULong?,
    val held: Duration?,
    val ttlLeft: Duration?,
    val metadata: String?,
    val queue: List<Waiter>,
) {
    /** Who holds a lock. */
    public enum class State {
        /** Nobody holds it. */
        FREE,

        /** A lease of this library holds it, in whatever language. */
        HELD,

        /** A client of another kind holds it. */
        FOREIGN,
    }

    /**
     * One contender of a queue.
     *
     * @property owner the owner id, 32 hexadecimal digits
     * @property waiting for how long it has been waiting
     * @property metadata what it said of itself; null if nothing
     */
    @ConsistentCopyVisibility
    public data class Waiter internal constructor(
        val owner: String,
        val waiting: Duration,
        val metadata: String?,
    )

    internal companion object {
        fun of(info: FfiInfo): LockInfo = LockInfo(
            name = info.name,
            state = when (info.state) {
                FfiState.FREE -> State.FREE
                FfiState.HELD -> State.HELD
                FfiState.FOREIGN -> State.FOREIGN
            },
            owner = info.owner,
            token = info.token,
            held = info.heldMs?.milliseconds,
            ttlLeft = info.ttlLeftMs?.milliseconds,
            metadata = info.metadata,
            queue = info.queue.map { Waiter(it.owner, it.waitingMs.milliseconds, it.metadata) },
        )
    }
}
