package dev.fencelock;

/** A fault of this library. */
public final class InternalException extends FencelockException {
    private static final long serialVersionUID = 1L;

    InternalException(String message) {
        super("INTERNAL", message);
    }
}
