package dev.fencelock;

/** Errors of the core as exceptions. */
final class Errors {
    private Errors() {}

    /** The exception that native code describes. */
    static FencelockException from(byte[] details) {
        Reader reader = new Reader(details);
        FencelockException error = of(reader.text(), reader.text());
        String cause = reader.text();
        if (cause != null) {
            error.initCause(new Cause(cause));
        }
        return error;
    }

    static FencelockException of(String code, String message) {
        return switch (code) {
            case "TIMEOUT" -> new LockTimeoutException(message);
            case "LOST" -> new LockLostException(message);
            case "CANCELLED" -> new CancelledException(message);
            case "CLOSED" -> new ClosedException(message);
            case "FORKED" -> new ForkedException(message);
            case "INVALID_ARGUMENT" -> new InvalidArgumentException(message);
            case "UNSUPPORTED" -> new UnsupportedException(message);
            case "UNAVAILABLE" -> new UnavailableException(message);
            case "AUTH_FAILED" -> new AuthFailedException(message);
            case "CONFLICT" -> new ConflictException(message);
            case "INTERNAL" -> new InternalException(message);
            default -> new InternalException(code + ": " + message);
        };
    }

    /** What the core names as the cause. It has no place in Java code. */
    private static final class Cause extends Exception {
        private static final long serialVersionUID = 1L;

        Cause(String message) {
            super(message, null, false, false);
        }

        @Override
        public String toString() {
            return getMessage();
        }
    }
}
