"""What the tests share: waiting for a state, other processes, a Redis server of one's own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

LIMIT = 20.0
"""Seconds until something that should happen at once counts as not happening. Machines are busy."""


def wait_until(condition: Callable[[], object], limit: float = LIMIT) -> None:
    """Returns as soon as the condition is true."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "the expected state never came"
        time.sleep(0.002)


class Program:
    """A Python program in a process of its own, talked to by lines."""

    def __init__(self, code: str, *args: str) -> None:
        # Warnings count: a clean program writes nothing to its standard error.
        self._start(sys.executable, "-W", "default", "-c", code, *args)

    def _start(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    @classmethod
    def of(cls, *command: str) -> "Program":
        """Any program."""
        program = cls.__new__(cls)
        program._start(*command)
        return program

    def line(self) -> str:
        """The next line that it prints."""
        line = _pipe(self.process.stdout).readline().rstrip("\n")
        if not line:
            _, errors = self.process.communicate(timeout=LIMIT)
            raise AssertionError(f"ended with {self.process.returncode}: {errors}")
        return line

    def say(self, line: str) -> None:
        """Gives it a line to read."""
        _pipe(self.process.stdin).write(line + "\n")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def end(self, code: int = 0, errors: str = "") -> str:
        """Waits for its end, which must be quiet. Returns the rest of what it printed."""
        output, found = self.process.communicate(timeout=LIMIT)
        assert (self.process.returncode, found) == (code, errors)
        return output

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                _pipe(pipe).close()


def freeze(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Stops a process, until it stands: on a busy machine, a server could answer in between."""
    process.send_signal(signal.SIGSTOP)
    # Exited, so that one that dies is not waited for; it is left to be reaped.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """A Redis server of one test, which may stop and flush it."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port = port
        self.process = process
        self.url = f"redis://127.0.0.1:{port}/"

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The server answers nothing for as long as the block runs."""
        freeze(self.process)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[RedisServer]:
    """Starts a Redis server and ends it after the block."""
    binary = os.environ.get("FENCELOCK_TEST_REDIS_SERVER") or shutil.which("redis-server")
    assert binary, "no redis-server: run the tests with tests/services/run"
    port = free_port()
    process = subprocess.Popen(
        [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:

        def answers() -> bool:
            assert process.poll() is None, "redis-server ended at once"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return True
            return False

        wait_until(answers)
        yield RedisServer(port, process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
