"""The figures of a sale, and whether it went as promised."""

import argparse
import math
from itertools import pairwise

from sale import Outcome, Turn


class Report:
    """What came of a sale. The turns are sorted by time, the tokens are those of the orders."""

    def __init__(
        self, options: argparse.Namespace, left: int, tokens: list[int], turns: list[Turn]
    ) -> None:
        self.locked: bool = not options.no_lock
        self.workers: int = options.workers
        self.total: int = options.stock
        self.sold = len(tokens)
        self.left = left
        self.oversold = max(0, self.sold - self.total)
        self.orders_per_second = self.sold / seconds(turns)
        waits = sorted(turn.waited for turn in turns if turn.outcome is Outcome.SOLD)
        self.wait_p50, self.wait_p99 = percentile(waits, 50), percentile(waits, 99)
        self.lost = count(turns, Outcome.LOST)
        self.refused = count(turns, Outcome.REFUSED)
        self.tokens_rise = 0 not in tokens and all(a < b for a, b in pairwise(tokens))
        # A worker that ended before it saw that everything is sold has failed, and has said why.
        ended = count(turns, Outcome.SOLD_OUT) + count(turns, Outcome.CRASHED)
        self.failed = self.workers - ended
        self.crash = describe_crash(turns, options.ttl) if options.crash else None

        kind = "processes" if options.processes else "threads"
        scheme = options.url.split(":")[0] if options.url else "files"
        place = f"lock in {scheme}" if self.locked else "no lock"
        self.title = f"Flash sale of product 123: {self.workers} {kind}, {place}"

    def summary(self) -> str:
        """The figures in one line."""
        sales = (
            f"{self.total} units, {self.sold} sold, {self.oversold} oversold,"
            f" {self.orders_per_second:.0f} orders/s"
        )
        if not self.locked:
            return sales
        return f"{sales}, wait p50 {self.wait_p50:.2f} ms, p99 {self.wait_p99:.2f} ms"

    def text(self) -> str:
        """The figures, one a line."""
        lines = [
            self.title,
            f"total       {self.total}",
            f"sold        {self.sold}",
            f"left        {self.left}",
            f"oversold    {self.oversold}",
            f"orders/s    {self.orders_per_second:.0f}",
        ]
        if not self.locked:
            return "\n".join([*lines, "tokens      none, so the store can refuse nothing"])
        lines += [
            f"wait p50    {self.wait_p50:.2f} ms",
            f"wait p99    {self.wait_p99:.2f} ms",
            f"lost        {self.lost} (leases that ended before the write: nothing written)",
            f"refused     {self.refused} (orders with an older token than the store had seen)",
        ]
        if self.crash is not None:
            lines.append(f"crash       {self.crash or 'nobody went on after it, or it never came'}")
        rise = "rise" if self.tokens_rise else "DO NOT RISE"
        return "\n".join([*lines, f"tokens      {rise} in the order of the orders"])

    def is_as_promised(self) -> bool:
        """Without the lock nothing is promised."""
        if self.failed:
            return False
        sold_once = self.sold == self.total and self.left == 0 and self.tokens_rise
        return not self.locked or (sold_once and self.crash != "")

    def verdict(self) -> str:
        """The last line."""
        if self.failed:
            return f"FAILED: {self.failed} workers ended early"
        if not self.locked:
            return f"WITHOUT THE LOCK: oversold {self.oversold} of {self.total} units"
        if self.is_as_promised():
            return "OK: every unit was sold exactly once"
        return "FAILED: see the figures above"


def describe_crash(turns: list[Turn], ttl: float) -> str:
    """The crash; empty if there was none, or nobody got the lock after it."""
    for victim, following in pairwise(turns):
        if victim.outcome is Outcome.CRASHED:
            gap = following.start - victim.start
            return (
                f"worker {victim.worker} was killed holding token {victim.token}; the others"
                f" waited {gap:.0f} ms and went on (ttl {ttl * 1000:.0f} ms)"
            )
    return ""


def count(turns: list[Turn], outcome: Outcome) -> int:
    return sum(turn.outcome is outcome for turn in turns)


def percentile(ordered: list[float], percent: int) -> float:
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[max(0, rank - 1)] if ordered else 0.0


def seconds(turns: list[Turn]) -> float:
    """From the moment somebody first asked for the lock to the end of the last turn."""
    if not turns:
        return 1.0
    return max(0.001, max(t.end for t in turns) - min(t.asked for t in turns)) / 1000
