"""Entering and leaving `with` blocks."""

import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import fencelock
from fencelock import Client, Lease
from support import LIMIT, RedisServer, freeze


class BodyError(Exception):
    pass


def lose(client: Client, lease: Lease) -> None:
    """The backend ends the lease; the holder learns of it at once."""
    client.force_release(lease.name)
    with pytest.raises(fencelock.LockLost):
        lease.renew()
    assert not lease.held


def test_the_body_does_not_run_without_the_lock(client: Client, name: str) -> None:
    lock = client.lock(name, timeout=0.05)
    with lock, pytest.raises(fencelock.LockTimeout), lock:
        raise AssertionError("the body must not run")
    assert not lock.locked()


def test_leaving_raises_if_the_lease_was_lost(client: Client, name: str) -> None:
    with pytest.raises(fencelock.LockLost), client.lock(name) as lease:
        lose(client, lease)


def test_leaving_never_masks_the_error_of_the_body(client: Client, name: str) -> None:
    with pytest.raises(BodyError) as raised, client.lock(name) as lease:
        lose(client, lease)
        raise BodyError
    assert isinstance(raised.value.__context__, fencelock.LockLost)
    assert any("LockLost" in note for note in raised.value.__notes__)


def test_a_loss_is_attached_behind_an_earlier_context(client: Client, name: str) -> None:
    with pytest.raises(BodyError) as raised, client.lock(name) as lease:
        lose(client, lease)
        try:
            raise KeyError
        except KeyError:
            raise BodyError from None
    assert isinstance(raised.value.__context__, KeyError)
    assert isinstance(raised.value.__context__.__context__, fencelock.LockLost)


def test_the_body_itself_finds_the_loss(client: Client, name: str) -> None:
    with pytest.raises(fencelock.LockLost) as raised, client.lock(name) as lease:
        lose(client, lease)
        lease.check()
    assert not hasattr(raised.value, "__notes__")


def test_an_error_of_the_body_releases(client: Client, name: str) -> None:
    lock = client.lock(name)
    with pytest.raises(BodyError), lock:
        raise BodyError
    assert not lock.locked()


def test_a_body_may_release_by_itself(client: Client, name: str) -> None:
    with client.lock(name) as lease:
        lease.release()
        second = client.lock(name).acquire(timeout=LIMIT)
    assert second.held  # leaving did not touch it
    second.release()


def test_a_lease_is_a_block_too(client: Client, name: str) -> None:
    lock = client.lock(name)
    with lock.acquire(timeout=LIMIT) as lease:
        assert lease.held
    assert not lease.held
    assert not lock.locked()


def test_blocks_of_one_object_in_many_threads(client: Client, name: str) -> None:
    lock = client.lock(name)
    inside = 0

    def work(_: int) -> None:
        nonlocal inside
        for _ in range(20):
            with lock as lease:
                inside += 1
                assert inside == 1 and lease.held
                inside -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert not lock.locked()


def test_a_block_may_be_left_in_another_thread(client: Client, name: str) -> None:
    # Frameworks run the two halves of a generator in different threads of a pool.
    lock = client.lock(name)
    thread = threading.Thread(target=lock.__enter__)
    thread.start()
    thread.join()
    assert lock.locked()
    lock.__exit__(None, None, None)
    assert not lock.locked()
    with pytest.raises(fencelock.InvalidArgument):
        lock.__exit__(None, None, None)


def test_leaving_does_not_raise_unavailable(
    own_redis: RedisServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = fencelock.connect(own_redis.url, request_timeout=0.7)
    with caplog.at_level(logging.WARNING, "fencelock"):
        with client.lock(name, ttl=30):
            freeze(own_redis.process)
        assert any("background" in record.message for record in caplog.records)
    own_redis.process.send_signal(signal.SIGCONT)
    # The release went on: the lock is free long before its ttl.
    client.lock(name).acquire(timeout=LIMIT).release()
    client.close()


def test_an_explicit_release_raises_unavailable(own_redis: RedisServer, name: str) -> None:
    client = fencelock.connect(own_redis.url, request_timeout=0.7)
    lease = client.lock(name, ttl=30).acquire()
    with own_redis.frozen(), pytest.raises(fencelock.Unavailable):
        lease.release()
    lease.release()
    client.close()
