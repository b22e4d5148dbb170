"""The same locks from asyncio: nothing blocks the loop, and every await may be cancelled."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import fencelock
from fencelock import Client, Lease, Lock
from support import LIMIT, RedisServer, wait_until

Main = Coroutine[Any, Any, None]


def run(main: Callable[[], Main]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(limited(), debug=False)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - the state is a server's
            await asyncio.sleep(0.002)


async def lose(client: Client, lease: Lease) -> None:
    """The backend ends the lease; the holder learns of it at once."""
    await client.force_release_async(lease.name)
    with pytest.raises(fencelock.LockLost):
        await lease.renew_async()


def test_all_verbs(url: str, name: str) -> None:
    async def main() -> None:
        async with await fencelock.connect_async(url) as client:
            lock = client.lock(name, ttl=5)
            async with lock as lease:
                assert lease.held and await lock.locked_async()
                assert await lock.try_acquire_async() is None
                with pytest.raises(fencelock.LockTimeout):
                    await lock.acquire_async(timeout=0.05)
                await lease.renew_async()
                assert (await client.inspect_async(name)).owner == lease.owner
                assert name in [info.name for info in await client.list_async()]
            assert not lease.held
            again = await lock.try_acquire_async()
            assert again is not None and again.token > lease.token
            await again.release_async()
            await again.release_async()
            async with await lock.acquire_async() as lease:
                assert lease.held
            assert not await client.force_release_async(name)
        assert client.closed
        with pytest.raises(fencelock.Closed):
            await lock.acquire_async()

    run(main)


def test_g1_tasks_that_share_one_lock_object(client: Client, other: Client, name: str) -> None:
    locks = client.lock(name), other.lock(name)
    inside = counter = 0

    async def work(number: int) -> None:
        nonlocal inside, counter
        for _ in range(10):
            async with locks[number % 2] as lease:
                inside += 1
                assert inside == 1
                value = counter
                await asyncio.sleep(0)
                counter = value + 1
                assert lease.held
                inside -= 1

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(16):
                group.create_task(work(number))

    run(main)
    assert counter == 160


def test_the_loop_runs_while_a_task_waits(client: Client, name: str) -> None:
    async def main() -> None:
        async with client.lock(name):
            wait = asyncio.create_task(client.lock(name).acquire_async(timeout=0.5))
            ticks = 0
            while not wait.done():
                await asyncio.sleep(0.005)
                ticks += 1
            assert ticks > 20
            assert isinstance(wait.exception(), fencelock.LockTimeout)

    run(main)


def test_a_lost_lease_cancels_the_body(client: Client, name: str) -> None:
    async def main() -> None:
        start = time.monotonic()
        with pytest.raises(fencelock.LockLost) as raised:
            async with client.lock(name, ttl=0.3, renew=False):
                await asyncio.sleep(60)
        assert 0.2 < time.monotonic() - start < 10
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0.01)  # no cancellation is left over

    run(main)


def test_a_body_that_swallows_the_cancellation(client: Client, name: str) -> None:
    async def main() -> None:
        with pytest.raises(fencelock.LockLost):
            async with client.lock(name, ttl=0.2, renew=False) as lease:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    assert lease.lost.is_set()
        await asyncio.sleep(0)

    run(main)


def test_the_error_of_the_body_goes_on(client: Client, name: str) -> None:
    async def main() -> None:
        with pytest.raises(KeyError) as raised:
            async with client.lock(name, ttl=0.2, renew=False):
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    raise KeyError("mine") from None
        assert any("LockLost" in note for note in raised.value.__notes__)
        with pytest.raises(KeyError):
            async with client.lock(name):
                raise KeyError
        assert not await client.lock(name).locked_async()

    run(main)


def test_a_cancellation_from_outside_is_not_swallowed(client: Client, name: str) -> None:
    async def body(started: asyncio.Event) -> None:
        async with client.lock(name, ttl=0.3, renew=False):
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(body(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not await client.lock(name).locked_async()

        # Both at once: lost, and cancelled from outside before the body could end.
        async def both() -> None:
            async with client.lock(name, ttl=0.2, renew=False) as lease:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    assert lease.lost.is_set()
                    current = asyncio.current_task()
                    assert current is not None
                    current.cancel()
                    raise

        task = asyncio.create_task(both())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    run(main)


def test_timeout_around_and_inside_a_block(client: Client, name: str) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.05), client.lock(name):
                await asyncio.sleep(60)
        assert not isinstance(raised.value, fencelock.FencelockError)
        assert not await client.lock(name).locked_async()
        with pytest.raises(fencelock.LockLost):
            async with asyncio.timeout(60), client.lock(name, ttl=0.2, renew=False):
                await asyncio.sleep(60)
        async with client.lock(name):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.lock(name).acquire_async()
            assert (await client.inspect_async(name)).state == "held"

    run(main)


def test_a_task_group_ends_with_the_loss(client: Client, name: str) -> None:
    async def main() -> None:
        with pytest.raises(fencelock.LockLost):
            async with client.lock(name, ttl=0.2, renew=False), asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)

    run(main)


def test_lost_can_be_awaited(client: Client, name: str) -> None:
    async def main() -> None:
        lease = await client.lock(name, ttl=0.3, renew=False).acquire_async()
        assert not lease.lost.is_set()
        assert await lease.lost.wait_async()
        assert lease.lost.is_set() and not lease.held

        lease = await client.lock(name).acquire_async()
        wait = asyncio.create_task(lease.lost.wait_async())
        await asyncio.sleep(0.01)
        assert not wait.done()
        await lease.release_async()
        assert not await wait

        lease = await client.lock(name).acquire_async()
        wait = asyncio.create_task(lease.lost.wait_async())
        await asyncio.sleep(0)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert lease.held
        await lease.release_async()

    run(main)


def test_g7_cancelled_acquire_leaves_nothing(client: Client, other: Client, name: str) -> None:
    async def main() -> None:
        async with client.lock(name):
            wait = asyncio.create_task(client.lock(name).acquire_async())
            await until(lambda: other.inspect(name).queue)
            wait.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wait
            await until(lambda: not other.inspect(name).queue)
        assert (await client.inspect_async(name)).state == "free"

    run(main)


def test_g7_wait_for_close_to_the_end(client: Client, other: Client, name: str) -> None:
    lock = client.lock(name, ttl=30)

    async def main() -> None:
        start = time.perf_counter()
        for _ in range(20):
            async with lock:
                pass
        usual = (time.perf_counter() - start) / 40
        got = 0
        for number in range(200):
            # From a tenth of the usual time to 50 times it: the machine may be busier than it was.
            limit = usual * 500 ** (number % 20 / 19) / 10
            try:
                lease = await asyncio.wait_for(lock.acquire_async(), limit)
            except TimeoutError:
                continue
            got += 1
            await lease.release_async()
        assert 0 < got < 200
        await until(lambda: other.inspect(name).state == "free")
        assert not other.inspect(name).queue

    run(main)


def test_g7_a_result_that_meets_its_cancellation_is_released_at_once(
    client: Client, other: Client, name: str
) -> None:
    # The task is cancelled after its future got the lease and before it ran again. The traceback
    # is kept on purpose: it must not keep the lease.
    kept: list[BaseException] = []

    async def main() -> None:
        wait: asyncio.Task[Lease] = asyncio.create_task(client.lock(name).acquire_async())
        loop = asyncio.get_running_loop()
        original = fencelock._aio.bridge(loop)
        deliver = original._deliver

        def deliver_and_cancel() -> None:
            deliver()
            wait.cancel()

        fd = original._completions.fileno()
        loop.remove_reader(fd)
        loop.add_reader(fd, deliver_and_cancel)
        try:
            await wait
        except asyncio.CancelledError as error:
            kept.append(error)
        loop.remove_reader(fd)
        loop.add_reader(fd, deliver)

    run(main)
    assert kept
    wait_until(lambda: other.inspect(name).state == "free")


def test_g7_a_cancelled_release_goes_on(own_redis: RedisServer, name: str) -> None:
    async def main() -> None:
        async with await fencelock.connect_async(own_redis.url) as client:
            lease = await client.lock(name, ttl=30).acquire_async()
            with own_redis.frozen():
                release = asyncio.create_task(lease.release_async())
                await asyncio.sleep(0.05)
                release.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await release
                assert not lease.held  # never "held" again, the request may have arrived
            second = await client.lock(name).acquire_async(timeout=LIMIT)
            await lease.release_async()
            assert second.held
            await second.release_async()

    run(main)


def test_g7_a_block_left_by_cancellation_releases_although_cancelled_again(
    client: Client, name: str
) -> None:
    async def body(inside: asyncio.Event) -> None:
        async with client.lock(name):
            inside.set()
            await asyncio.sleep(60)

    async def main() -> None:
        for _ in range(20):
            inside = asyncio.Event()
            task = asyncio.create_task(body(inside))
            await inside.wait()
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()  # while it releases
            with pytest.raises(asyncio.CancelledError):
                await task
            lease = await client.lock(name).acquire_async(timeout=LIMIT)
            await lease.release_async()

    run(main)


def test_one_lock_for_threads_tasks_and_several_loops(client: Client, name: str) -> None:
    lock: Lock = client.lock(name)
    counter = 0

    async def one() -> None:
        nonlocal counter
        async with lock:
            value = counter
            await asyncio.sleep(0)
            counter = value + 1

    async def main() -> None:
        def blocking() -> None:
            nonlocal counter
            for _ in range(5):
                with lock:
                    counter += 1

        def other_loop() -> None:
            asyncio.run(one())

        jobs = [asyncio.to_thread(blocking) for _ in range(2)]
        jobs += [asyncio.to_thread(other_loop) for _ in range(3)]
        await asyncio.gather(*jobs, *(one() for _ in range(7)))

    run(main)
    assert counter == 20


def test_loops_are_collected(client: Client, name: str) -> None:
    async def main() -> None:
        async with client.lock(name):
            pass

    for _ in range(5):
        run(main)
    gc.collect()
    assert len(fencelock._aio._bridges) == 0


def test_errors_arrive_in_the_awaiting_task(client: Client) -> None:
    async def main() -> None:
        with pytest.raises(fencelock.InvalidArgument):
            await client.inspect_async("")
        with pytest.raises(fencelock.Internal, match="asked for by a test"):
            await fencelock._aio.run(fencelock._native.panic_for_test())
        # The thread that panicked still works.
        assert (await client.inspect_async("a")).name == "a"

    run(main)
