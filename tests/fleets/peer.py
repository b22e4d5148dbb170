"""What the peers in Python have in common: they obey the lines that README.md describes."""

import sys
import time
from pathlib import Path
from typing import Protocol


class Lock(Protocol):
    """A lock of others."""

    def acquire(self, timeout: float | None) -> bool:
        """Waits at most so many seconds, None = for ever, 0 = not at all; whether we hold it."""

    def release(self) -> None:
        """Gives it back."""


def obey(lock: Lock) -> None:
    """Does what standard input says, until it ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["acquire", milliseconds]:
                answer = str(lock.acquire(int(milliseconds) / 1000)).lower()
            case ["release"]:
                lock.release()
                answer = "released"
            case ["count", rounds, file]:
                for _ in range(int(rounds)):
                    lock.acquire(None)
                    try:
                        increment(Path(file))
                    finally:
                        lock.release()
                answer = "counted"
            case _:
                raise ValueError(line)
        print(answer, flush=True)


def increment(file: Path) -> None:
    """Unguarded: what two do at once is lost."""
    value = int(file.read_text())
    time.sleep(0.0001)
    file.write_text(str(value + 1))
