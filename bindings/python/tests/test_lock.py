"""Locks and leases from threads: the contract, guarantee by guarantee."""

import functools
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import fencelock
from fencelock import Client
from support import LIMIT, wait_until


def test_g1_at_most_one_lease_is_held(client: Client, other: Client, name: str) -> None:
    inside = 0
    counter = 0

    def work(number: int) -> None:
        nonlocal inside, counter
        lock = (client, other)[number % 2].lock(name)
        for _ in range(25):
            with lock as lease:
                inside += 1
                assert inside == 1
                value = counter
                time.sleep(0)
                counter = value + 1
                assert lease.held
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert counter == 200


def test_g1_threads_that_share_one_lock_object_exclude_each_other(
    client: Client, name: str
) -> None:
    lock = client.lock(name, timeout=0.05)
    entered = threading.Event()
    leave = threading.Event()

    def work() -> int:
        with lock as lease:
            entered.set()
            assert leave.wait(LIMIT)
            assert lease.held  # the other thread's time-out and leaving did not touch it
            return lease.token

    with ThreadPoolExecutor(1) as pool:
        token = pool.submit(work)
        assert entered.wait(LIMIT)
        with pytest.raises(fencelock.LockTimeout), lock:
            raise AssertionError("the body must not run")
        assert lock.try_acquire() is None
        leave.set()
        with lock.acquire(timeout=LIMIT) as lease:
            assert lease.token > token.result(LIMIT)


def test_g2_a_lease_that_is_not_renewed_ends_before_its_ttl(client: Client, name: str) -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    lease = client.lock(name, ttl=0.4, renew=False).acquire()
    assert lease.held
    assert 0 < lease.remaining <= 0.4
    assert lease.lost.wait(LIMIT)
    assert time.clock_gettime(time.CLOCK_BOOTTIME) - before >= 0.3
    assert not lease.held
    assert lease.lost.is_set()
    assert lease.remaining == 0
    with pytest.raises(fencelock.LockLost):
        lease.check()
    with pytest.raises(fencelock.LockLost):
        lease.release()


def test_g2_renewal_keeps_a_lease_much_longer_than_its_ttl(client: Client, name: str) -> None:
    with client.lock(name, ttl=1.5) as lease:
        assert not lease.lost.wait(3.0)
        assert lease.held
        lease.check()


def test_g2_renew_sets_a_fixed_lease_to_a_full_ttl(client: Client, name: str) -> None:
    lease = client.lock(name, ttl=2.0, renew=False).acquire()
    time.sleep(0.5)
    start = time.monotonic()
    lease.renew()
    assert lease.lost.wait(LIMIT)
    # Where a lease lives in a session, `remaining` does not show the whole of it at once.
    assert time.monotonic() - start > 1.97
    with pytest.raises(fencelock.LockLost):
        lease.renew()


def test_g2_max_hold_ends_a_lease_that_is_renewed(client: Client, name: str) -> None:
    lease = client.lock(name, ttl=0.9, max_hold=1.8).acquire()
    assert lease.lost.wait(LIMIT)
    assert client.lock(name).acquire(timeout=LIMIT).held


def test_g3_tokens_rise(client: Client, other: Client, name: str) -> None:
    tokens = []
    for user in (client, other) * 10:
        with user.lock(name) as lease:
            tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


def has_queue(client: Client, name: str, length: int) -> bool:
    return len(client.inspect(name).queue) == length


def test_g5_contenders_are_served_in_order(client: Client, other: Client, name: str) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        with (client, other)[number % 2].lock(name):
            order.append(number)

    with ThreadPoolExecutor(6) as pool:
        first = client.lock(name).acquire()
        for number in range(6):
            pool.submit(work, number)
            wait_until(functools.partial(has_queue, client, name, number + 1))
        first.release()
    assert order == list(range(6))


def test_g5_try_and_timeout_0_succeed_on_a_free_lock(client: Client, name: str) -> None:
    lock = client.lock(name)
    lease = lock.try_acquire()
    assert lease is not None
    assert lock.try_acquire() is None
    with pytest.raises(fencelock.LockTimeout):
        lock.acquire(timeout=0)
    assert client.inspect(name).queue == ()
    lease.release()
    with lock.acquire(timeout=0) as lease:
        assert lease.held


def test_g6_a_late_owner_disturbs_nobody(client: Client, other: Client, name: str) -> None:
    late = client.lock(name, ttl=0.2, renew=False).acquire()
    lease = other.lock(name).acquire(timeout=LIMIT)
    assert not late.held
    with pytest.raises(fencelock.LockLost):
        late.release()
    with pytest.raises(fencelock.LockLost):
        late.renew()
    assert lease.held
    assert other.inspect(name).owner == lease.owner
    lease.release()


def test_g7_a_timeout_leaves_nothing(client: Client, name: str) -> None:
    with client.lock(name):
        start = time.monotonic()
        with pytest.raises(fencelock.LockTimeout) as error:
            client.lock(name).acquire(timeout=0.1)
        assert 0.1 <= time.monotonic() - start < 2
        assert name in str(error.value)
        wait_until(lambda: client.inspect(name).queue == ())
    assert client.inspect(name).state == "free"


def test_g7_a_second_acquire_does_not_disturb_the_first(client: Client, name: str) -> None:
    lock = client.lock(name)
    lease = lock.acquire()
    with pytest.raises(fencelock.LockTimeout):
        lock.acquire(timeout=0.05)
    assert lease.held
    lease.release()
    assert not lock.locked()


def test_g7_the_last_reference_releases(client: Client, name: str) -> None:
    lock = client.lock(name)
    lock.acquire()
    lock.acquire(timeout=LIMIT)
    lease = lock.acquire(timeout=LIMIT)
    gone = weakref.ref(lease)
    lost = lease.lost
    waiting = threading.Thread(target=lost.wait)
    waiting.start()
    del lease
    assert gone() is None
    # Who only watches does not keep it, and is told that it was not lost.
    waiting.join(LIMIT)
    assert not waiting.is_alive()
    assert not lost.is_set()
    lock.acquire(timeout=LIMIT).release()


def test_g7_a_lease_outlives_its_client_object(url: str, name: str) -> None:
    lease = fencelock.connect(url).lock(name, ttl=1.5).acquire()
    assert not lease.lost.wait(1.8)
    assert lease.held
    lease.release()


def test_g8_release_may_be_repeated(client: Client, name: str) -> None:
    lease = client.lock(name).acquire()
    lease.release()
    assert not lease.held
    lease.release()
    assert not lease.lost.is_set()
    with pytest.raises(fencelock.LockLost, match="released"):
        lease.check()
    with pytest.raises(fencelock.LockLost):
        lease.__enter__()


def test_a_lease_may_be_released_by_another_thread(client: Client, name: str) -> None:
    lease = client.lock(name).acquire()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lease.release).result(LIMIT)
    assert not lease.held
    assert not client.lock(name).locked()


def test_closing_a_client_releases_and_ends_waits(url: str, other: Client, name: str) -> None:
    client = fencelock.connect(url)
    lease = client.lock(name).acquire()
    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(client.lock(name).acquire)
        wait_until(lambda: client.inspect(name).queue)
        client.close()
        with pytest.raises(fencelock.Closed):
            wait.result(LIMIT)
    assert client.closed
    client.close()
    assert not lease.held
    lease.release()
    with pytest.raises(fencelock.Closed):
        client.lock(name).acquire()
    with pytest.raises(fencelock.Closed):
        client.inspect(name)
    assert other.lock(name).try_acquire() is not None


def test_close_during_calls_from_20_threads(url: str, name: str) -> None:
    client = fencelock.connect(url)
    calls = 0

    def work(number: int) -> None:
        nonlocal calls
        lock = client.lock(f"{name}/{number % 3}", ttl=1.0)
        while True:
            try:
                with lock:
                    calls += 1
                lock.locked()
                client.inspect(name)
            except (fencelock.Closed, fencelock.LockLost):
                if client.closed:
                    return
                raise

    with ThreadPoolExecutor(20) as pool:
        works = [pool.submit(work, number) for number in range(20)]
        wait_until(lambda: calls > 100)
        client.close()
        for done in works:
            done.result(LIMIT)


def test_inspect_list_and_force_release(client: Client, other: Client, name: str, url: str) -> None:
    assert client.inspect(name) == fencelock.LockInfo(
        name, "free", None, None, None, None, None, ()
    )
    lease = client.lock(name, ttl=20, metadata="first").acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.lock(name, metadata="second").acquire)
        wait_until(lambda: client.inspect(name).queue)
        info = other.inspect(name)
        assert (info.name, info.state, info.owner) == (name, "held", lease.owner)
        assert (info.token, info.metadata) == (lease.token, "first")
        if url.startswith("zookeeper:"):
            assert info.held_ms is None and info.ttl_left_ms is None
        else:
            assert info.held_ms is not None and info.held_ms >= 0
            assert info.ttl_left_ms is not None and 0 < info.ttl_left_ms <= 20_000
        (waiter,) = info.queue
        assert len(waiter.owner) == 32 and waiter.owner != lease.owner
        assert waiter.metadata == "second" and waiter.waiting_ms >= 0
        assert name in [found.name for found in client.list()]
        with pytest.raises(AttributeError):
            info.state = "free"  # type: ignore[misc]

        assert client.force_release(name)
        next_lease = waiting.result(LIMIT)
    assert next_lease.token > lease.token
    with pytest.raises(fencelock.LockLost):
        lease.release()
    next_lease.release()
    assert not client.force_release(name)
    assert name not in [found.name for found in client.list()]


def test_the_default_metadata_names_the_language(client: Client, name: str) -> None:
    with client.lock(name):
        metadata = client.inspect(name).metadata
    assert metadata is not None and "lang=python" in metadata


def test_g10_seconds_are_exact_to_the_millisecond(client: Client, name: str) -> None:
    with client.lock(name, ttl=1.5, renew=False) as lease:
        assert 0.5 < lease.remaining <= 1.483
