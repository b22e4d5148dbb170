package dev.fencelock;

/** The server, the URL scheme or the stored layout is not one that this version can use. */
public final class UnsupportedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    UnsupportedException(String message) {
        super("UNSUPPORTED", message);
    }
}
