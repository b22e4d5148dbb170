"""Server processes that outlive the program which started them, and the file that remembers them.

A service is one process or several (the members of a replica set or an ensemble). All of them are
written to `<state dir>/state.json` as they are started, so that `down` also ends what an `up` that
was interrupted had started.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

START_LIMIT = 30.0  # seconds a service may take until it answers
STOP_LIMIT = 10.0  # seconds between TERM and KILL
POLL = 0.02

# A memory file system, because on a disk each majority write waits for several fsyncs. One that is
# small, as in a container, would fill up.
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 1 << 30


class ServiceError(Exception):
    """Something that the person at the terminal has to know; shown without a traceback."""


def say(text: str) -> None:
    """Diagnostics go to stderr: stdout carries export lines and nothing else."""
    print(f"services: {text}", file=sys.stderr, flush=True)


def start_time(pid: int) -> str | None:
    """When the process started, as an opaque text; None when it is gone or only a zombie.

    A pid alone is not an identity: after the server's death the kernel may give it to anybody.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except ProcessLookupError:
        return None
    else:
        # The command name (field 2) is in parentheses and may contain anything.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    # No /proc, as on macOS.
    ps = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = ps.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def wait_until(condition: Callable[[], bool], limit: float) -> bool:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True


def free_ports(count: int) -> list[int]:
    """Different ports, free a moment ago."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@dataclass
class Process:
    pid: int
    started: str | None  # None: it ended at once

    def runs(self) -> bool:
        return self.started is not None and start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        if self.runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass
class Service:
    """One started service: its processes, and the variables through which tests find it."""

    processes: dict[str, Process] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def runs(self) -> bool:
        return bool(self.processes) and all(p.runs() for p in self.processes.values())

    def signal(self, number: int) -> None:
        for process in self.processes.values():
            process.signal(number)

    def ended(self) -> bool:
        return not any(process.runs() for process in self.processes.values())


def stop(services: dict[str, Service]) -> None:
    """Ends services side by side."""
    for name, service in services.items():
        for member, process in service.processes.items():
            if not process.runs():
                say(f"{name}: {member} (pid {process.pid}) had ended already")
        # A test may have left it stopped; a stopped process takes no TERM.
        service.signal(signal.SIGCONT)
        service.signal(signal.SIGTERM)
    if not wait_until(lambda: all(s.ended() for s in services.values()), STOP_LIMIT):
        for service in services.values():
            service.signal(signal.SIGKILL)
        wait_until(lambda: all(s.ended() for s in services.values()), STOP_LIMIT)
    for name, service in services.items():
        for process in service.processes.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)  # in `run` our child: it would stay a zombie
        say(f"{name} ended")


@dataclass
class Plan:
    """One try to start a service: on these ports, in these folders."""

    commands: dict[Path, list[str]]
    """The command of each process, by its folder; the folder's name is that of the process."""
    answers: Callable[[], bool]
    """Asked again and again until it is true."""
    env: dict[str, str]


Planner = Callable[["Run"], Plan]


class Run:
    """One run directory and the services in it, as recorded in the state file."""

    def __init__(self, state_dir: Path) -> None:
        self.file = state_dir / "state.json"
        self.services: dict[str, Service] = {}
        # Not below target/: the path of a unix socket has to be short.
        self.dir: Path | None = None
        if self.file.exists():
            state = json.loads(self.file.read_text())
            self.dir = Path(state["dir"])
            for name, saved in state["services"].items():
                processes = {key: Process(**p) for key, p in saved["processes"].items()}
                self.services[name] = Service(processes, saved["env"])

    def save(self) -> None:
        state = {
            "dir": str(self.dir),
            "services": {name: asdict(service) for name, service in self.services.items()},
        }
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(state, indent=2) + "\n")
        new.replace(self.file)

    def data_dir(self, process: str) -> Path:
        """An empty folder for a process."""
        if self.dir is None or not self.dir.is_dir():
            memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
            self.dir = Path(tempfile.mkdtemp(prefix="fencelock-", dir=MEMORY if memory else None))
            self.save()
        path = self.dir / process
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def start(self, planners: dict[str, Planner]) -> None:
        """Starts services side by side, and returns when all of them answer.

        A port that was free a moment ago can be taken by now, so a service of which a process ends
        at once gets two more tries on other ports.
        """
        tries = dict.fromkeys(planners, 3)
        waiting = {name: self.launch(name, planner(self)) for name, planner in planners.items()}
        end = time.monotonic() + START_LIMIT
        while waiting:
            for name, plan in list(waiting.items()):
                service, late = self.services[name], time.monotonic() > end
                if service.runs() and plan.answers():
                    del waiting[name]
                    pids = " ".join(str(process.pid) for process in service.processes.values())
                    say(f"{name} answers (pid {pids}, in {self.dir})")
                elif late or not service.runs():
                    tries[name] -= 1
                    if late or not tries[name]:
                        raise ServiceError(f"{name} does not start{log_ends(plan)}")
                    stop({name: service})
                    waiting[name] = self.launch(name, planners[name](self))
            time.sleep(POLL)

    def launch(self, name: str, plan: Plan) -> Plan:
        service = self.services[name] = Service(env=plan.env)
        for folder, command in plan.commands.items():
            with (folder / "log").open("wb") as out:
                started = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    cwd=folder,
                    start_new_session=True,  # Ctrl-C in the terminal is for the tests, not for it
                )
            service.processes[folder.name] = Process(started.pid, start_time(started.pid))
            self.save()
        return plan


def log_ends(plan: Plan) -> str:
    text = ""
    for folder in plan.commands:
        lines = (folder / "log").read_text(errors="replace").splitlines()
        text += "\n".join([f"\n{folder.name}:", *lines[-15:]])
    return text
