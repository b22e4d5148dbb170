package dev.fencelock;

/** The client has been closed. */
public final class ClosedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    ClosedException(String message) {
        super("CLOSED", message);
    }
}
