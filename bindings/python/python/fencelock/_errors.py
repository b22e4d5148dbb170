"""The exceptions. Each kind of error of the core has one class with the same stable code."""

from typing import ClassVar


class FencelockError(Exception):
    """The base of all errors of this package.

    The message is one line that names the lock and says what to do. Passwords never appear in it.
    """

    code: ClassVar[str] = "INTERNAL"
    """The stable code, the same in every language."""


class LockTimeout(FencelockError, TimeoutError):
    """The wait for the lock reached its time limit. Nothing is left behind."""

    code = "TIMEOUT"


class LockLost(FencelockError):
    """The lease passed its deadline, or the backend says that it is not ours. Final."""

    code = "LOST"


class Cancelled(FencelockError):
    """The call was cancelled."""

    code = "CANCELLED"


class Closed(FencelockError):
    """The client has been closed, or the process is ending."""

    code = "CLOSED"


class Forked(FencelockError):
    """The client or lease belongs to the process that this one was forked from."""

    code = "FORKED"


class InvalidArgument(FencelockError, ValueError):
    """A name, option, timeout or URL is not allowed; the message says what is."""

    code = "INVALID_ARGUMENT"


class NotOwner(InvalidArgument, RuntimeError):
    """An :class:`RLock` was released by a task or thread that does not hold it.

    A ``RuntimeError``, because that is what ``threading.RLock`` raises.
    """


class Unsupported(FencelockError):
    """The server, the URL scheme or the stored layout is not one that this version can use."""

    code = "UNSUPPORTED"


class Unavailable(FencelockError, ConnectionError):
    """The backend did not answer, or cannot serve locks now."""

    code = "UNAVAILABLE"


class AuthFailed(FencelockError):
    """The backend refused the credentials, or they lack a right that the lock needs."""

    code = "AUTH_FAILED"


class Conflict(FencelockError):
    """Something that is not a lock stands where the lock should be; it was left untouched."""

    code = "CONFLICT"


class Internal(FencelockError):
    """A fault of this library."""

    code = "INTERNAL"


_CLASSES: tuple[type[FencelockError], ...] = (
    LockTimeout,
    LockLost,
    Cancelled,
    Closed,
    Forked,
    InvalidArgument,
    Unsupported,
    Unavailable,
    AuthFailed,
    Conflict,
    Internal,
)
BY_CODE: dict[str, type[FencelockError]] = {cls.code: cls for cls in _CLASSES}


def from_code(code: str, message: str, cause: str | None) -> FencelockError:
    """Makes the exception for an error of the core. Called by the native module."""
    error = BY_CODE.get(code, Internal)(message)
    if cause is not None and cause not in message:
        error.add_note(f"cause: {cause}")
    return error
