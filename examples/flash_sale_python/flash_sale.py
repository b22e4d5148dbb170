"""A flash sale: many workers buy the same product at once, and every unit is sold exactly once.

How the lock is used stands in worker.py; how a store checks fencing tokens in store.py.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fencelock
import picture
from fleet import Fleet
from report import Report
from sale import Job, Outcome, Turn
from store import Store

# How long processes get to start before the sale opens, in seconds.
STARTING = 0.75
# The lock's ttl: with --crash that is how long the others have to wait.
TTL = 30.0
TTL_CRASH = 2.0


def main() -> int:
    options = parse_options()
    try:
        return 0 if sell(options) else 1
    except fencelock.FencelockError as error:
        print(f"flash_sale: {error}", file=sys.stderr)
        return 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flash_sale",
        description="Sells the stock of product 123, one unit at a time, to workers that all want"
        " it at once. Every unit is sold exactly once, because the workers take a lock around"
        ' "read the stock, check it, write it back".',
    )
    parser.add_argument(
        "--url",
        default=os.environ.get("FENCELOCK_URL"),
        help="where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says, else"
        " files of this machine); the workers are processes, with memory: threads of this one",
    )
    parser.add_argument(
        "--stock", type=number(1, 1_000_000), default=2000, help="units to sell (default 2000)"
    )
    parser.add_argument(
        "--workers", type=number(1, 1000), default=8, help="workers that buy (default 8)"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--no-lock", action="store_true", help="do not lock: shows how much is oversold then"
    )
    mode.add_argument(
        "--crash",
        action="store_true",
        help="kill a worker while it holds the lock: shows how the others go on when its ttl is"
        " over",
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        default="target/flash_sale_python.svg",
        help='where to draw who held the lock when, as SVG; "none" for no picture'
        " (default target/flash_sale_python.svg)",
    )
    options = parser.parse_args()
    if options.crash and options.workers < 2:
        parser.error("--crash needs at least 2 workers: one to kill and one to go on")
    options.ttl = TTL_CRASH if options.crash else TTL
    options.processes = not (options.url or "").startswith("memory:")
    return options


def number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isdecimal() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not in {least} to {most}")
        return int(text)

    return parse


def sell(options: argparse.Namespace) -> bool:
    """The whole sale; whether it went as promised."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder), options.stock)
        url = options.url or (Path(folder) / "locks").as_uri()
        fleet = Fleet(url, jobs(options, Path(folder)), options.processes)
        turns: list[Turn] = []
        for turn in fleet.reports():
            if turn.outcome is Outcome.CRASHED:
                fleet.kill(turn.worker)
            turns.append(turn)
            show_progress(len(turns), options.stock)
        fleet.close()
        turns.sort(key=lambda turn: turn.start)
        report = Report(options, store.read_stock(None), store.tokens(), turns)

    print(report.text())
    if options.picture != "none":
        file = Path(options.picture)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(picture.draw(report, turns))
        print(f"picture     {file}")
    print(report.verdict())
    return report.is_as_promised()


def jobs(options: argparse.Namespace, store: Path) -> list[Job]:
    opens_at = time.time() + (STARTING if options.processes else 0)

    def job(worker: int) -> Job:
        # The first worker is the victim, when a quarter of the stock is sold.
        crashes = options.crash and worker == 0
        return Job(
            worker=worker,
            store=store,
            opens_at=opens_at,
            ttl=options.ttl,
            # A killed process renews nothing any more. The client of a hanging thread lives on
            # and would go on renewing, so this one lock must not be renewed from the start.
            renew=not crashes or options.processes,
            no_lock=options.no_lock,
            crash_after=options.stock // (4 * options.workers) if crashes else None,
        )

    return [job(worker) for worker in range(options.workers)]


def show_progress(turns: int, stock: int) -> None:
    """A bar, on a terminal only."""
    if not sys.stderr.isatty() or turns % 20:
        return
    done = min(turns / stock, 1.0)
    bar = "█" * round(40 * done)
    end = "\r\033[K" if turns >= stock else ""
    print(f"\r{bar:░<40} {turns}/{stock}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
