package dev.fencelock;

/** Something that is not a lock stands where the lock should be; it was left untouched. */
public final class ConflictException extends FencelockException {
    private static final long serialVersionUID = 1L;

    ConflictException(String message) {
        super("CONFLICT", message);
    }
}
