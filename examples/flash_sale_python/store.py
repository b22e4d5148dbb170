"""The store that all workers share: a folder with the stock and the orders.

It stands for the database of a shop. As there, one statement is atomic by itself, and takes a
moment to get there and back. What is *not* atomic is a read and the write that follows from it:
that is what the workers need the lock for.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# The way to the database and back, in seconds.
ROUND_TRIP = 0.0001


@dataclass
class Row:
    """What the stock file holds."""

    left: int
    highest_token: int


class Store:
    """One product and its orders."""

    def __init__(self, folder: Path) -> None:
        self._stock = folder / "stock"
        self._orders = folder / "orders"

    @classmethod
    def create(cls, folder: Path, stock: int) -> Self:
        """A new store in an empty folder."""
        store = cls(folder)
        store._stock.write_text(f"{stock} 0")
        store._orders.touch()
        return store

    def read_stock(self, token: int | None) -> int:
        """The units left.

        With a token, this is the first step of a change, and from now on nobody with a lower token
        changes anything: he cannot know what we are about to write.
        """
        with self._statement() as row:
            row.highest_token = max(row.highest_token, token or 0)
            return row.left

    def place_order(self, worker: int, token: int | None, left: int) -> bool:
        """Sets the units left and appends the order.

        False if the order was refused because somebody with a higher token has been here. The
        check is part of the same atomic step as the write, as in
        `UPDATE … SET left = ?, token = ? WHERE product = 123 AND token <= ?`.
        """
        with self._statement() as row:
            if token is not None and token < row.highest_token:
                return False
            row.left = left
            row.highest_token = max(row.highest_token, token or 0)
            with self._orders.open("a") as orders:
                orders.write(f"{token or 0} worker-{worker}\n")
            return True

    def tokens(self) -> list[int]:
        """The tokens of all orders, oldest first; zeros without a lock."""
        return [int(line.split()[0]) for line in self._orders.read_text().splitlines()]

    @contextmanager
    def _statement(self) -> Iterator[Row]:
        """One atomic statement on the row of product 123."""
        time.sleep(ROUND_TRIP)
        with self._stock.open("r+") as file:
            # The database's own row lock, until the file is closed.
            fcntl.flock(file, fcntl.LOCK_EX)
            row = Row(*map(int, file.read().split()))
            yield row
            file.seek(0)
            file.truncate()
            file.write(f"{row.left} {row.highest_token}")
