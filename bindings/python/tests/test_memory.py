"""Memory stays flat, and nothing refers to what is over."""

import asyncio
import contextlib
import gc
import os
import resource
import time
from pathlib import Path

import fencelock
from fencelock import Client

SECONDS = float(os.environ.get("FENCELOCK_TEST_MEMORY_SECONDS", "4"))


def resident() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_memory_is_flat(client: Client, name: str) -> None:
    async def tasks(seconds: float) -> int:
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            async with client.lock(f"{name}/{number}"):
                pass
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.lock(f"{name}/x").acquire_async(), 0.0002)
        return number

    def threads(seconds: float) -> int:
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            # Names of their own: no map of all names ever used may grow.
            with client.lock(f"{name}/t/{number}") as lease:
                lease.lost.is_set()
            client.rlock(f"{name}/r/{number}").acquire().release()
            client.inspect(f"{name}/r/{number}")
        return number

    def work(seconds: float) -> None:
        assert threads(seconds) > 10
        assert asyncio.run(tasks(seconds)) > 10

    work(SECONDS / 4)  # pools and caches fill up
    before = resident()
    work(SECONDS / 2)
    # The names themselves are worth some 10,000 x 200 bytes if they are kept.
    assert resident() - before < 3 << 20


def test_clients_leave_nothing(url: str, name: str) -> None:
    def work(count: int) -> None:
        for _ in range(count):
            with fencelock.connect(url) as client, client.lock(name):
                pass
            fencelock.connect(url).lock(name).acquire(timeout=30).release()

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    work(20)
    time.sleep(0.1)
    before, fds = resident(), descriptors()
    work(100)
    end = time.monotonic() + 10
    while descriptors() > fds + 5 and time.monotonic() < end:
        time.sleep(0.02)
    assert descriptors() <= fds + 5
    assert resident() - before < 3 << 20
