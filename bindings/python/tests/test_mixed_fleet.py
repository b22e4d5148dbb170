"""Our lock and redis-py's `Lock` on one key: old and new instances exclude each other."""

from pathlib import Path

import pytest
import redis

import fencelock
from support import LIMIT, Program, wait_until

INCREMENT = """
import pathlib, sys, time
url, name, rounds, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])

def increment():
    # Unguarded: what two do at once is lost.
    value = int(file.read_text())
    time.sleep(0.0001)
    file.write_text(str(value + 1))
"""

OURS = (
    INCREMENT
    + """
import fencelock
with fencelock.connect(url, prefix="") as client:
    lock = client.lock(name, ttl=10, timeout=60)
    for _ in range(rounds):
        with lock as lease:
            increment()
            lease.check()
"""
)

THEIRS = (
    INCREMENT
    + """
import redis
with redis.Redis.from_url(url) as server:
    lock = server.lock(name, timeout=10, sleep=0.005, blocking_timeout=60)
    for _ in range(rounds):
        with lock:
            increment()
"""
)


def test_g1_mixed_fleet_loses_no_increment(redis_url: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "counter"
    file.write_text("0")
    programs = [Program(code, redis_url, name, "250", str(file)) for code in [OURS, THEIRS] * 4]
    try:
        for program in programs:
            output, errors = program.process.communicate(timeout=90)
            assert (program.process.returncode, output, errors) == (0, "", "")
    finally:
        for program in programs:
            program.__exit__()
    assert int(file.read_text()) == 2000


def test_each_sees_the_other(redis_url: str, name: str) -> None:
    with (
        fencelock.connect(redis_url, prefix="") as client,
        redis.Redis.from_url(redis_url) as server,
    ):
        theirs = server.lock(name, timeout=20)
        assert theirs.acquire(blocking=False)
        info = client.inspect(name)
        assert info.state == "foreign" and info.token is None
        assert info.ttl_left_ms is not None and 0 < info.ttl_left_ms <= 20_000
        ours = client.lock(name)
        assert ours.locked()
        assert ours.try_acquire() is None
        with pytest.raises(fencelock.LockTimeout):
            ours.acquire(timeout=0.1)
        assert theirs.owned()
        theirs.release()

        with ours as lease:
            assert not theirs.acquire(blocking=False)
            assert lease.held
        assert theirs.acquire(blocking=False)
        theirs.release()

        forever = server.lock(name)
        assert forever.acquire(blocking=False)
        assert client.inspect(name).ttl_left_ms is None
        assert client.force_release(name)
        wait_until(lambda: ours.try_acquire() is not None, LIMIT)


def test_a_key_of_another_type_is_a_conflict(redis_url: str, name: str) -> None:
    with fencelock.connect(redis_url) as client, redis.Redis.from_url(redis_url) as server:
        key = f"fencelock:{name}"
        server.hset(key, "a", "b")
        with pytest.raises(fencelock.Conflict):
            client.lock(name).acquire(timeout=5)
        assert server.hgetall(key) == {b"a": b"b"}
        server.delete(key)
