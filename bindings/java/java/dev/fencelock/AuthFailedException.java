package dev.fencelock;

/** The backend refused the credentials, or they lack a right that the lock needs. */
public final class AuthFailedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    AuthFailedException(String message) {
        super("AUTH_FAILED", message);
    }
}
