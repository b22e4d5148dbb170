package dev.fencelock.kotlin

import dev.fencelock.kotlin.ffi.Client
import dev.fencelock.kotlin.ffi.ClientOptions
import dev.fencelock.kotlin.ffi.Language
import dev.fencelock.kotlin.ffi.LockOptions
import kotlin.time.Duration
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext

/**
 * A client: the connections to one backend, with one watchdog that renews all its leases and one wake-up
 * channel, whatever the number of locks. One for a process is enough; any thread may call it.
 *
 * An open client or a held lease does not keep the JVM alive. When the process ends, leases are released,
 * after all shutdown hooks.
 *
 * Warnings, such as a lost lease, go to `System.getLogger("dev.fencelock")`.
 */
public class Fencelock private constructor(internal val client: Client) : AutoCloseable {
    /**
     * A lock. It holds nothing; a coroutine that takes it does.
     *
     * @param name 1 to 1024 bytes of UTF-8 without NUL, not beginning with `~fl`
     * @param ttl how long the backend keeps a lease without renewal, 100 ms to 24 h; 30 s if null
     * @param renew false = a fixed lease that ends at ttl, unless [Lease.renew] sets it to a full ttl again
     * @param maxHold the longest time that a lease may be held, however often it is renewed: the guard
     *   against a holder that hangs. Longer than the ttl; null = no limit
     * @param metadata what [inspect] shows with the holder, up to 256 bytes of UTF-8 without control
     *   characters; by default host, process id and language
     * @throws InvalidArgumentException for what is not allowed
     */
    public fun lock(
        name: String,
        ttl: Duration? = null,
        renew: Boolean = true,
        maxHold: Duration? = null,
        metadata: String? = null,
    ): Lock {
        val options = LockOptions(ttl?.seconds(), renew, maxHold?.seconds(), metadata?.checked("metadata"))
        return Lock(this, name, calling { client.lock(name.checked("name"), options) })
    }

    /** What the backend knows of a name. */
    public suspend fun inspect(name: String): LockInfo =
        LockInfo.of(calling { client.inspect(name.checked("name")) })

    /** All locks that are held or waited for. */
    public suspend fun list(): List<LockInfo> = calling { client.list() }.map(LockInfo::of)

    /**
     * Ends whatever lease holds the name, for operators: its holder learns that it was lost at its next
     * renewal, so two may believe for a moment that they hold it.
     *
     * @return whether there was one
     */
    public suspend fun forceRelease(name: String): Boolean =
        calling { client.forceRelease(name.checked("name")) }

    /**
     * Releases all leases and ends all waits, which then fail with [ClosedException]. A body of
     * [Lock.withLock] that still runs goes on *without* the lock: end the work first. May be called again. A
     * cancelled coroutine does it all the same.
     */
    public suspend fun shutdown(): Unit = withContext(NonCancellable) { calling { client.end() } }

    /** [shutdown], blocking the thread: for `use`, and for what is no coroutine. */
    override fun close(): Unit = blocking { shutdown() }

    /** How to get one. */
    public companion object {
        init {
            Library.load()
        }

        /** The version of the native library. */
        public val version: String get() = dev.fencelock.kotlin.ffi.version()

        /**
         * Connects to a backend: `memory:`, `file:///dir`, `redis://…`, `mongodb://…`, `zookeeper://…` and
         * their variants. Makes one handshake and fails fast. What is null is as the URL says, or else the
         * default.
         *
         * @param url the backend; null = what the environment variable `FENCELOCK_URL` says
         * @param connectTimeout the limit for the first connection, and for an acquire that never gets an
         *   answer; 1 ms to 1 h, 5 s by default
         * @param requestTimeout the limit for one request; 1 ms to 1 h, 2 s by default
         * @param prefix what stands before the name in the key (Redis)
         * @param collection where the locks are kept, as `database.collection` (MongoDB)
         * @param root the node below which the locks are, an absolute path (ZooKeeper)
         * @param nodeLayout how contenders name their nodes: `curator`, `kazoo` or `plain` (ZooKeeper)
         * @throws InvalidArgumentException when something is not allowed, or there is no URL at all
         * @throws UnsupportedException when this version cannot use that kind of server
         * @throws AuthFailedException when the backend refuses the credentials
         * @throws UnavailableException within the connect timeout
         */
        public suspend fun connect(
            url: String? = null,
            connectTimeout: Duration? = null,
            requestTimeout: Duration? = null,
            prefix: String? = null,
            collection: String? = null,
            root: String? = null,
            nodeLayout: String? = null,
        ): Fencelock {
            val options = ClientOptions(
                connectTimeout?.seconds(),
                requestTimeout?.seconds(),
                prefix?.checked("prefix"),
                collection?.checked("collection"),
                root?.checked("root"),
                nodeLayout?.checked("node_layout"),
            )
            val checked = url?.checked("the URL")
            return calling {
                dev.fencelock.kotlin.ffi.connect(checked, options, Language.KOTLIN).use {
                    it.connected()
                    Fencelock(checkNotNull(it.claim()))
                }
            }
        }
    }
}
