"""Real servers for the tests: `up`, `down` and `run` beside this file are its three commands.

Each service is one function that returns a `Plan`: the command of each of its processes, how to see
that they answer, and the variables for the tests. `SERVICES` at the end names them. To add one,
write that function and its line there. Only the Python standard library is used, because this runs
before anything is installed.

What `up` started is recorded in the state directory, which is `target/services`, or
`FENCELOCK_SERVICES_DIR`.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import mongo_wire
import tools
from processes import Plan, Planner, Run, ServiceError, free_ports, say, stop

MEMBERS = 3  # of a replica set, and of an ensemble


# ---- one function per service --------------------------------------------------------------------


def redis(run: Run) -> Plan:
    """Redis without persistence. FENCELOCK_TEST_REDIS_SERVER chooses another binary (Valkey)."""
    binary, data, (port,) = tools.redis_server(), run.data_dir("redis"), free_ports(1)
    command = [
        binary,
        *("--port", str(port), "--bind", "127.0.0.1"),
        *("--unixsocket", str(data / "sock"), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(data)),
    ]
    env = {
        "FENCELOCK_TEST_REDIS_URL": f"redis://127.0.0.1:{port}/",
        "FENCELOCK_TEST_REDIS_UNIX_URL": f"redis+unix://{data}/sock",
        # For tests that stop or kill a server: they start one of their own from this binary.
        "FENCELOCK_TEST_REDIS_SERVER": binary,
    }
    return Plan({data: command}, lambda: ask(port, b"PING\r\n") == b"+PONG\r\n", env)


def mongod(data: Path, port: int) -> list[str]:
    """The command of one small server; what it keeps need not outlive the machine."""
    parameters = {
        "diagnosticDataCollectionEnabled": "false",
        # Else a member waits for 15 s before it ends.
        "shutdownTimeoutMillisForSignaledShutdown": "0",
    }
    return [
        tools.mongod(),
        *("--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket"),
        *("--dbpath", str(data), "--wiredTigerCacheSizeGB", "0.25"),
        # A journal starts with 300 MB otherwise, which a memory file system really has to find.
        *("--wiredTigerEngineConfigString", "log=(prealloc=false,file_max=8MB)"),
        *(word for pair in parameters.items() for word in ("--setParameter", "=".join(pair))),
    ]


def mongodb(run: Run) -> Plan:
    """A replica set; all members are healthy when it answers."""
    ports = free_ports(MEMBERS)
    hosts = [f"127.0.0.1:{port}" for port in ports]
    config = {
        "_id": "rs0",
        "members": [{"_id": n, "host": host} for n, host in enumerate(hosts)],
        # The first primary is elected after that time; by default after ten seconds.
        "settings": {"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 200},
    }

    def answers() -> bool:
        try:
            states = [mongo_wire.command(port, {"hello": 1}) for port in ports]
            if "setName" not in states[0]:
                mongo_wire.command(ports[0], {"replSetInitiate": config})
                return False
        except (OSError, mongo_wire.CommandError):
            return False
        primaries = sum(state["isWritablePrimary"] for state in states)
        secondaries = sum(state.get("secondary", False) for state in states)
        return (primaries, secondaries) == (1, MEMBERS - 1)

    commands = {}
    for n, port in enumerate(ports, 1):
        data = run.data_dir(f"mongodb-{n}")
        commands[data] = [*mongod(data, port), "--replSet", "rs0", "--oplogSize", "50"]
    env = {
        "FENCELOCK_TEST_MONGODB_URL": f"mongodb://{','.join(hosts)}/?replicaSet=rs0",
        "FENCELOCK_TEST_MONGOD": tools.mongod(),
    }
    return Plan(commands, answers, env)


def mongodb_standalone(run: Run) -> Plan:
    """One server that is no replica set: without change streams."""
    data, (port,) = run.data_dir("mongodb-standalone"), free_ports(1)

    def answers() -> bool:
        try:
            return bool(mongo_wire.command(port, {"hello": 1})["isWritablePrimary"])
        except OSError:
            return False

    env = {
        "FENCELOCK_TEST_MONGODB_STANDALONE_URL": f"mongodb://127.0.0.1:{port}/",
        "FENCELOCK_TEST_MONGOD": tools.mongod(),
    }
    return Plan({data: mongod(data, port)}, answers, env)


def zookeeper(run: Run) -> Plan:
    """An ensemble; all members serve when it answers."""
    java, classpath = tools.java(), tools.zookeeper_classpath()
    ports = free_ports(3 * MEMBERS)
    clients, quorum, election = ports[0::3], ports[1::3], ports[2::3]
    commands = {}
    for n in range(MEMBERS):
        data = run.data_dir(f"zookeeper-{n + 1}")
        # The limits count ticks. A tick is short so that sessions may be; the limits are long,
        # because on a busy machine a member that is late is not dead.
        lines = [
            *("tickTime=100", "initLimit=100", "syncLimit=50"),
            *("minSessionTimeout=200", "maxSessionTimeout=60000", "maxClientCnxns=0"),
            *(f"clientPort={clients[n]}", "clientPortAddress=127.0.0.1", f"dataDir={data}"),
            *("admin.enableServer=false", "4lw.commands.whitelist=*"),
            *(f"server.{m + 1}=127.0.0.1:{quorum[m]}:{election[m]}" for m in range(MEMBERS)),
        ]
        (data / "zoo.cfg").write_text("\n".join(lines) + "\n")
        (data / "myid").write_text(f"{n + 1}\n")
        commands[data] = [
            *(java, "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            # Nothing has to outlive the machine, and a killed process loses no written page.
            "-Dzookeeper.forceSync=no",
            *("-cp", classpath, "org.apache.zookeeper.server.quorum.QuorumPeerMain"),
            str(data / "zoo.cfg"),
        ]

    def answers() -> bool:
        return all(b"\nMode: " in ask(port, b"srvr") for port in clients)

    hosts = ",".join(f"127.0.0.1:{port}" for port in clients)
    env = {
        "FENCELOCK_TEST_ZOOKEEPER_URL": f"zookeeper://{hosts}/",
        "FENCELOCK_TEST_ZOOKEEPER_CLASSPATH": classpath,
        "FENCELOCK_TEST_JAVA": java,
    }
    return Plan(commands, answers, env)


def toxiproxy(run: Run) -> Plan:
    """A TCP proxy that delays, drops and resets; tests create proxies through its HTTP API."""
    binary, data, (port,) = tools.toxiproxy_server(), run.data_dir("toxiproxy"), free_ports(1)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/version", timeout=1) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    command = [binary, "-host", "127.0.0.1", "-port", str(port)]
    return Plan({data: command}, answers, {"FENCELOCK_TEST_TOXIPROXY_URL": url})


def ask(port: int, request: bytes) -> bytes:
    """The first part of the answer; empty where nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
            link.sendall(request)
            return link.recv(1024)
    except OSError:
        return b""


SERVICES: dict[str, Planner] = {
    "redis": redis,
    "mongodb": mongodb,
    "mongodb-standalone": mongodb_standalone,
    "zookeeper": zookeeper,
    "toxiproxy": toxiproxy,
}

# What comes up with a backend: its tests cut and slow the link to it, and run on its other shapes.
COMPANIONS = {
    "redis": ["toxiproxy"],
    "mongodb": ["mongodb-standalone", "toxiproxy"],
    "zookeeper": ["toxiproxy"],
}


def url_variable(service: str) -> str:
    """The variable through which tests find a service."""
    return f"FENCELOCK_TEST_{service.upper().replace('-', '_')}_URL"


# ---- the commands --------------------------------------------------------------------------------


def state_dir() -> Path:
    return Path(os.environ.get("FENCELOCK_SERVICES_DIR") or tools.ROOT / "target" / "services")


@contextlib.contextmanager
def recorded(directory: Path) -> Iterator[Run]:
    """The run recorded in `directory`, locked against another `up` or `down` of it."""
    directory.mkdir(parents=True, exist_ok=True)
    # The servers do not inherit the lock: Python opens files close-on-exec.
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Run(directory)


def wanted(names: list[str]) -> list[str]:
    """The services that these names mean, companions included."""
    if not names:
        raise ServiceError(f"say which: {' '.join(SERVICES)} or all")
    chosen: list[str] = []
    for name in SERVICES if "all" in names else names:
        if name not in SERVICES:
            raise ServiceError(f"no service {name!r}; there are: {' '.join(SERVICES)} and all")
        chosen += [name, *COMPANIONS.get(name, [])]
    return list(dict.fromkeys(chosen))


def up(chosen: list[str], directory: Path | None = None) -> dict[str, str]:
    """Starts what is chosen and does not run yet; returns the variables for the tests."""
    with recorded(directory or state_dir()) as run:
        missing = [n for n in chosen if n not in run.services or not run.services[n].runs()]
        # Of a set that has lost a member the others still run.
        stop({name: run.services[name] for name in missing if name in run.services})
        run.start({name: SERVICES[name] for name in missing})
        return {key: value for name in chosen for key, value in run.services[name].env.items()}


def down(directory: Path | None = None) -> None:
    """Ends the recorded services and removes their run directory."""
    with recorded(directory or state_dir()) as run:
        stop(run.services)
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
