package dev.fencelock;

/** The wait for the lock reached its time limit. */
public final class LockTimeoutException extends FencelockException {
    private static final long serialVersionUID = 1L;

    LockTimeoutException(String message) {
        super("TIMEOUT", message);
    }
}
