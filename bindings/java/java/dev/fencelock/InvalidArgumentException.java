package dev.fencelock;

/** An argument, option or URL is not allowed; the message says what is. */
public final class InvalidArgumentException extends FencelockException {
    private static final long serialVersionUID = 1L;

    InvalidArgumentException(String message) {
        super("INVALID_ARGUMENT", message);
    }
}
