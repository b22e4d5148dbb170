"""G7: acquires that are cancelled at random moments leave nothing in Redis, and no traffic."""

import asyncio
import contextlib
import random
import threading
import time

import redis

import fencelock
from support import RedisServer, wait_until


def leftovers(server: "redis.Redis") -> list[str]:
    """Keys that are neither token records nor tombstones; those two must have an expiry."""
    left = []
    for key in server.scan_iter("*"):
        kind = key.split(b"~fl1:")[-1][:2]
        if kind not in (b"t:", b"x:") or server.pttl(key) == -1:
            left.append(key.decode())
    return left


def commands(server: "redis.Redis", seconds: float) -> list[str]:
    """What the server is asked within that time, by anybody else."""
    seen: list[str] = []
    end = "end of the observation"
    port = server.get_connection_kwargs()["port"]
    with redis.Redis(port=port) as marker:
        marker.ping()  # connects before we listen
        with server.monitor() as monitor:  # type: ignore[no-untyped-call]
            timer = threading.Timer(seconds, lambda: marker.echo(end))
            timer.start()
            for command in monitor.listen():
                if end in command["command"]:
                    break
                seen.append(command["command"])
            timer.join()
    return seen


def test_g7_300_cancelled_acquires_leave_nothing(own_redis: RedisServer) -> None:
    moments = random.Random(7)
    got = 0

    async def one(client: fencelock.Client, number: int) -> None:
        nonlocal got
        lock = client.lock(f"cancel/{number % 5}", ttl=5)
        acquire = asyncio.create_task(lock.acquire_async())
        await asyncio.sleep(moments.choice([0, 0.0005, 0.002, 0.005, 0.02]) * moments.random())
        acquire.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            lease = await acquire
            got += 1
            await lease.release_async()

    async def main() -> fencelock.Client:
        client = await fencelock.connect_async(own_redis.url)
        # Two of the five names are held meanwhile: there, the cancelled ones are contenders.
        async with client.lock("cancel/0"), client.lock("cancel/1"):
            for _ in range(30):
                await asyncio.gather(*(one(client, number) for number in range(10)))
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            # Somebody else gets in at once.
            for number in range(5):
                group.create_task(take(own_redis.url, f"cancel/{number}"))
        return client

    async def take(url: str, name: str) -> None:
        async with await fencelock.connect_async(url) as other:
            start = time.monotonic()
            await (await other.lock(name).acquire_async(timeout=10)).release_async()
            assert time.monotonic() - start < 2

    client = asyncio.run(main())
    with redis.Redis(port=own_redis.port) as server:
        wait_until(lambda: leftovers(server) == [])
        assert commands(server, 2.0) == []
        assert leftovers(server) == []
    assert not client.closed
    client.close()
    assert got < 300


def test_g7_interrupted_threads_leave_nothing(own_redis: RedisServer) -> None:
    # The same from threads: their waits end by time-outs of random length.
    client = fencelock.connect(own_redis.url)
    moments = random.Random(8)

    def work(waits: list[float]) -> None:
        for wait in waits:
            with contextlib.suppress(fencelock.LockTimeout):
                client.lock("threads", ttl=5).acquire(timeout=wait).release()

    threads = [
        threading.Thread(target=work, args=([moments.random() * 0.01 for _ in range(20)],))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with redis.Redis(port=own_redis.port) as server:
        wait_until(lambda: leftovers(server) == [])
        assert commands(server, 1.0) == []
    client.close()
