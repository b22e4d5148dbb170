"""The end of a process with something in flight: quick, quiet, code 0, and leases are released."""

import signal
import socket
import time

import pytest

import fencelock
from support import LIMIT, Program, wait_until

PRELUDE = """
import asyncio, atexit, sys, threading, time
import fencelock
url, name = sys.argv[1:]
client = fencelock.connect(url)
lock = client.lock(name, ttl=10)

@atexit.register
def last():
    print(time.monotonic(), flush=True)

def daemon(target):
    threading.Thread(target=target, daemon=True).start()

def queued():
    while not client.inspect(name).queue:
        time.sleep(0.001)
"""

CASES = {
    "a held lease": "lease = lock.acquire()",
    "a held lease in a cycle": "lease = [lock.acquire()]; lease.append(lease)",
    "a renewal": """
leases = [client.lock(f"{name}/{n}", ttl=1.5).acquire() for n in range(200)]
time.sleep(0.5)
lease = lock.acquire()
""",
    "a wait in a daemon thread": """
lease = lock.acquire()
for _ in range(3):
    daemon(lock.acquire)
queued()
""",
    "a daemon thread that goes on": """
def work():
    while True:
        with client.lock(name + "/other"):
            pass
for _ in range(3):
    daemon(work)
lease = lock.acquire()
time.sleep(0.05)
""",
    "waits for a loss": """
lease = lock.acquire()
daemon(lease.lost.wait)
time.sleep(0.05)
""",
    "a task that waits": """
async def main():
    lease = await lock.acquire_async()
    asyncio.ensure_future(lock.acquire_async())
    while not (await client.inspect_async(name)).queue:
        pass
asyncio.run(main())
""",
    "a loop that just ends": """
async def main():
    global lease, wait
    lease = await lock.acquire_async()
    wait = lock.acquire_async()
    wait.send(None)
    while not (await client.inspect_async(name)).queue:
        pass
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
""",
    "a loop in a daemon thread": """
ready = threading.Event()
async def main():
    async with lock:
        ready.set()
        await asyncio.sleep(60)
daemon(lambda: asyncio.run(main()))
ready.wait()
""",
    "sys.exit inside a block": """
with lock as lease:
    sys.exit()
""",
    "a reentrant lock": "lease = client.rlock(name).acquire()",
    "a warning under way": """
import logging
logging.getLogger("fencelock").addHandler(logging.NullHandler())
logging.getLogger("fencelock").propagate = False
lost = client.lock(name + "/lost", ttl=0.1, renew=False).acquire()
lost.lost.wait()
lease = lock.acquire()
""",
    "use at exit": """
lease = lock.acquire()
def late():
    lease.release()  # released already
    for call in (lock.acquire, lambda: fencelock.connect("memory:"), lease.renew):
        try:
            call()
        except (fencelock.Closed, fencelock.LockLost):
            continue
        raise AssertionError(call)
    client.close()
    del globals()["lease"]
# It runs after ours, which is registered by the first connect: registered before that.
at_end.append(late)
""",
}


@pytest.mark.parametrize("case", CASES)
def test_g7_exit_is_quick_and_quiet_and_releases(shared_url: str, name: str, case: str) -> None:
    prelude = PRELUDE
    if case == "use at exit":
        prelude = (
            """
import atexit
at_end = []
atexit.register(lambda: at_end[0]())
"""
            + PRELUDE
        )
    with fencelock.connect(shared_url) as client:
        with Program(prelude + CASES[case], shared_url, name) as program:
            output = program.end()
            ended = time.monotonic()
        assert ended - float(output.split()[-1]) < 2.5
        wait_until(lambda: not client.inspect(name).queue)
        assert client.inspect(name).state == "free"


def test_g7_exit_from_many_daemon_threads_20_times(shared_url: str, name: str) -> None:
    code = (
        PRELUDE
        + """
def work(number):
    mine = client.lock(f"{name}/{number % 3}", ttl=1)
    while True:
        with mine:
            pass
async def main(number):
    while True:
        await client.lock(f"{name}/{number}").acquire_async(timeout=60)
for number in range(4):
    daemon(lambda number=number: work(number))
    daemon(lambda number=number: asyncio.run(main(number)))
time.sleep(0.05)
"""
    )
    for _ in range(20):
        with Program(code, shared_url, name) as program:
            program.end()


def test_exit_while_connecting_to_a_silent_server(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/"
        code = """
import atexit, sys, threading, time
import fencelock
threading.Thread(target=fencelock.connect, args=(sys.argv[1],), daemon=True).start()
sys.stdin.readline()
atexit.register(lambda: print(time.monotonic(), flush=True))
"""
        with Program(code, url) as program:
            connection, _ = silent.accept()
            program.say("now")
            output = program.end()
            assert time.monotonic() - float(output) < 3
            connection.close()


def test_an_exception_is_shown_as_always(shared_url: str, name: str) -> None:
    with Program(PRELUDE + "with lock:\n    raise KeyError('mine')", shared_url, name) as program:
        program.process.wait(LIMIT)
        assert program.process.returncode == 1
        assert program.process.stderr is not None
        errors = program.process.stderr.read()
        assert errors.count("Traceback") == 1 and errors.endswith("KeyError: 'mine'\n")
    with fencelock.connect(shared_url) as client:
        assert not client.lock(name).locked()


WAITING = (
    PRELUDE
    + """
def state(*_):
    return client.inspect(name)
try:
    WAIT
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
while client.inspect(name).queue:
    time.sleep(0.001)
print("empty", flush=True)
"""
)

WAITS = {
    "with": "with lock: raise AssertionError",
    "acquire": "lock.acquire()",
    "acquire with a limit": "lock.acquire(timeout=60)",
    "rlock": "client.rlock(name).acquire()",
    "asyncio": "asyncio.run(lock.acquire_async())",
}


@pytest.mark.parametrize("wait", WAITS)
def test_g7_ctrl_c_while_waiting(shared_url: str, name: str, wait: str) -> None:
    code = WAITING.replace("WAIT", WAITS[wait])
    with fencelock.connect(shared_url) as client, client.lock(name) as lease:
        with Program(code, shared_url, name) as program:
            wait_until(lambda: client.inspect(name).queue)
            time.sleep(0.2)  # well inside the wait
            sent = time.monotonic()
            program.send(signal.SIGINT)
            assert float(program.line()) - sent < 2
            assert program.line() == "empty"
            program.end()
        assert lease.held
    assert client.closed


def test_g7_ctrl_c_while_waiting_for_a_loss(shared_url: str, name: str) -> None:
    code = (
        PRELUDE
        + """
lease = lock.acquire()
print("waiting", flush=True)
try:
    lease.lost.wait()
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
assert lease.held
lease.release()
"""
    )
    with Program(code, shared_url, name) as program:
        assert program.line() == "waiting"
        time.sleep(0.2)
        sent = time.monotonic()
        program.send(signal.SIGINT)
        assert float(program.line()) - sent < 2
        program.end()


def test_a_signal_handler_that_returns_does_not_end_the_wait(shared_url: str, name: str) -> None:
    code = (
        PRELUDE
        + """
import signal
signal.signal(signal.SIGUSR1, lambda *_: print("seen", flush=True))
with lock:
    print("entered", flush=True)
"""
    )
    with fencelock.connect(shared_url) as client:
        lease = client.lock(name).acquire()
        with Program(code, shared_url, name) as program:
            wait_until(lambda: client.inspect(name).queue)
            program.send(signal.SIGUSR1)
            assert program.line() == "seen"
            lease.release()
            assert program.line() == "entered"
            program.end()
