"""The sequence that all threads share: a file with the last code.

It stands for a row of a database, or for a service that knows only "read" and "write". Nothing here
is atomic: that is what the threads need the lock for.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

# The way to the database and back, in seconds.
ROUND_TRIP = 0.0001
# How many codes a day has: they all have six digits.
LAST_NUMBER = 999_999


class Code(NamedTuple):
    """The day and a number, such as ``20261130-000042``. Later codes are greater."""

    day: int
    number: int

    def next(self, today: int) -> "Code":
        """The code after this one.

        Numbers begin anew each day. A clock that was set back must not bring back old codes.
        """
        if today > self.day:
            return Code(today, 1)
        if self.number == LAST_NUMBER:
            raise OverflowError("all codes of this day are drawn")
        return Code(self.day, self.number + 1)

    @classmethod
    def parse(cls, text: str) -> "Code":
        """The code with this text."""
        day, number = text.split("-")
        return cls(int(day), int(number))

    def __str__(self) -> str:
        return f"{self.day:08}-{self.number:06}"


class Sequence:
    """All codes that are drawn come from here."""

    def __init__(self, folder: Path) -> None:
        self._last = folder / "last"

    @classmethod
    def create(cls, folder: Path) -> Self:
        """A new sequence in an empty folder. Nothing was drawn yet."""
        sequence = cls(folder)
        sequence._last.write_text(str(Code(today(), 0)))
        return sequence

    def draw(self, before_write: Callable[[], None]) -> Code:
        """Reads the last code, goes one on, and writes that back, unless the check raises."""
        last = Code.parse(self._last.read_text())
        time.sleep(ROUND_TRIP)
        code = last.next(today())
        before_write()
        # In place, because a code has always the same length.
        with self._last.open("r+") as file:
            file.write(str(code))
        return code


def today() -> int:
    """The date as one number, such as 20261130."""
    return int(datetime.now(UTC).strftime("%Y%m%d"))
