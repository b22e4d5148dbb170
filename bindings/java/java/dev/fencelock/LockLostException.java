package dev.fencelock;

/** The lease passed its deadline, or the backend says that it is not ours. Final. */
public final class LockLostException extends FencelockException {
    private static final long serialVersionUID = 1L;

    LockLostException(String message) {
        super("LOST", message);
    }
}
