package dev.fencelock;

/** The call was cancelled, or its thread interrupted; then the thread's interrupt flag is set. */
public final class CancelledException extends FencelockException {
    private static final long serialVersionUID = 1L;

    CancelledException(String message) {
        super("CANCELLED", message);
    }
}
