"""The connections to one backend."""

import builtins
import contextlib
from types import TracebackType
from typing import Self

from . import _exit, _native
from ._aio import run
from ._errors import Forked
from ._info import LockInfo, from_raw
from ._lock import Lock
from ._rlock import Holdings, RLock


def connect(
    url: str | None = None,
    *,
    connect_timeout: float | None = None,
    request_timeout: float | None = None,
    prefix: str | None = None,
    collection: str | None = None,
    root: str | None = None,
    node_layout: str | None = None,
) -> "Client":
    """Connects to a backend: ``redis://…``, ``redis+unix://…``, ``redis-cluster://…``,
    ``redis-sentinel://…``, the same with TLS as ``rediss…``, ``mongodb://…``, ``mongodb+srv://…``,
    ``zookeeper://…``, ``file:///dir`` for the processes of one machine, ``memory:`` or
    ``memory:NAME`` for this process.

    Without a URL it reads the environment variable FENCELOCK_URL. Makes one handshake and fails
    fast. Times in seconds; None = what the URL says (``fl.connect_timeout_ms``,
    ``fl.request_timeout_ms``, ``fl.prefix`` and so on), else 5 s and 2 s.

    Where the locks are: ``prefix`` (Redis, ``fencelock:``), ``collection`` (MongoDB,
    ``fencelock.locks``), ``root`` (ZooKeeper, ``/fencelock``). ``node_layout`` (ZooKeeper):
    ``curator``, ``kazoo`` or ``plain``, for the library whose locks ours must exclude.

    Raises InvalidArgument, Unsupported, AuthFailed, or Unavailable within the connect timeout.
    """
    _exit.register()
    call = _native.Client.connect(
        url, connect_timeout, request_timeout, prefix, collection, root, node_layout
    )
    return Client(call.wait())


async def connect_async(
    url: str | None = None,
    *,
    connect_timeout: float | None = None,
    request_timeout: float | None = None,
    prefix: str | None = None,
    collection: str | None = None,
    root: str | None = None,
    node_layout: str | None = None,
) -> "Client":
    """``connect`` for asyncio. Cancel-safe. The client serves all loops and threads alike."""
    _exit.register()
    call = _native.Client.connect(
        url, connect_timeout, request_timeout, prefix, collection, root, node_layout
    )
    return Client(await run(call))


class Client:
    """The connections to one backend, with one watchdog for all locks. Made by ``connect``.

    It may be shared between threads and event loops. As a block it closes itself:
    ``with fencelock.connect(url) as client``, and the same with ``async``.
    """

    __slots__ = ("__weakref__", "_holdings", "_native")

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        self._holdings = Holdings()

    def lock(
        self,
        name: str,
        *,
        ttl: float = 30.0,
        timeout: float | None = None,
        renew: bool = True,
        max_hold: float | None = None,
        metadata: str | None = None,
    ) -> Lock:
        """A lock. No I/O. Times in seconds.

        ``ttl``: how long the backend keeps a lease without renewal, 100 ms to 24 h.
        ``timeout``: how long ``acquire`` and the block wait; None = for ever, 0 = one attempt.
        ``renew``: False = a fixed lease that ends at ttl unless ``lease.renew()`` is called.
        ``max_hold``: the longest time that a lease may be held, for holders that may hang.
        ``metadata``: a short text that ``inspect`` shows; default: host, process id, language.

        Raises InvalidArgument, Forked.
        """
        native = self._native.lock(name, ttl, timeout, renew, max_hold, metadata)
        return Lock(self._native, native, timeout)

    def rlock(
        self,
        name: str,
        *,
        ttl: float = 30.0,
        timeout: float | None = None,
        renew: bool = True,
        max_hold: float | None = None,
        metadata: str | None = None,
    ) -> RLock:
        """The reentrant form of ``lock``, owned by the current task, or thread where none runs."""
        lock = self.lock(
            name,
            ttl=ttl,
            timeout=timeout,
            renew=renew,
            max_hold=max_hold,
            metadata=metadata,
        )
        return RLock(lock, self._holdings)

    def inspect(self, name: str) -> LockInfo:
        """What the backend knows of a name. Raises Unavailable and what ``acquire`` raises."""
        return from_raw(self._native.inspect(name).wait())

    async def inspect_async(self, name: str) -> LockInfo:
        """``inspect`` for asyncio."""
        return from_raw(await run(self._native.inspect(name)))

    def list(self) -> builtins.list[LockInfo]:
        """All names of this backend and prefix that are held.

        Walks all keys: a tool for people, not for programs.
        """
        return [from_raw(raw) for raw in self._native.list().wait()]

    async def list_async(self) -> builtins.list[LockInfo]:
        """``list`` for asyncio."""
        return [from_raw(raw) for raw in await run(self._native.list())]

    def force_release(self, name: str) -> bool:
        """Ends the lease that holds the name, whoever's it is; False if nobody held it.

        The former holder is told later, so for that long two may believe to hold the lock: for
        emergencies only.
        """
        return bool(self._native.force_release(name).wait())

    async def force_release_async(self, name: str) -> bool:
        """``force_release`` for asyncio."""
        return bool(await run(self._native.force_release(name)))

    def close(self) -> None:
        """Releases all leases, ends all waits with Closed, closes the connections, within 500 ms.

        Closing twice is fine. Raises Forked in a forked child.
        """
        call = self._native.close()
        if not self.closed:
            call.wait()

    async def close_async(self) -> None:
        """``close`` for asyncio. Cancelled, it goes on in the background."""
        call = self._native.close()
        if not self.closed:
            await run(call)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._native.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(Forked):  # the parent's
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(Forked):  # the parent's
            await self.close_async()

    def __repr__(self) -> str:
        return f"<fencelock.Client{' closed' if self.closed else ''}>"
