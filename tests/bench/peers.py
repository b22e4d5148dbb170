"""Locks driven from Python, ours and those it is compared with, turn by turn as the benchmark asks.

One line of JSON in, `[what, lock, number]`, gives one line out:

["cycle", lock, n]     nanoseconds of each of n cycles of acquire and release
["acquire", lock, 0]   the instants before and after a blocking acquire
["release", lock, ms]  holds that much longer; the instant before release
"""

import asyncio
import contextlib
import json
import sys
import time

import fencelock
import redis
import redis_lock  # type: ignore[import-untyped]
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from pottery import Redlock

TTL = 30
now = time.monotonic_ns


def connect(url: str) -> dict[str, contextlib.AbstractContextManager[object]]:
    """Each as its own manual shows it, with the same ttl, and a client of its own."""
    ours = fencelock.connect(url).lock("bench/python", ttl=TTL)
    if url.startswith("zookeeper:"):
        kazoo = KazooClient(url.removeprefix("zookeeper://").rstrip("/"), timeout=TTL)
        kazoo.start()
        return {"fencelock": ours, "kazoo": kazoo.Lock("/bench/kazoo", "bench")}
    return {
        "fencelock": ours,
        "redis-py": redis.Redis.from_url(url).lock("bench/redis-py", timeout=TTL),
        "python-redis-lock": redis_lock.Lock(
            redis.Redis.from_url(url), "bench/python-redis-lock", expire=TTL
        ),
        "pottery": Redlock(
            key="bench/pottery", masters={redis.Redis.from_url(url)}, auto_release_time=TTL
        ),
    }


def cycles(lock: contextlib.AbstractContextManager[object], count: int) -> list[int]:
    times = []
    for _ in range(count):
        start = now()
        with lock:
            pass
        times.append(now() - start)
    return times


async def cycles_async(lock: fencelock.Lock, count: int) -> list[int]:
    times = []
    for _ in range(count):
        start = now()
        async with lock:
            pass
        times.append(now() - start)
    return times


def main(url: str) -> None:
    locks = connect(url)
    ours_async = fencelock.connect(url).lock("bench/python-async", ttl=TTL)
    held = contextlib.ExitStack()
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            what, name, number = json.loads(line)
            answer: object
            if what == "acquire":
                asked = now()
                held.enter_context(locks[name])
                answer = [asked, now()]
            elif what == "release":
                time.sleep(number / 1e3)
                answer = now()
                held.close()
            elif name == "fencelock-async":
                answer = runner.run(cycles_async(ours_async, number))
            else:
                answer = cycles(locks[name], number)
            print(json.dumps(answer), flush=True)


main(sys.argv[1])
