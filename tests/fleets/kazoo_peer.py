"""kazoo's ``Lock`` as a peer in tests: HOSTS PATH [EXTRA_LOCK_PATTERN...]."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from peer import obey


class KazooLock:
    """kazoo's lock, whose time-out is an exception."""

    def __init__(self, client: KazooClient, path: str, patterns: list[str]) -> None:
        self._lock = client.Lock(path, extra_lock_patterns=patterns)

    def acquire(self, timeout: float | None) -> bool:
        """Also with 0, where kazoo wants another argument."""
        try:
            return bool(self._lock.acquire(blocking=timeout != 0, timeout=timeout or None))
        except LockTimeout:
            return False

    def release(self) -> None:
        """Gives it back."""
        self._lock.release()


def main() -> None:
    hosts, path, *patterns = sys.argv[1:]
    client = KazooClient(hosts)
    client.start()
    obey(KazooLock(client, path, patterns))
    client.stop()
    client.close()


main()
