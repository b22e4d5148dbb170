"""A busy host does not starve the watchdog, and a stopped one finds out first thing."""

import asyncio
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fencelock
from conftest import backend_url
from fencelock import Client
from support import LIMIT, Program, RedisServer, freeze, wait_until

TTL = 1.5
BUSY = 1.5 * TTL


def python_loop() -> None:
    end = time.monotonic() + BUSY
    while time.monotonic() < end:
        pass


def one_long_c_call(count: int = 1_000_000) -> None:
    """One call that never gives up the GIL, as long as wanted; finds out how much that is."""
    while True:
        start = time.monotonic()
        sum(range(count))
        took = time.monotonic() - start
        if took >= BUSY:
            return
        count = int(count * min(20, 1.3 * BUSY / took))


def one_long_regex(count: int = 16) -> None:
    while True:
        start = time.monotonic()
        re.match(r"(a+)+b", "a" * count)
        if time.monotonic() - start >= BUSY:
            return
        count += 1


# What renews does not depend on what keeps the GIL: each is tried, but not each with each.
BUSY_WITH = [("memory", python_loop), ("file", one_long_regex), ("redis", one_long_c_call)]
BUSY_WITH += [("mongodb", python_loop), ("zookeeper", one_long_c_call)]


@pytest.mark.parametrize(("backend", "work"), BUSY_WITH)
def test_g2_a_busy_gil_does_not_stop_renewals(
    backend: str, work: Callable[[], None], name: str, tmp_path: Path
) -> None:
    url = backend_url(backend, tmp_path)
    with (
        fencelock.connect(url) as client,
        fencelock.connect(url) as other,
        client.lock(name, ttl=TTL) as lease,
    ):
        work()
        assert lease.held
        assert other.inspect(name).owner == lease.owner
        lease.check()


@pytest.mark.parametrize(("backend", "work"), [*BUSY_WITH, ("redis", lambda: time.sleep(BUSY))])
def test_g2_a_blocked_event_loop_does_not_stop_renewals(
    backend: str, work: Callable[[], None], name: str, tmp_path: Path
) -> None:
    url = backend_url(backend, tmp_path)

    async def main(client: Client, other: Client) -> None:
        async with client.lock(name, ttl=TTL) as lease:
            work()
            assert lease.held
            assert other.inspect(name).owner == lease.owner
            # Completions of others do not wait for the GIL either: the worker stays free.
            waits = [asyncio.create_task(lease.lost.wait_async()) for _ in range(10)]
            await asyncio.sleep(0)
            work()
            assert lease.held
            for wait in waits:
                wait.cancel()

    with fencelock.connect(url) as client, fencelock.connect(url) as other:
        asyncio.run(main(client, other))


def test_g2_a_stopped_process_says_lost_first_thing(shared_url: str, name: str) -> None:
    code = """
import sys, time
import fencelock
url, name = sys.argv[1:]
lease = fencelock.connect(url).lock(name, ttl=0.5).acquire()
before = time.clock_gettime(time.CLOCK_BOOTTIME)
print(lease.token, flush=True)
while True:
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    if now - before > 1.0:
        # The very first look after the pause.
        print(lease.held, flush=True)
        print(lease.lost.is_set(), flush=True)
        try:
            lease.release()
        except fencelock.LockLost:
            print("told", flush=True)
        sys.exit()
    before = now
"""
    with fencelock.connect(shared_url) as client, Program(code, shared_url, name) as program:
        token = int(program.line())
        freeze(program.process)
        # Others get in meanwhile, at most the ttl + 1 s later.
        start = time.monotonic()
        lease = client.lock(name).acquire(timeout=LIMIT)
        assert time.monotonic() - start < 0.5 + 1 + 1
        assert lease.token > token
        time.sleep(max(0.0, 1.25 - (time.monotonic() - start)))
        program.send(signal.SIGCONT)
        assert [program.line() for _ in range(3)] == ["False", "True", "told"]
        program.end(errors=f'lease lost (lock="{name}", token={token})\n')
        assert lease.held
        lease.release()


def test_g4_a_killed_holder_blocks_for_its_ttl_at_most(shared_url: str, name: str) -> None:
    code = """
import sys
import fencelock
url, name = sys.argv[1:]
lease = fencelock.connect(url).lock(name, ttl=0.5).acquire()
print("held", flush=True)
sys.stdin.readline()
"""
    with fencelock.connect(shared_url) as client, Program(code, shared_url, name) as program:
        program.line()
        program.send(signal.SIGKILL)
        start = time.monotonic()
        client.lock(name).acquire(timeout=LIMIT).release()
        assert time.monotonic() - start < 0.5 + 1 + 1


def test_g2_a_frozen_server_means_lost_by_the_deadline(own_redis: RedisServer, name: str) -> None:
    with fencelock.connect(own_redis.url) as client:
        lease = client.lock(name, ttl=0.5).acquire()
        with own_redis.frozen():
            start = time.monotonic()
            assert lease.lost.wait(LIMIT)
            assert time.monotonic() - start < 0.5 + 0.5
            assert not lease.held
            with pytest.raises(fencelock.LockLost):
                start = time.monotonic()
                lease.release()
            assert time.monotonic() - start < 1  # without asking anybody, who has 2 s
        wait_until(lambda: client.lock(name).locked() is False)
        client.lock(name).acquire(timeout=LIMIT).release()


def test_g2_a_frozen_server_cancels_the_body(own_redis: RedisServer, name: str) -> None:
    async def main() -> None:
        async with await fencelock.connect_async(own_redis.url) as client:
            with pytest.raises(fencelock.LockLost):
                async with client.lock(name, ttl=0.5):
                    with own_redis.frozen():
                        await asyncio.sleep(60)

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < 5


def test_g10_waits_are_limited_whatever_the_server_does(own_redis: RedisServer, name: str) -> None:
    with fencelock.connect(own_redis.url, request_timeout=0.7) as client:
        lock = client.lock(name)
        with own_redis.frozen():
            start = time.monotonic()
            with pytest.raises(fencelock.Unavailable):
                lock.try_acquire()
            with pytest.raises(fencelock.FencelockError):
                lock.acquire(timeout=0)
            assert time.monotonic() - start < 2 * (0.7 + 0.05) + 0.5
            start = time.monotonic()
            with pytest.raises(fencelock.LockTimeout):
                lock.acquire(timeout=0.2)
            assert 0.2 <= time.monotonic() - start < 0.2 + 0.05 + 0.5
        # Late requests that arrive now find themselves withdrawn.
        wait_until(lambda: client.inspect(name).state == "free")
        assert client.inspect(name).queue == ()


def test_nobody_listening_is_told_at_once() -> None:
    start = time.monotonic()
    with pytest.raises(fencelock.Unavailable) as error:
        fencelock.connect("redis://127.0.0.1:1/", connect_timeout=2)
    assert time.monotonic() - start < 2 + 0.5
    assert isinstance(error.value, ConnectionError)
