"""Starts the workers, as threads or as processes, and brings their reports together."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import fencelock
import worker
from sale import Job, Outcome, Turn

# A fork would copy the client's connections and threads, which are of no use in a child.
SPAWN = multiprocessing.get_context("spawn")


class Fleet:
    """All workers of a sale. Each reports through a pipe of its own."""

    def __init__(self, url: str, jobs: list[Job], processes: bool) -> None:
        self._readers: list[Connection] = []
        self._processes: list[BaseProcess] = []
        # Threads share this client. For processes it only tells a wrong URL early, and once.
        self._client = fencelock.connect(url)
        for job in jobs:
            reader, writer = multiprocessing.Pipe(duplex=False)
            self._readers.append(reader)
            if processes:
                process = SPAWN.Process(target=be_worker, args=(url, job, writer), daemon=True)
                process.start()
                self._processes.append(process)
                writer.close()  # this process's end of it
            else:
                threading.Thread(
                    target=run_and_hang_up, args=(self._client, job, writer), daemon=True
                ).start()

    def reports(self) -> Iterator[Turn]:
        """What the workers report, until all of them have ended."""
        readers: list[Connection] = list(self._readers)
        while readers:
            for reader in [r for r in wait(readers) if isinstance(r, Connection)]:
                try:
                    turn: Turn = reader.recv()
                except EOFError:
                    readers.remove(reader)
                    continue
                yield turn
                if turn.outcome is Outcome.CRASHED:
                    readers.remove(reader)

    def kill(self, number: int) -> None:
        """Ends a process without giving it a chance to clean up. A thread just hangs for ever."""
        if self._processes:
            self._processes[number].kill()

    def close(self) -> None:
        """Waits for processes, and closes the client."""
        for process in self._processes:
            process.join()
        self._client.close()


def run_and_hang_up(client: fencelock.Client, job: Job, writer: Connection) -> None:
    """The life of a worker thread. Nobody may read its reports any more; then it ends early."""
    with writer, suppress(BrokenPipeError):
        worker.run(client, job, writer)


def be_worker(url: str, job: Job, writer: Connection) -> None:
    """The life of a worker process."""
    with suppress(KeyboardInterrupt):
        client = fencelock.connect(url)
        run_and_hang_up(client, job, writer)
        client.close()
