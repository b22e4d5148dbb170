package dev.fencelock.kotlin

import dev.fencelock.kotlin.ffi.FencelockException as FfiException

/**
 * What all errors of this library have in common: a stable [code], the same in every language, and one
 * line that names the lock and says what to do. No password appears in it.
 */
public sealed class FencelockException(
    /** The kind of this error, such as `TIMEOUT`. */
    public val code: String,
    message: String,
) : RuntimeException(message)

/** The wait for a lock reached its limit. */
public class LockTimeoutException internal constructor(message: String) : FencelockException("TIMEOUT", message)

/** The lease passed its deadline, or the backend says that it is not ours. Final. */
public class LockLostException internal constructor(message: String) : FencelockException("LOST", message)

/**
 * The call was given up. A coroutine that is cancelled does not see this, but a
 * [kotlin.coroutines.cancellation.CancellationException].
 */
public class CancelledException internal constructor(message: String) : FencelockException("CANCELLED", message)

/** The client was closed. */
public class ClosedException internal constructor(message: String) : FencelockException("CLOSED", message)

/** The client or lease belongs to the parent of this forked process. */
public class ForkedException internal constructor(message: String) : FencelockException("FORKED", message)

/** A name, option, time limit or URL is not allowed; the message says what is. */
public class InvalidArgumentException internal constructor(message: String) :
    FencelockException("INVALID_ARGUMENT", message)

/** The server, scheme or layout is one that this version cannot use. */
public class UnsupportedException internal constructor(message: String) : FencelockException("UNSUPPORTED", message)

/** The server does not answer, or cannot serve locks now. */
public class UnavailableException internal constructor(message: String) : FencelockException("UNAVAILABLE", message)

/** Wrong credentials, or a right is missing. */
public class AuthFailedException internal constructor(message: String) : FencelockException("AUTH_FAILED", message)

/** What stands at the place of the lock is none of ours, and is left alone. */
public class ConflictException internal constructor(message: String) : FencelockException("CONFLICT", message)

/** A fault of this library. */
public class InternalException internal constructor(message: String) : FencelockException("INTERNAL", message)

/** What a call of the native library throws, as ours. */
internal inline fun <T> calling(call: () -> T): T =
    try {
        call()
    } catch (error: FfiException) {
        throw ofOurs(error)
    } catch (fault: dev.fencelock.kotlin.ffi.InternalException) {
        throw InternalException("a fault of fencelock, please report it: ${fault.message}")
    }

internal fun ofOurs(error: FfiException): FencelockException {
    val message = error.message.orEmpty()
    return when (error) {
        is FfiException.Timeout -> LockTimeoutException(message)
        is FfiException.Lost -> LockLostException(message)
        is FfiException.Cancelled -> CancelledException(message)
        is FfiException.Closed -> ClosedException(message)
        is FfiException.Forked -> ForkedException(message)
        is FfiException.InvalidArgument -> InvalidArgumentException(message)
        is FfiException.Unsupported -> UnsupportedException(message)
        is FfiException.Unavailable -> UnavailableException(message)
        is FfiException.AuthFailed -> AuthFailedException(message)
        is FfiException.Conflict -> ConflictException(message)
        is FfiException.Internal -> InternalException(message)
    }
}
