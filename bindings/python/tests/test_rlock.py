"""The reentrant form."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import fencelock
from fencelock import Client, InvalidArgument, LockLost, NotOwner
from support import LIMIT


def test_re_entry_counts_and_two_objects_agree(client: Client, other: Client, name: str) -> None:
    first, second = client.rlock(name), client.rlock(name)
    with first as outer, second as inner:
        assert outer.token == inner.token
        with first:
            assert other.lock(name).try_acquire() is None
        assert inner.held
        assert client.lock(name).try_acquire() is None  # a plain lock is not reentrant
    assert not outer.held
    assert not first.locked()


def test_acquire_and_release_as_threading_does(client: Client, name: str) -> None:
    lock = client.rlock(name)
    lock.acquire()
    assert lock.try_acquire() is not None
    lock.release()
    assert lock.locked()
    lock.release()
    assert not lock.locked()
    with pytest.raises(NotOwner) as error:
        lock.release()
    assert isinstance(error.value, RuntimeError)
    assert isinstance(error.value, InvalidArgument)


def test_g6_another_thread_is_another_owner(client: Client, name: str) -> None:
    lock = client.rlock(name)

    def intrude() -> None:
        with pytest.raises(fencelock.LockTimeout):
            lock.acquire(timeout=0.05)
        assert lock.try_acquire() is None
        with pytest.raises(NotOwner):
            lock.release()

    with lock as lease, ThreadPoolExecutor(1) as pool:
        pool.submit(intrude).result(LIMIT)
        assert lease.held


def test_g6_a_thread_never_inherits_from_a_dead_one(client: Client, name: str) -> None:
    # The system uses the number of a dead thread again at once.
    lock = client.rlock(name)
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    found: list[object] = []
    for _ in range(5):
        thread = threading.Thread(target=lambda: found.append(lock.try_acquire()))
        thread.start()
        thread.join()
    assert found == [None] * 5


def test_each_hold_is_given_back_once(client: Client, name: str) -> None:
    lock = client.rlock(name)
    outer = lock.acquire()
    inner = lock.acquire()
    inner.release()
    inner.release()
    assert not inner.held and outer.held
    with pytest.raises(LockLost, match="given back"):
        inner.check()
    with lock as again:
        again.release()  # by the body: leaving must not take the outer hold
    assert outer.held
    # Whoever has the lease may give it back.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(outer.release).result(LIMIT)
    assert not lock.locked()


def test_re_entry_finds_a_loss(client: Client, name: str) -> None:
    lock = client.rlock(name)
    with pytest.raises(LockLost), lock as lease:
        client.force_release(name)
        with pytest.raises(LockLost):
            lease.renew()
        with pytest.raises(LockLost), lock:
            raise AssertionError("the body must not run")
        raise lease_lost(lease)
    with lock as lease:  # afterwards it is as good as new
        assert lease.held


def lease_lost(lease: fencelock.Lease) -> LockLost:
    try:
        lease.check()
    except LockLost as error:
        return error
    raise AssertionError("not lost")


def test_tasks_are_owners(client: Client, name: str) -> None:
    lock = client.rlock(name)
    inside = 0

    async def work() -> None:
        nonlocal inside
        async with lock as outer:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            async with lock as inner:
                assert inner.token == outer.token
                await asyncio.sleep(0)
            assert outer.held
            inside -= 1

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(10)))
        lease = await asyncio.wait_for(lock.acquire_async(), LIMIT)
        again = await asyncio.wait_for(lock.try_acquire_async(), LIMIT)
        assert again is not None and again.token == lease.token
        await lock.release_async()
        await lock.release_async()
        with pytest.raises(NotOwner):
            await lock.release_async()

    asyncio.run(main())
    assert not lock.locked()


def test_a_nested_body_is_cancelled_once_and_told_lost(client: Client, name: str) -> None:
    lock = client.rlock(name, ttl=0.3, renew=False)

    async def main() -> None:
        with pytest.raises(LockLost):
            async with lock, lock:
                await asyncio.sleep(60)
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(main())
