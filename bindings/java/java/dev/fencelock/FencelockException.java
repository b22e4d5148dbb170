package dev.fencelock;

/**
 * What all errors of this library have in common: a stable code, and one line that names the lock
 * and says what to do. No password appears in it.
 */
public abstract sealed class FencelockException extends RuntimeException
        permits AuthFailedException,
                CancelledException,
                ClosedException,
                ConflictException,
                ForkedException,
                InternalException,
                InvalidArgumentException,
                LockLostException,
                LockTimeoutException,
                UnavailableException,
                UnsupportedException {
    private static final long serialVersionUID = 1L;

    /** The code, which serialization keeps. */
    private final String code;

    FencelockException(String code, String message) {
        super(message);
        this.code = code;
    }

    /**
     * The kind of this error, the same in every language.
     *
     * @return a code such as {@code "TIMEOUT"}
     */
    public String code() {
        return code;
    }
}
