"""A name plus options."""

from . import _native
from ._aio import run
from ._block import DEFAULT, Block, Default
from ._info import from_raw
from ._lease import Lease


class Lock(Block):
    """A lock: a name plus options. It holds nothing; the leases that it gives do.

    Made by ``Client.lock``. It may be used again, and shared between threads and tasks; two that
    share one lock object exclude each other. It is not reentrant: ``Client.rlock`` is.
    """

    __slots__ = ("__weakref__", "_client", "_native", "_timeout")

    def __init__(self, client: _native.Client, native: _native.Lock, timeout: float | None) -> None:
        super().__init__(native.name)
        self._client = client
        self._native = native
        self._timeout = timeout

    def acquire(self, *, timeout: float | Default | None = DEFAULT) -> Lease:
        """Waits for the lock, without the GIL; Ctrl-C works.

        ``timeout`` in seconds: 0 = one attempt, None = for ever, default = the lock's own. It
        returns by ``timeout`` + 50 ms, whatever the server does.

        Raises LockTimeout; Unavailable when the backend never answered within the connect timeout
        or, once queued, not for 30 s; AuthFailed, Conflict, Unsupported; Closed, Forked;
        InvalidArgument. Then nothing is left behind.
        """
        return Lease(self._acquire(timeout).wait())

    async def acquire_async(self, *, timeout: float | Default | None = DEFAULT) -> Lease:
        """``acquire`` for asyncio. Never blocks the loop; cancelled, it leaves nothing behind."""
        return Lease(await run(self._acquire(timeout)))

    def _acquire(self, timeout: float | Default | None) -> _native.Call:
        return self._native.acquire(self._timeout if isinstance(timeout, Default) else timeout)

    def try_acquire(self) -> Lease | None:
        """Takes the lock if it is free and nobody waits for it, else returns None.

        One request; it never queues. Raises what ``acquire`` raises, except LockTimeout.
        """
        lease: _native.Lease | None = self._native.try_acquire().wait()
        return None if lease is None else Lease(lease)

    async def try_acquire_async(self) -> Lease | None:
        """``try_acquire`` for asyncio. Cancel-safe."""
        lease: _native.Lease | None = await run(self._native.try_acquire())
        return None if lease is None else Lease(lease)

    def locked(self) -> bool:
        """Whether anybody holds the lock. For people: it may be out of date when it arrives."""
        return from_raw(self._client.inspect(self.name).wait()).state != "free"

    async def locked_async(self) -> bool:
        """``locked`` for asyncio."""
        return from_raw(await run(self._client.inspect(self.name))).state != "free"
