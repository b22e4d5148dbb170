"""Acquire and release from Python, turn by turn as the benchmark asks for it.

One line of JSON in, `["fencelock", 200]`, gives one line out: nanoseconds of each cycle.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

import fencelock
import redis


def timed(cycle: Callable[[], None], count: int) -> list[int]:
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        cycle()
        times.append(time.perf_counter_ns() - start)
    return times


async def timed_async(lock: fencelock.Lock, count: int) -> list[int]:
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        async with lock:
            pass
        times.append(time.perf_counter_ns() - start)
    return times


def main(url: str) -> None:
    ours = fencelock.connect(url).lock("bench/python", ttl=30.0)
    theirs = redis.Redis.from_url(url).lock("bench/redis-py", timeout=30.0)

    def cycle_of_ours() -> None:
        with ours:
            pass

    def cycle_of_theirs() -> None:
        with theirs:
            pass

    with asyncio.Runner() as runner:
        for line in sys.stdin:
            what, count = json.loads(line)
            if what == "fencelock":
                times = timed(cycle_of_ours, count)
            elif what == "fencelock-async":
                times = runner.run(timed_async(ours, count))
            else:
                times = timed(cycle_of_theirs, count)
            print(json.dumps(times), flush=True)


main(sys.argv[1])
