"""What the parts of the flash sale tell each other: the job of a worker, and its reports."""

import time
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple


class Job(NamedTuple):
    """What one worker is told."""

    worker: int
    store: Path
    opens_at: float
    """When the sale opens, by the wall clock; also the zero of all times in the report."""
    ttl: float
    renew: bool
    """Whether the client's watchdog renews the lease, as it should."""
    no_lock: bool
    crash_after: int | None
    """Crash in the turn after this many."""

    def now(self) -> float:
        """Milliseconds since the sale opened, the same in all worker processes.

        Good enough for a report; the lock itself never asks this clock.
        """
        return max(0.0, (time.time() - self.opens_at) * 1000)


class Outcome(Enum):
    """How a turn ended."""

    SOLD = auto()
    SOLD_OUT = auto()
    LOST = auto()
    """The lease was lost before the write, so nothing was written."""
    REFUSED = auto()
    """The store refused the order: it has seen a higher token."""
    CRASHED = auto()
    """The worker died while it held the lock."""


class Turn(NamedTuple):
    """One turn with the lock. Times are milliseconds since the sale opened."""

    worker: int
    outcome: Outcome
    token: int
    """Zero without a lock."""
    asked: float
    start: float
    end: float

    @property
    def waited(self) -> float:
        """How long the worker waited for the lock."""
        return max(0.0, self.start - self.asked)
