"""Real servers for the tests: `up`, `down` and `run` beside this file are its three commands.

Each server is one function that takes a `Run` and returns a `Server`; `SERVICES` at the end names
them. To add one, write that function and its line there. Only the Python standard library is used,
because this runs before anything is installed.

What `up` started is written to `<state dir>/state.json` at once, server by server, so that `down`
also ends what an `up` that was interrupted had started. The state directory is `target/services`,
or `FENCELOCK_SERVICES_DIR`.
"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target" / "tools"
START_LIMIT = 20.0  # seconds a server may take until it answers
STOP_LIMIT = 10.0  # seconds between TERM and KILL

# The newest Toxiproxy needs Go 1.23. Debian 12 ships Go 1.19, which builds 2.5; both have every
# toxic that the tests use (latency, timeout, reset_peer, limit_data).
TOXIPROXY_NEW = ((1, 23), "v2.12.0")
TOXIPROXY_OLD = "v2.5.0"


class ServiceError(Exception):
    """Something that the person at the terminal has to know; shown without a traceback."""


def say(text: str) -> None:
    """Diagnostics go to stderr: stdout carries export lines and nothing else."""
    print(f"services: {text}", file=sys.stderr, flush=True)


# ---- processes -----------------------------------------------------------------------------------


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


@dataclass
class Server:
    """One started server: its process, and the variables through which tests find it."""

    pid: int
    started: str
    env: dict[str, str] = field(default_factory=dict)

    def runs(self) -> bool:
        return start_time(self.pid) == self.started

    def stop(self, name: str) -> None:
        if not self.runs():
            say(f"{name} (pid {self.pid}) had ended already")
            return
        # A test may have left it stopped; a stopped process takes no TERM.
        os.kill(self.pid, signal.SIGCONT)
        os.kill(self.pid, signal.SIGTERM)
        if not wait_until(lambda: not self.runs(), STOP_LIMIT):
            os.kill(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.runs(), STOP_LIMIT)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)  # in `run` it is our child and would stay a zombie
        say(f"{name} (pid {self.pid}) ended")


def wait_until(condition: Callable[[], bool], limit: float) -> bool:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Run:
    """One run directory and the servers in it, as recorded in the state file."""

    def __init__(self, state_dir: Path) -> None:
        self.file = state_dir / "state.json"
        self.servers: dict[str, Server] = {}
        # In the temporary directory, not below target/: the path of a unix socket has to be short.
        self.dir: Path | None = None
        if self.file.exists():
            state = json.loads(self.file.read_text())
            self.dir = Path(state["dir"])
            self.servers = {name: Server(**s) for name, s in state["servers"].items()}

    def save(self) -> None:
        state = {
            "dir": str(self.dir),
            "servers": {name: asdict(server) for name, server in self.servers.items()},
        }
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(state, indent=2) + "\n")
        new.replace(self.file)

    def data_dir(self, name: str) -> Path:
        if self.dir is None or not self.dir.is_dir():
            self.dir = Path(tempfile.mkdtemp(prefix="fencelock-"))
        path = self.dir / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def start(
        self,
        name: str,
        command: Callable[[int, Path], list[str]],
        answers: Callable[[int], bool],
        env: Callable[[int, Path], dict[str, str]],
    ) -> Server:
        """Starts `command(port, data_dir)` and returns when it `answers(port)`.

        A port that was free a moment ago can be taken by now, so a server that ends at once gets
        two more tries on other ports.
        """
        log = Path()
        for _ in range(3):
            port, data = free_port(), self.data_dir(name)
            log = data / "log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    command(port, data),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    cwd=data,
                    start_new_session=True,  # Ctrl-C in the terminal is for the tests, not for it
                )
            started = start_time(process.pid)
            if started is not None:
                server = Server(process.pid, started, env(port, data))
                self.servers[name] = server
                self.save()
                end = time.monotonic() + START_LIMIT
                while not answers(port) and server.runs() and time.monotonic() < end:
                    time.sleep(0.02)
                if server.runs() and answers(port):
                    say(f"{name} answers on 127.0.0.1:{port} (pid {process.pid}, {data})")
                    return server
                server.stop(name)
                del self.servers[name]
                self.save()
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise ServiceError(f"{name} does not start; the end of its log:\n{tail}")


# ---- tools ---------------------------------------------------------------------------------------


def install(package: str, what: str) -> None:
    """Installs a Debian package, or says what to do where that is not possible."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ServiceError(
            f"{what} is not on PATH: install it (on Debian, as root: apt-get install {package})"
        )
    say(f"{what} is missing: installing {package}")
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run(
            ["apt-get", "-q", *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )


def program(name: str, package: str) -> str:
    if shutil.which(name) is None:
        install(package, name)
    path = shutil.which(name)
    if path is None:
        raise ServiceError(f"{package} is installed but {name} is not on PATH")
    return path


def toxiproxy_binary() -> Path:
    """Builds the Toxiproxy server once; there is no Debian package of it."""
    go = program("go", "golang-go")
    words = subprocess.run([go, "version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", words)
    have = (int(found[1]), int(found[2])) if found else (0, 0)
    version = TOXIPROXY_NEW[1] if have >= TOXIPROXY_NEW[0] else TOXIPROXY_OLD
    binary = TOOLS / f"toxiproxy-server-{version}"
    if not binary.exists():
        say(f"building Toxiproxy {version}")
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOOLS) as out:
            subprocess.run(
                [go, "install", f"github.com/Shopify/toxiproxy/v2/cmd/server@{version}"],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | {"GOBIN": out},
            )
            # Last and in one step, so that nobody ever starts half a binary.
            (Path(out) / "server").replace(binary)
    return binary


# ---- one function per service --------------------------------------------------------------------


def redis(run: Run) -> Server:
    """Redis without persistence. FENCELOCK_TEST_REDIS_SERVER chooses another binary (Valkey)."""
    binary = os.environ.get("FENCELOCK_TEST_REDIS_SERVER") or program(
        "redis-server", "redis-server"
    )

    def command(port: int, data: Path) -> list[str]:
        return [
            binary,
            *("--port", str(port), "--bind", "127.0.0.1"),
            *("--unixsocket", str(data / "sock"), "--unixsocketperm", "700"),
            *("--save", "", "--appendonly", "no", "--dir", str(data)),
        ]

    def answers(port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(7) == b"+PONG\r\n"
        except OSError:
            return False

    def env(port: int, data: Path) -> dict[str, str]:
        return {
            "FENCELOCK_TEST_REDIS_URL": f"redis://127.0.0.1:{port}/",
            "FENCELOCK_TEST_REDIS_UNIX_URL": f"redis+unix://{data}/sock",
            # For tests that stop or kill a server: they start one of their own from this binary.
            "FENCELOCK_TEST_REDIS_SERVER": binary,
        }

    return run.start("redis", command, answers, env)


def toxiproxy(run: Run) -> Server:
    """A TCP proxy that delays, drops and resets; tests create proxies through its HTTP API."""
    binary = toxiproxy_binary()

    def command(port: int, _data: Path) -> list[str]:
        return [str(binary), "-host", "127.0.0.1", "-port", str(port)]

    def answers(port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/version", timeout=1) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def env(port: int, _data: Path) -> dict[str, str]:
        return {"FENCELOCK_TEST_TOXIPROXY_URL": f"http://127.0.0.1:{port}"}

    return run.start("toxiproxy", command, answers, env)


SERVICES: dict[str, Callable[[Run], Server]] = {"redis": redis, "toxiproxy": toxiproxy}

# What comes up with a backend: its tests cut and slow the link to it.
COMPANIONS = {"redis": ["toxiproxy"]}


# ---- the commands --------------------------------------------------------------------------------


def state_dir() -> Path:
    return Path(os.environ.get("FENCELOCK_SERVICES_DIR") or ROOT / "target" / "services")


@contextlib.contextmanager
def recorded(directory: Path) -> Iterator[Run]:
    """The run recorded in `directory`, locked against another `up` or `down` of it."""
    directory.mkdir(parents=True, exist_ok=True)
    # The servers do not inherit the lock: Python opens files close-on-exec.
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Run(directory)


def wanted(names: list[str]) -> list[str]:
    if not names:
        raise ServiceError(f"say which: {' '.join(SERVICES)} or all")
    chosen: list[str] = []
    for name in SERVICES if "all" in names else names:
        if name not in SERVICES:
            raise ServiceError(f"no service {name!r}; there are: {' '.join(SERVICES)} and all")
        chosen += [name, *COMPANIONS.get(name, [])]
    return list(dict.fromkeys(chosen))


def up(names: list[str], directory: Path | None = None) -> dict[str, str]:
    """Starts what is named and does not run yet; returns the variables for the tests."""
    chosen = wanted(names)
    env: dict[str, str] = {}
    with recorded(directory or state_dir()) as run:
        for name in chosen:
            server = run.servers.get(name)
            if server is None or not server.runs():
                server = SERVICES[name](run)
            env |= server.env
    return env


def down(directory: Path | None = None) -> None:
    """Ends the recorded servers and removes their run directory."""
    with recorded(directory or state_dir()) as run:
        for name, server in reversed(run.servers.items()):
            server.stop(name)
        if run.dir is not None:
            shutil.rmtree(run.dir, ignore_errors=True)
        run.file.unlink(missing_ok=True)


def exports(env: dict[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())


def main(command: Callable[[], int | None]) -> None:
    """Runs a command of this folder: a failure is one clear message and exit code 1."""
    try:
        sys.exit(command())
    except ServiceError as error:
        say(str(error))
    except subprocess.CalledProcessError as error:
        say(f"{shlex.join(map(str, error.cmd))} failed with exit code {error.returncode}")
    sys.exit(1)
