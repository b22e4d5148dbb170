package dev.fencelock;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A client: the connections to one backend, with one watchdog that renews all its leases and one
 * wake-up channel, whatever the number of locks. One for a process is enough; all its methods may be
 * called by any thread.
 *
 * <pre>{@code
 * try (Fencelock client = Fencelock.connect("redis://127.0.0.1/")) {
 *     try (RustLock lock = client.lock("orders/42").acquire(Duration.ofSeconds(5))) {
 *         update(lock.token());
 *     }
 * }
 * }</pre>
 *
 * <p>An open client or a held lease does not keep the JVM alive. When the process ends, leases are
 * released, after all shutdown hooks: a hook of yours can still unlock.
 *
 * <p>Warnings, such as a lost lease, go to {@code System.getLogger("dev.fencelock")}.
 */
public final class Fencelock implements AutoCloseable {
    final long handle;
    final Holdings holdings = new Holdings();
    /** Leases that are held although nothing refers to them. */
    final Set<Long> orphans = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    private Fencelock(long handle) {
        this.handle = handle;
        Native.CLEANER.register(this, () -> Native.freeClient(handle));
    }

    /**
     * Connects to the backend that the environment variable {@code FENCELOCK_URL} names.
     *
     * @return the client
     * @throws InvalidArgumentException when it is not set: a forgotten setting must not silently
     *     lock nothing across hosts
     * @throws UnavailableException within the connect timeout
     * @throws CancelledException if the thread is interrupted
     */
    public static Fencelock connect() {
        return connected(null, ClientOptions.defaults());
    }

    /**
     * {@link #connect()} with options.
     *
     * @param options what differs from the defaults and from the URL
     * @return the client
     */
    public static Fencelock connect(ClientOptions options) {
        return connected(null, options);
    }

    /**
     * Connects to a backend: {@code memory:}, {@code file:///dir}, {@code redis://…}, {@code
     * mongodb://…}, {@code zookeeper://…} and their variants. Makes one handshake and fails fast.
     *
     * @param url the backend
     * @return the client
     * @throws InvalidArgumentException when something in the URL is not allowed
     * @throws UnsupportedException when this version cannot use that kind of server
     * @throws AuthFailedException when the backend refuses the credentials
     * @throws UnavailableException within the connect timeout
     * @throws CancelledException if the thread is interrupted
     */
    public static Fencelock connect(String url) {
        return connect(url, ClientOptions.defaults());
    }

    /**
     * {@link #connect(String)} with options.
     *
     * @param url the backend
     * @param options what differs from the defaults; they win over options in the URL
     * @return the client
     */
    public static Fencelock connect(String url, ClientOptions options) {
        return connected(Objects.requireNonNull(url, "url"), options);
    }

    /**
     * {@link #connect(String, ClientOptions)} in the background.
     *
     * @param url the backend
     * @param options what differs from the defaults; they win over options in the URL
     * @return a future; cancelling it cancels the connecting
     */
    public static CompletableFuture<Fencelock> connectAsync(String url, ClientOptions options) {
        return Call.async(
                start(Objects.requireNonNull(url, "url"), options),
                answer -> new Fencelock(answer.value()),
                Fencelock::close);
    }

    private static Fencelock connected(String url, ClientOptions options) {
        return new Fencelock(Call.awaitOrCancel(start(url, options)).value());
    }

    private static Call.Start start(String url, ClientOptions options) {
        byte[] text = Reader.utf8(url, "url");
        long[] times = Reader.times(options.connectTimeout, options.requestTimeout);
        byte[][] texts = {
            Reader.utf8(options.prefix, "prefix"),
            Reader.utf8(options.collection, "collection"),
            Reader.utf8(options.root, "root"),
            Reader.utf8(options.nodeLayout, "node_layout"),
        };
        return (ticket, out) -> Native.connect(ticket, text, times, texts, out);
    }

    /**
     * A lock with the default options. It holds nothing; a thread that takes it does.
     *
     * @param name 1 to 1024 bytes of UTF-8 without NUL, not beginning with {@code ~fl}
     * @return the lock
     * @throws InvalidArgumentException for other names
     */
    public RustLock lock(String name) {
        return lock(name, LockOptions.defaults());
    }

    /**
     * A lock with options. They count when the lock is taken, not when it is taken again.
     *
     * @param name 1 to 1024 bytes of UTF-8 without NUL, not beginning with {@code ~fl}
     * @param options what differs from the defaults
     * @return the lock
     * @throws InvalidArgumentException for a name or an option that is not allowed
     */
    public RustLock lock(String name, LockOptions options) {
        Objects.requireNonNull(name, "name");
        return new RustLock(new NativeLock(this, name, options), null);
    }

    /**
     * What the backend knows of a name.
     *
     * @param name the name of a lock
     * @return the state, the holder and who waits
     * @throws UnavailableException when the backend does not answer
     * @throws CancelledException if the thread is interrupted
     */
    public LockInfo inspect(String name) {
        byte[] text = Reader.utf8(Objects.requireNonNull(name, "name"), "name");
        return new Reader(await((ticket, out) -> Native.inspect(ticket, handle, text, out)).details())
                .info();
    }

    /**
     * All names of this backend and prefix that are held. Walks all keys: a tool for people, not for
     * programs.
     *
     * @return one for each name
     * @throws UnavailableException when the backend does not answer
     * @throws CancelledException if the thread is interrupted
     */
    public List<LockInfo> list() {
        Call.Answer answer = await((ticket, out) -> Native.list(ticket, handle, out));
        Reader reader = new Reader(answer.details());
        List<LockInfo> infos = new ArrayList<>();
        for (long i = 0; i < answer.value(); i++) {
            infos.add(reader.info());
        }
        return infos;
    }

    /**
     * Ends the lease that holds a name now, whoever's it is, and hands the lock on. The former
     * holder is told at its next renewal at the latest, so for that long two may believe to hold the
     * lock: for emergencies only.
     *
     * @param name the name of a lock
     * @return false if nobody held it
     * @throws UnavailableException when the backend does not answer
     * @throws CancelledException if the thread is interrupted
     */
    public boolean forceRelease(String name) {
        byte[] text = Reader.utf8(Objects.requireNonNull(name, "name"), "name");
        return await((ticket, out) -> Native.forceRelease(ticket, handle, text, out)).value() != 0;
    }

    /** Keeps the client from being collected, and closed by that, during its last call. */
    private Call.Answer await(Call.Start start) {
        try {
            return Call.awaitOrCancel(start);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Releases all leases, ends all waits with {@link ClosedException} and closes the connections,
     * within 500 ms. Closing twice is fine. An interrupt does not end it.
     */
    @Override
    public void close() {
        closed = true;
        Call.await((ticket, out) -> Native.close(ticket, handle, out));
        for (Long lease : orphans) {
            orphans.remove(lease);
            Native.freeLease(lease);
        }
    }

    /**
     * Whether {@link #close} was called.
     *
     * @return whether it was
     */
    public boolean isClosed() {
        return closed;
    }

    /**
     * The version of this library.
     *
     * @return such as {@code "0.1.0"}
     */
    public static String version() {
        return Native.VERSION;
    }

    @Override
    public String toString() {
        return closed ? "Fencelock[closed]" : "Fencelock[open]";
    }
}
