"""G9: in a forked child, what belongs to the parent is foreign, and a new client just works."""

import pytest

from conftest import server_url
from support import Program

PRELUDE = """
import asyncio, multiprocessing, os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads; that is what we test
import fencelock
url, name = sys.argv[1:]
client = fencelock.connect(url)
lock = client.lock(name, ttl=1.5)

def child_ends_well(pid):
    _, status = os.waitpid(pid, 0)
    assert status == 0, status

def forked(call):
    try:
        call()
    except fencelock.Forked:
        return
    raise AssertionError(f"{call} did not raise Forked")
"""


def run(code: str, url: str, name: str) -> None:
    with Program(PRELUDE + code, url, name) as program:
        program.end()


def test_g9_the_child_touches_nothing(shared_url: str, name: str) -> None:
    code = """
rlock = client.rlock(name + "/r")
rlock.acquire()
lease = lock.acquire()
lost = lease.lost
owner = lease.owner
pid = os.fork()
if pid == 0:
    assert not lease.held and lease.remaining == 0
    assert lease.token and lease.name == name  # plain facts
    for call in (
        lease.check, lease.renew, lease.release, lease.__enter__, lost.is_set, lost.wait,
        lock.acquire, lock.try_acquire, lock.locked, rlock.acquire, rlock.release,
        client.list, client.close, lambda: client.lock("x"), lambda: client.inspect(name),
        lambda: client.force_release(name), lambda: asyncio.run(lock.acquire_async()),
        lambda: asyncio.run(client.close_async()),
    ):
        forked(call)
    time.sleep(1.6)  # past its deadline as well
    assert not lease.held
    del lease
    del lock
    with client:
        pass
    del client
    sys.exit()
child_ends_well(pid)
assert lease.held
assert client.inspect(name).owner == owner
assert not lost.wait(1.6)
lease.release()
"""
    run(code, shared_url, name)


def test_g9_leaving_a_block_in_the_child(shared_url: str, name: str) -> None:
    code = """
pid = None
with lock as lease:
    with lock.acquire(timeout=0.0) if pid else lease:
        pid = os.fork() if pid is None else pid
        if pid:
            child_ends_well(pid)
            assert lease.held and client.inspect(name).owner == lease.owner
if pid == 0:
    async def main():
        async with client:
            pass
    asyncio.run(main())
    os._exit(0)
assert not lock.locked()
"""
    run(code, shared_url, name)


@pytest.mark.parametrize("same", [True, False])
def test_g9_a_new_client_in_the_child_works(fork_url: str, name: str, same: bool) -> None:
    code = f"""
lease = lock.acquire()
for number in range(3):
    pid = os.fork()
    if pid == 0:
        child = fencelock.connect(url if {same} else "memory:")
        own = child.lock(name + "/child", ttl=1.5)
        with own as held:
            assert not held.lost.wait(0 if number else 1.8)
            assert held.held
        async def main():
            async with own as held:
                assert held.held
        asyncio.run(main())
        if {same}:
            assert child.inspect(name).owner == lease.owner
        forgotten = own.acquire()  # its exit releases it
        sys.exit()
    child_ends_well(pid)
    assert not client.lock(name + "/child").locked()
assert lease.held
"""
    run(code, fork_url, name)


def test_g9_a_new_zookeeper_client_in_the_child_is_refused_at_once(name: str) -> None:
    code = """
lease = lock.acquire()
pid = os.fork()
if pid == 0:
    start = time.monotonic()
    try:
        fencelock.connect(url)
    except fencelock.Unsupported as error:
        assert "fork" in str(error)
    else:
        raise AssertionError("connected")
    assert time.monotonic() - start < 2
    with fencelock.connect("memory:").lock(name):
        sys.exit()
child_ends_well(pid)
assert lease.held
"""
    run(code, server_url("zookeeper"), name)


def test_g9_fork_while_threads_work(fork_url: str, name: str) -> None:
    code = """
stop = False
def work(number):
    mine = client.lock(f"{name}/{number % 2}")
    while not stop:
        with mine:
            pass
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for number in range(30):
    pid = os.fork()
    if pid == 0:
        forked(lock.acquire)
        if number % 3 == 0:
            with fencelock.connect(url).lock(name):
                pass
        sys.exit() if number % 2 else os._exit(0)
    child_ends_well(pid)
stop = True
for thread in threads:
    thread.join()
"""
    run(code, fork_url, name)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_g9_multiprocessing(fork_url: str, name: str, method: str) -> None:
    code = f"""
import fencelock, multiprocessing, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)

def work(url, name, number):
    global forgotten
    client = fencelock.connect(url)
    with client.lock(name):
        pass
    forgotten = client.lock(f"{{name}}/{{number}}").acquire()

if __name__ == "__main__":
    url, name = sys.argv[1:]
    client = fencelock.connect(url)
    context = multiprocessing.get_context("{method}")
    processes = [context.Process(target=work, args=(url, name, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for number in range(3):
        assert not client.lock(f"{{name}}/{{number}}").locked()
"""
    # spawn and forkserver import the main module, which must therefore be a file.
    wrapper = f"""
import pathlib, runpy, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "program.py")
    file.write_text({code!r})
    sys.exit(subprocess.call([sys.executable, file, *sys.argv[1:]]))
"""
    with Program(wrapper, fork_url, name) as program:
        program.end()
