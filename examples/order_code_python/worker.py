"""What each thread does: it draws one code under the lock. This file is the example."""

import time
from typing import NamedTuple

import fencelock
from sequence import Code, Sequence

# What everybody has to lock who draws an order code.
LOCK = "order-code"


class Draw(NamedTuple):
    """A code that an order got."""

    code: Code
    token: int
    """The fencing token of the lease under which it was drawn; zero without a lock."""
    waited: float
    """How long the thread waited for the lock, in seconds."""


def draw(lock: fencelock.Lock | None, sequence: Sequence) -> Draw:
    """Draws the next code."""
    if lock is None:
        return Draw(sequence.draw(lambda: None), 0, 0.0)

    asked = time.monotonic()
    with lock as lease:
        waited = time.monotonic() - asked
        # If the lease was lost after the last code was read, somebody else may be drawing the next
        # one already: `check` raises, and nothing is written.
        code = sequence.draw(lease.check)
    # The code counts only now. Leaving the block raises LockLost if the lease was lost while we
    # wrote: somebody else may have drawn the same code, and nobody must use ours.
    return Draw(code, lease.token, waited)
