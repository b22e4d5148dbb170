"""A worker: buys one unit after the other until there are none left.

This file is the example; the others only start workers and count what they did.
"""

import contextlib
import threading
import time
from multiprocessing.connection import Connection

import fencelock
from sale import Job, Outcome, Turn
from store import Store

# What everybody has to lock who sells product 123.
LOCK = "product/123"


def run(client: fencelock.Client, job: Job, report: Connection) -> None:
    """Waits for the sale to open, then buys until everything is sold."""
    lock = client.lock(LOCK, ttl=job.ttl, renew=job.renew)
    store = Store(job.store)

    time.sleep(max(0.0, job.opens_at - time.time()))
    outcome = None
    number = 0
    while outcome is not Outcome.SOLD_OUT:
        if number == job.crash_after:
            hold_for_ever(lock, job, report)
        turn = buy_without_lock(store, job) if job.no_lock else buy_one(lock, store, job)
        report.send(turn)
        outcome = turn.outcome
        number += 1


def buy_one(lock: fencelock.Lock, store: Store, job: Job) -> Turn:
    """Buys one unit under the lock."""
    asked = job.now()
    outcome = Outcome.LOST
    # LockLost from inside the section: nothing was written. LockLost when the block is left: the
    # order stands, for had anybody with a higher token been at the store before it, the store had
    # refused it.
    with contextlib.suppress(fencelock.LockLost), lock as lease:
        token, start = lease.token, job.now()
        try:
            outcome = sell_one_unit(store, job.worker, lease)
        finally:
            end = job.now()
    return Turn(job.worker, outcome, token, asked, start, end)


def sell_one_unit(store: Store, worker: int, lease: fencelock.Lease | None) -> Outcome:
    """The section that must not run twice at the same time.

    It reads the stock, checks it, and writes it back less one. Everything that can go wrong
    without a lock goes wrong between the read and the write.
    """
    token = None if lease is None else lease.token

    left = store.read_stock(token)
    if left == 0:
        return Outcome.SOLD_OUT
    # If the lease was lost by now, somebody else may be selling this very unit: this raises
    # LockLost, so that nothing is written.
    if lease is not None:
        lease.check()
    # We may still be paused right here, for longer than our lease lasts, and no lock can help
    # that. So the order carries the fencing token, and the store refuses it if somebody with a
    # higher one has been there meanwhile.
    taken = store.place_order(worker, token, left - 1)
    return Outcome.SOLD if taken else Outcome.REFUSED


def buy_without_lock(store: Store, job: Job) -> Turn:
    """The same without the lock, to see what it prevents."""
    start = job.now()
    outcome = sell_one_unit(store, job.worker, None)
    return Turn(job.worker, outcome, 0, start, start, job.now())


def hold_for_ever(lock: fencelock.Lock, job: Job, report: Connection) -> None:
    """Takes the lock and never gives it back, as a worker does that crashes."""
    asked = job.now()
    lease = lock.acquire()
    start = job.now()
    report.send(Turn(job.worker, Outcome.CRASHED, lease.token, asked, start, start))
    threading.Event().wait()  # until we are killed
