"""Entering and leaving a block: the part that ``Lock`` and ``RLock`` have in common."""

import asyncio
import threading
from types import TracebackType
from typing import Final

from ._errors import InvalidArgument
from ._lease import Lease


class Default:
    """The type of the value that stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "<the lock's own>"


DEFAULT: Final = Default()


def current_owner() -> object:
    """The running task, or the thread where none runs.

    The objects and not their numbers: the system gives the number of a thread that has ended to
    the next one, which would then own what the dead one held.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread() if task is None else task


class Entries:
    """The leases of the blocks that are open on one lock object, for each task or thread its own.

    Two threads that share a lock object must never free each other's lease.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[object, list[Lease]] = {}

    def push(self, lease: Lease) -> None:
        """The current owner entered a block."""
        self._open.setdefault(current_owner(), []).append(lease)

    def pop(self, name: str) -> Lease:
        """The current owner leaves its innermost block."""
        owner = current_owner()
        if owner not in self._open:
            # Entered elsewhere: a generator that a framework starts in one thread or task and ends
            # in another. If only one block is open, it is that one.
            owners = list(self._open)
            if len(owners) != 1 or len(self._open[owners[0]]) != 1:
                raise InvalidArgument(
                    f"lock {name}: this block was entered in another task or thread; "
                    "use `with lock.acquire() as lease:` where blocks move"
                )
            owner = owners[0]
        leases = self._open[owner]
        lease = leases.pop()
        if not leases:
            del self._open[owner]
        return lease

    def discard(self, lease: Lease) -> None:
        """Takes back a push."""
        owner = current_owner()
        leases = self._open.get(owner, [])
        if lease in leases:
            leases.remove(lease)
            if not leases:
                del self._open[owner]


class Block:
    """A lock as a block: each entry has a lease of its own.

    ::

        with lock as lease: ...
        async with lock as lease: ...

    Entering acquires, and raises what ``acquire`` raises; the body then does not run. Leaving
    releases. It raises ``LockLost`` if the lease was lost; if the body raised, that goes on and
    the loss is attached to it. It never raises ``Unavailable``: the release goes on in the
    background until the deadline, and is logged.

    In an ``async with``, the task that runs the body is cancelled when the lease is lost, and the
    block raises ``LockLost``.
    """

    __slots__ = ("_entries", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._entries = Entries()

    @property
    def name(self) -> str:
        """The name of the lock."""
        return self._name

    def acquire(self, *, timeout: float | Default | None = DEFAULT) -> Lease:
        """Waits for the lock."""
        raise NotImplementedError

    async def acquire_async(self, *, timeout: float | Default | None = DEFAULT) -> Lease:
        """Waits for the lock."""
        raise NotImplementedError

    def __enter__(self) -> Lease:
        lease = self.acquire()
        try:
            self._entries.push(lease)
        except BaseException:
            # Ctrl-C on the way to the body: the block was not entered.
            self._entries.discard(lease)
            lease._abandon()
            raise
        return lease

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entries.pop(self._name).__exit__(exc_type, exc, traceback)

    async def __aenter__(self) -> Lease:
        lease = await self.acquire_async()
        try:
            lease._enter_task()
            self._entries.push(lease)
        except BaseException:
            self._entries.discard(lease)
            lease._abandon()
            raise
        return lease

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._entries.pop(self._name).__aexit__(exc_type, exc, traceback)

    def __repr__(self) -> str:
        return f"<fencelock.{type(self).__name__} {self._name!r}>"
