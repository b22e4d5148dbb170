"""The ZooKeeper lock that many wrote by hand, as a peer in tests: HOSTS PATH.

Each contender makes an ephemeral sequential node with an empty name, so that its name is the bare
sequence number. Names are sorted as strings; the first holds, the others watch the one before them.
"""

import contextlib
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from peer import obey


class HandWrittenLock:
    """As found in the wild, with a wait that ends."""

    def __init__(self, client: KazooClient, path: str) -> None:
        self._client = client
        self._path = path
        self._node = ""

    def acquire(self, timeout: float | None) -> bool:
        """Queues; false if that took longer than the timeout."""
        end = None if timeout is None else time.monotonic() + timeout
        self._ensure_path()
        node = self._client.create(f"{self._path}/", ephemeral=True, sequence=True)
        name = node.rpartition("/")[2]
        while True:
            names = sorted(self._client.get_children(self._path))
            if names[0] == name:
                self._node = node
                return True
            before = names[names.index(name) - 1]
            gone = threading.Event()
            left = None if end is None else end - time.monotonic()
            if self._client.exists(f"{self._path}/{before}", lambda _, gone=gone: gone.set()) and (
                not gone.wait(left)
            ):
                self._client.delete(node)
                return False

    def release(self) -> None:
        """Deletes the node."""
        self._client.delete(self._node)

    def _ensure_path(self) -> None:
        with contextlib.suppress(NodeExistsError):
            self._client.create(self._path, makepath=True)


def main() -> None:
    hosts, path = sys.argv[1:]
    client = KazooClient(hosts)
    client.start()
    obey(HandWrittenLock(client, path))
    client.stop()
    client.close()


main()
