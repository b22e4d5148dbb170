"""One process of Python in the contest of languages, see README.md."""

import sys
from pathlib import Path

import fencelock

url, name, rounds, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
with fencelock.connect(url) as client, Path(f"{file}.tokens").open("a") as tokens:
    lock = client.lock(name)
    print("ready", flush=True)
    sys.stdin.read()
    for _ in range(rounds):
        with lock as lease:
            number = int(file.read_text())
            file.write_text(str(number + 1))
            print("python", lease.token, file=tokens, flush=True)
