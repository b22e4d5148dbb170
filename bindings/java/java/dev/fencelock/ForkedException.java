package dev.fencelock;

/** The client or lease belongs to the process that this one was forked from. A JVM does not fork. */
public final class ForkedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    ForkedException(String message) {
        super("FORKED", message);
    }
}
