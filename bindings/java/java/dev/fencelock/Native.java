package dev.fencelock;

import java.lang.ref.Cleaner;

/**
 * The native library. Whatever can fail or wait returns its details as bytes, and writes status and
 * value into {@code out}; see {@link Call}.
 */
final class Native {
    /** The version of this jar; the library must be of the same one. */
    static final String VERSION = "0.1.0";

    static final System.Logger LOG = System.getLogger("dev.fencelock");

    /** Frees what native code keeps for objects that are gone. Its thread is a daemon. */
    static final Cleaner CLEANER = Cleaner.create();

    static {
        Library.load();
        String found = new String(version(), java.nio.charset.StandardCharsets.UTF_8);
        if (!found.equals(VERSION)) {
            throw new UnsatisfiedLinkError(
                    "the library that was loaded is fencelock " + found + ", not " + VERSION);
        }
        prepare();
        Call.startDelivery();
    }

    private Native() {}

    private static native void prepare();

    static native byte[] version();

    static native byte[] errorCodes();

    static native long openHandles();

    static native byte[] panicForTest(long ticket, boolean later, long[] out);

    /** Waits until calls have ended: three numbers each (ticket, status, value), and its details. */
    static native int take(long[] numbers, byte[][] details);

    static native void cancel(long ticket);

    static native byte[] connect(long ticket, byte[] url, long[] times, byte[][] texts, long[] out);

    static native byte[] lock(
            long client, byte[] name, long[] times, boolean renew, byte[] metadata, long[] out);

    static native byte[] inspect(long ticket, long client, byte[] name, long[] out);

    static native byte[] list(long ticket, long client, long[] out);

    static native byte[] forceRelease(long ticket, long client, byte[] name, long[] out);

    static native byte[] close(long ticket, long client, long[] out);

    static native void freeClient(long client);

    static native byte[] checkTimeout(long seconds, int nanos, long[] out);

    static native byte[] acquire(long ticket, long lock, long seconds, int nanos, long[] out);

    static native byte[] tryAcquire(long ticket, long lock, long[] out);

    static native void freeLock(long lock);

    static native long token(long lease);

    static native byte[] owner(long lease);

    static native boolean isHeld(long lease);

    static native boolean isLost(long lease);

    static native long remaining(long lease);

    static native byte[] check(long lease, long[] out);

    static native byte[] renew(long ticket, long lease, long[] out);

    static native byte[] release(long ticket, long lease, long[] out);

    static native byte[] watch(long ticket, long lease, long[] out);

    static native void freeLease(long lease);
}
