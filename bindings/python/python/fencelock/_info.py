"""What ``inspect`` and ``list`` show."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

# As the native module gives them.
RawWaiter: TypeAlias = tuple[str, int, str | None]
RawInfo: TypeAlias = tuple[
    str,
    Literal["free", "held", "foreign"],
    str | None,
    int | None,
    int | None,
    int | None,
    str | None,
    list[RawWaiter],
]


@dataclass(frozen=True, slots=True)
class WaiterInfo:
    """One contender of a queue."""

    owner: str
    """The owner id, 32 hexadecimal digits."""
    waiting_ms: int
    """For how long it has been waiting, in milliseconds."""
    metadata: str | None
    """What it said of itself."""


@dataclass(frozen=True, slots=True)
class LockInfo:
    """What the backend knew of one name at one instant.

    For people and tools, never for decisions: it may be out of date when it arrives.
    """

    name: str
    """The name of the lock."""
    state: Literal["free", "held", "foreign"]
    """``"free"``, ``"held"`` by a lease of this library, or ``"foreign"``: by another client."""
    owner: str | None
    """The owner id of the holder; of a foreign holder its value."""
    token: int | None
    """The fencing token of the lease; None for a foreign holder."""
    held_ms: int | None
    """For how long it has been held, in milliseconds; None if that is not known."""
    ttl_left_ms: int | None
    """What is left of the holder's time, in milliseconds; None if it has no limit."""
    metadata: str | None
    """What the holder said of itself."""
    queue: tuple[WaiterInfo, ...]
    """Who waits, in the order of service."""


def from_raw(raw: RawInfo) -> LockInfo:
    """Names the fields of what the native module gives."""
    name, state, owner, token, held_ms, ttl_left_ms, metadata, queue = raw
    waiters = tuple(WaiterInfo(*waiter) for waiter in queue)
    return LockInfo(name, state, owner, token, held_ms, ttl_left_ms, metadata, waiters)
