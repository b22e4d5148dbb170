"""Order codes: many threads draw the next code from one sequence, and no code is given out twice.

How the lock is used stands in worker.py; what it protects in sequence.py.
"""

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import fencelock
import worker
from report import Report
from sequence import Sequence
from worker import Draw


def main() -> int:
    options = parse_options()
    try:
        report = draw_codes(options)
    except fencelock.FencelockError as error:
        print(f"order_code: {error}", file=sys.stderr)
        return 1
    print(report.text())
    return 0 if report.is_as_promised() else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="order_code",
        description="Draws order codes, one in each thread, all at once. All codes differ, because"
        ' the threads take a lock around "read the last code, add one, write it back".',
    )
    parser.add_argument(
        "--url",
        default=os.environ.get("FENCELOCK_URL"),
        help="where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says, else"
        " files of this machine)",
    )
    parser.add_argument(
        "--threads",
        type=thread_count,
        default=20,
        help="threads, each of which draws one code (default 20)",
    )
    parser.add_argument(
        "--no-lock",
        action="store_true",
        help="do not lock: shows how many orders get the same code then",
    )
    return parser.parse_args()


def thread_count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not in 1 to 1000")
    return int(text)


def draw_codes(options: argparse.Namespace) -> Report:
    """The whole run."""
    threads: int = options.threads
    start = Barrier(threads)

    with tempfile.TemporaryDirectory() as folder:
        sequence = Sequence.create(Path(folder))
        url: str = options.url or (Path(folder) / "locks").as_uri()
        # One client and one lock for all threads: a client has one connection and one watchdog,
        # whatever their number.
        with fencelock.connect(url) as client, ThreadPoolExecutor(threads) as pool:
            lock = None if options.no_lock else client.lock(worker.LOCK)

            def draw(_: int) -> Draw:
                start.wait()
                return worker.draw(lock, sequence)

            draws = list(pool.map(draw, range(threads)))

    scheme = url.split(":")[0]
    place = "lock in files" if scheme == "file" else f"lock in {scheme}"
    return Report("no lock" if options.no_lock else place, not options.no_lock, draws)


if __name__ == "__main__":
    sys.exit(main())
