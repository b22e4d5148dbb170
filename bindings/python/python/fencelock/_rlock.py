"""The reentrant form of a lock."""

import threading
from collections.abc import Coroutine
from typing import Any

from . import _native
from ._block import DEFAULT, Block, Default, current_owner
from ._errors import LockLost, NotOwner
from ._lease import Lease
from ._lock import Lock


class Holding:
    """One lease of one owner, and the holds on it that were not given back yet."""

    __slots__ = ("holds", "native")

    def __init__(self, native: _native.Lease) -> None:
        self.native = native
        self.holds: list[Hold] = []


class Holdings:
    """What the reentrant locks of one client hold, by name and owner.

    The count is here and not in the lock object, so that two objects of one name agree.
    """

    def __init__(self) -> None:
        self._by_owner: dict[tuple[str, object], Holding] = {}
        # Never held across a call or a wait.
        self._mutex = threading.Lock()

    def again(self, name: str, owner: object) -> "Hold | None":
        """One more hold, if the owner has the lock. Raises LockLost if it had it and lost it."""
        holding = self.find(name, owner)
        if holding is None:
            return None
        holding.native.check()
        return self._add(name, owner, holding)

    def first(self, name: str, owner: object, native: _native.Lease) -> "Hold":
        """The first hold on a new lease."""
        return self._add(name, owner, Holding(native))

    def find(self, name: str, owner: object) -> Holding | None:
        """What the owner holds."""
        return self._by_owner.get((name, owner))

    def _add(self, name: str, owner: object, holding: Holding) -> "Hold":
        hold = Hold(self, name, owner, holding)
        with self._mutex:
            holding.holds.append(hold)
            self._by_owner[name, owner] = holding
        return hold

    def give_back(self, name: str, owner: object, holding: Holding, hold: "Hold") -> bool:
        """Takes one hold back. True if it was the last one."""
        with self._mutex:
            holding.holds.remove(hold)
            if holding.holds:
                return False
            if self._by_owner.get((name, owner)) is holding:
                del self._by_owner[name, owner]
            return True


class Hold(Lease):
    """One hold on a reentrant lock: a lease that gives back exactly this hold, once."""

    __slots__ = ("_given_back", "_holding", "_holdings", "_last", "_lock_owner")

    def __init__(self, holdings: Holdings, name: str, owner: object, holding: Holding) -> None:
        super().__init__(holding.native)
        self._holdings = holdings
        self._holding = holding
        self._lock_owner = owner
        self._given_back = False
        self._last = False

    @property
    def held(self) -> bool:
        return not self._given_back and super().held

    @property
    def remaining(self) -> float:
        return 0.0 if self._given_back else super().remaining

    def check(self) -> None:
        if self._given_back:
            raise LockLost(f"lock {self.name}: this hold was given back")
        super().check()

    def _release(self) -> _native.Call | None:
        if not self._given_back:
            release = self._native.release()  # first, because it raises in a forked child
            self._given_back = True
            self._last = self._holdings.give_back(self.name, self._lock_owner, self._holding, self)
            if not self._last:
                self._native.check()
                return None
            return release
        return self._native.release() if self._last else None

    def _abandon(self) -> None:
        if not self._given_back and self._release() is not None:
            self._native.abandon()


class RLock(Block):
    """A reentrant lock: who holds it may take it again, and gives it back as often.

    Made by ``Client.rlock``. It is owned by the task that runs, or by the thread where none runs.
    The count belongs to the client: two objects of one name agree.

    Each ``acquire`` returns a lease that gives back exactly that hold, once. A hold that is neither
    given back nor needed any more is not released by dropping it, only with the client.
    """

    __slots__ = ("__weakref__", "_holdings", "_lock")

    def __init__(self, lock: Lock, holdings: Holdings) -> None:
        super().__init__(lock.name)
        self._lock = lock
        self._holdings = holdings

    def acquire(self, *, timeout: float | Default | None = DEFAULT) -> Lease:
        """``Lock.acquire``; at once if the current owner holds the lock.

        Raises LockLost if the current owner holds a lease of this name that was lost.
        """
        owner = current_owner()
        hold = self._holdings.again(self.name, owner)
        if hold is None:
            lease = self._lock.acquire(timeout=timeout)
            hold = self._holdings.first(self.name, owner, lease._native)
        return hold

    # Not `async def`: up to Python 3.11 `wait_for` runs a coroutine in a task of its own, and that
    # task would own the lock.
    def acquire_async(
        self, *, timeout: float | Default | None = DEFAULT
    ) -> Coroutine[Any, Any, Lease]:
        """``acquire`` for asyncio. Cancel-safe. The owner is the task that calls it."""
        return self._acquire_async(current_owner(), timeout)

    async def _acquire_async(self, owner: object, timeout: float | Default | None) -> Lease:
        hold = self._holdings.again(self.name, owner)
        if hold is None:
            lease = await self._lock.acquire_async(timeout=timeout)
            hold = self._holdings.first(self.name, owner, lease._native)
        return hold

    def try_acquire(self) -> Lease | None:
        """``Lock.try_acquire``; succeeds if the current owner holds the lock."""
        owner = current_owner()
        hold = self._holdings.again(self.name, owner)
        if hold is None:
            lease = self._lock.try_acquire()
            if lease is None:
                return None
            hold = self._holdings.first(self.name, owner, lease._native)
        return hold

    def try_acquire_async(self) -> Coroutine[Any, Any, Lease | None]:
        """``try_acquire`` for asyncio. Cancel-safe. The owner is the task that calls it."""
        return self._try_acquire_async(current_owner())

    async def _try_acquire_async(self, owner: object) -> Lease | None:
        hold = self._holdings.again(self.name, owner)
        if hold is None:
            lease = await self._lock.try_acquire_async()
            if lease is None:
                return None
            hold = self._holdings.first(self.name, owner, lease._native)
        return hold

    def release(self) -> None:
        """Gives back the current owner's latest hold.

        Raises NotOwner, a RuntimeError, if the current task or thread holds none; else as
        ``Lease.release``.
        """
        self._latest().release()

    async def release_async(self) -> None:
        """``release`` for asyncio."""
        await self._latest().release_async()

    def _latest(self) -> Lease:
        holding = self._holdings.find(self.name, current_owner())
        if holding is None:
            raise NotOwner(f"lock {self.name}: this task or thread does not hold it")
        return holding.holds[-1]

    def locked(self) -> bool:
        """``Lock.locked``."""
        return self._lock.locked()

    async def locked_async(self) -> bool:
        """``Lock.locked_async``."""
        return await self._lock.locked_async()
