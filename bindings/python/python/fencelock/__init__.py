"""A distributed lock with a watchdog, fencing tokens, a lost signal and hand-off.

    client = fencelock.connect("redis://127.0.0.1/")
    with client.lock("orders/42") as lease:
        ...                     # lease.token protects the data, lease.check() costs no I/O

The same lock serves asyncio: ``async with client.lock("orders/42") as lease``.
"""

from ._client import Client, connect, connect_async
from ._errors import (
    AuthFailed,
    Cancelled,
    Closed,
    Conflict,
    FencelockError,
    Forked,
    Internal,
    InvalidArgument,
    LockLost,
    LockTimeout,
    NotOwner,
    Unavailable,
    Unsupported,
)
from ._info import LockInfo, WaiterInfo
from ._lease import Lease, Lost
from ._lock import Lock
from ._native import __version__
from ._rlock import RLock

__all__ = [
    "AuthFailed",
    "Cancelled",
    "Client",
    "Closed",
    "Conflict",
    "FencelockError",
    "Forked",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Lock",
    "LockInfo",
    "LockLost",
    "LockTimeout",
    "Lost",
    "NotOwner",
    "RLock",
    "Unavailable",
    "Unsupported",
    "WaiterInfo",
    "__version__",
    "connect",
    "connect_async",
]
