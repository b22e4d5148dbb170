package dev.fencelock;

import java.time.Duration;
import java.util.Objects;

/**
 * Options of a lock: an immutable value. They are checked by {@link Fencelock#lock(String,
 * LockOptions)}, before any I/O.
 */
public final class LockOptions {
    private static final LockOptions DEFAULTS = new LockOptions(null, true, null, null);

    final Duration ttl;
    final boolean renew;
    final Duration maxHold;
    final String metadata;

    private LockOptions(Duration ttl, boolean renew, Duration maxHold, String metadata) {
        this.ttl = ttl;
        this.renew = renew;
        this.maxHold = maxHold;
        this.metadata = metadata;
    }

    /**
     * The defaults: a ttl of 30 s, renewed by the client for as long as the lease is held.
     *
     * @return the defaults
     */
    public static LockOptions defaults() {
        return DEFAULTS;
    }

    /**
     * How long the backend keeps a lease without renewal. After a crash of the holder, others wait
     * this long.
     *
     * @param ttl 100 ms to 24 h, in whole milliseconds (the rest is cut off)
     * @return these options with this ttl
     */
    public LockOptions ttl(Duration ttl) {
        return new LockOptions(Objects.requireNonNull(ttl, "ttl"), renew, maxHold, metadata);
    }

    /**
     * Whether the client renews the lease; it does by default.
     *
     * @param renew false = a fixed lease that ends at ttl, unless {@link Lease#renew} sets it to a
     *     full ttl again
     * @return these options with that
     */
    public LockOptions renew(boolean renew) {
        return new LockOptions(ttl, renew, maxHold, metadata);
    }

    /**
     * The longest time that a lease may be held, however often it is renewed: the guard against a
     * holder that hangs. The lease is lost when that time is over.
     *
     * @param maxHold longer than the ttl; null = no limit, as by default
     * @return these options with that limit
     */
    public LockOptions maxHold(Duration maxHold) {
        return new LockOptions(ttl, renew, maxHold, metadata);
    }

    /**
     * A short text that {@link Fencelock#inspect} shows with the holder. By default host, process id
     * and language.
     *
     * @param metadata up to 256 bytes of UTF-8 without control characters
     * @return these options with this text
     */
    public LockOptions metadata(String metadata) {
        return new LockOptions(ttl, renew, maxHold, Objects.requireNonNull(metadata, "metadata"));
    }
}
