"""A held lock, the value that ``acquire`` returns."""

import asyncio
import logging
from types import TracebackType
from typing import Self

from . import _native
from ._aio import bridge, run
from ._errors import Closed, FencelockError, Forked, LockLost, Unavailable

_log = logging.getLogger("fencelock")


class Lost:
    """Tells when a lease is lost; to be used like an ``Event`` of threading or asyncio.

    A lease that was released is not lost and never will be, so its waits end with False.
    """

    __slots__ = ("_name", "_watch")

    def __init__(self, native: _native.Lease) -> None:
        # Not the lease: what only watches it must not keep it from being released.
        self._watch = native.watch
        self._name = native.name

    def is_set(self) -> bool:
        """Whether the lease was lost. Computed from the clock, without I/O. Final once true.

        Raises Forked in a forked child.
        """
        return self._watch.is_lost()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the lease is lost: at its deadline at the latest, whatever the server does.

        ``timeout`` in seconds, None = for ever. Returns True if it was lost; False if the time is
        over, or the lease was released. Raises InvalidArgument, Forked.
        """
        return bool(self._watch.wait_lost(timeout).wait())

    async def wait_async(self) -> bool:
        """``wait`` for asyncio. Cancel-safe."""
        return bool(await run(self._watch.wait_lost(None)))

    def __repr__(self) -> str:
        return f"<fencelock.Lost of {self._name!r}>"


class Lease:
    """A held lock. The lease is the ownership: whoever has it may release it, from any thread.

    It is a block as well: ``with lock.acquire(timeout=5) as lease``, and the same with ``async``.
    When the last reference to it is gone it is released in the background.

    What it cannot do is stop you between checking it and writing; ``token`` protects the data
    then.
    """

    __slots__ = ("__weakref__", "_body", "_native")

    def __init__(self, native: _native.Lease) -> None:
        self._native = native
        self._body: _Body | None = None

    @property
    def name(self) -> str:
        """The name of the lock."""
        return self._native.name

    @property
    def owner(self) -> str:
        """The owner id, 32 hexadecimal digits, as ``inspect`` shows it."""
        return self._native.owner

    @property
    def token(self) -> int:
        """The fencing token: strictly greater than every earlier token of this name."""
        return self._native.token

    @property
    def held(self) -> bool:
        """Whether the lock is ours now. Computed from the clock, without I/O.

        Exact also first thing after the process was stopped. False in a forked child.
        """
        return self._native.held

    @property
    def remaining(self) -> float:
        """For how many seconds the lock is certainly ours without another renewal."""
        return self._native.remaining

    @property
    def lost(self) -> Lost:
        """An Event that is set when the lease is lost."""
        return Lost(self._native)

    def check(self) -> None:
        """``held`` as an exception, for use between two steps of the work. No I/O.

        Raises LockLost when the lease is lost or was released, Forked in a forked child.
        """
        self._native.check()

    def renew(self) -> None:
        """Sets the lease to a full ttl from now; needed only with ``renew=False``.

        Raises LockLost when it is not ours any more; Unavailable when the backend does not answer
        (the lease then goes on until its deadline); Closed, Forked.
        """
        self._native.renew().wait()

    async def renew_async(self) -> None:
        """``renew`` for asyncio. Cancelled, it may still lengthen the lease."""
        await run(self._native.renew())

    def release(self) -> None:
        """Releases the lock and hands it to the next contender.

        ``held`` is false from the call on. It may be called again: after a success it does nothing,
        after an error it asks again.

        Raises LockLost when the lease had ended before, at once and without I/O where that is
        known; Unavailable when the backend does not answer (the release then goes on in the
        background until the deadline); Forked.
        """
        call = self._release()
        if call is not None:
            call.wait()

    async def release_async(self) -> None:
        """``release`` for asyncio. Cancelled, it goes on in the background."""
        call = self._release()
        if call is not None:
            await run(call)

    def _release(self) -> _native.Call | None:
        """What is left to do to give this lease back."""
        return self._native.release()

    def _abandon(self) -> None:
        """Releases in the background: nobody has got this lease."""
        self._native.abandon()

    def _enter_task(self) -> None:
        """From here on, the current task is cancelled when the lease is lost."""
        self._body = _Body(self._native)

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.release()
        except FencelockError as error:
            _settle(error, exc)

    async def __aenter__(self) -> Self:
        self.check()
        self._enter_task()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        body, self._body = self._body, None
        cancelled = body is not None and body.leave()
        try:
            # The release runs in the client, so that a cancellation of this task cannot end it.
            # What is known to be lost is told without a round trip through the runtime.
            self._check_lost()
            await self.release_async()
        except FencelockError as error:
            if cancelled and isinstance(exc, asyncio.CancelledError):
                raise error from exc
            _settle(error, exc)

    def _check_lost(self) -> None:
        try:
            lost = self._native.watch.is_lost()
        except Forked:
            return
        if lost:
            self._native.abandon()
            self._native.check()

    def __repr__(self) -> str:
        state = "held" if self.held else "not held"
        return f"<fencelock.Lease {self.name!r} token={self.token} {state}>"


class _Body:
    """Cancels the task that runs the body of an ``async with`` when its lease is lost.

    As ``asyncio.timeout`` does it: a cancellation from outside must neither be swallowed nor be
    taken for ours.
    """

    def __init__(self, native: _native.Lease) -> None:
        self._task = asyncio.current_task()
        self._cancelling = 0 if self._task is None else self._task.cancelling()
        self._cancelled = False
        self._bridge = bridge(asyncio.get_running_loop())
        self._call = native.watch.wait_lost(None)
        self._number = self._bridge.start(self._call, self._ended)

    def _ended(self, lost: bool, _error: BaseException | None) -> None:
        if lost and self._task is not None:
            self._cancelled = True
            self._task.cancel("the lease is lost")

    def leave(self) -> bool:
        """The body has ended. True if it was cancelled by us, and by nobody else."""
        self._bridge.forget(self._number, self._call)
        if not self._cancelled or self._task is None:
            return False
        return self._task.uncancel() <= self._cancelling


def _settle(error: FencelockError, body: BaseException | None) -> None:
    """Decides what leaving a block does with an error of the release."""
    if isinstance(error, (Forked, Closed)):
        return  # not ours to release, or released when the client was closed
    if isinstance(error, Unavailable):
        _log.warning("%s; the release goes on in the background", error)
        return
    if body is None:
        raise error
    if isinstance(body, LockLost):
        return  # the body knew
    # The body's error goes on. The note shows in every traceback; the context is for programs.
    body.add_note(f"and on leaving the block: {type(error).__name__}: {error}")
    last = body
    while last.__context__ is not None and last.__context__ is not error:
        last = last.__context__
    if last is not error:
        last.__context__ = error
