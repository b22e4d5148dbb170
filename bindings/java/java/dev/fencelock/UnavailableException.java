package dev.fencelock;

/** The backend did not answer, or cannot serve locks now. */
public final class UnavailableException extends FencelockException {
    private static final long serialVersionUID = 1L;

    UnavailableException(String message) {
        super("UNAVAILABLE", message);
    }
}
