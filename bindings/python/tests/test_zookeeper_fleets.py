"""Our lock beside those that services use on ZooKeeper today: they exclude each other.

The peers are the programs in tests/fleets, whose README has the lines that they obey.
"""

import os
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

import fencelock
from conftest import server_url
from support import LIMIT, Program, wait_until

ROOT = Path(__file__).resolve().parents[3]
FLEETS = ROOT / "tests" / "fleets"
JAVA = ROOT / "target" / "fleets"

OURS = """
import pathlib, sys, time
import fencelock
url, name, rounds, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])

with fencelock.connect(url) as client:
    lock = client.lock(name, ttl=10, timeout=60)
    for _ in range(rounds):
        with lock as lease:
            value = int(file.read_text())
            time.sleep(0.0001)
            file.write_text(str(value + 1))
            lease.check()
"""


def java(program: str) -> list[str]:
    libraries = JAVA / "classpath"
    if not libraries.exists():
        pytest.fail("the peers in Java are not built: run `make fleets`")
    # They live for seconds: quick to start is quick enough.
    options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    path = f"{JAVA / 'classes'}:{libraries.read_text()}"
    return [os.environ.get("FENCELOCK_TEST_JAVA", "java"), *options, "-cp", path, program]


def python(program: str) -> list[str]:
    return [sys.executable, str(FLEETS / program)]


@dataclass
class Place:
    """A lock as both sides name it."""

    root: str
    name: str

    @property
    def hosts(self) -> str:
        return server_url("zookeeper").removeprefix("zookeeper://").split("/")[0]

    @property
    def path(self) -> str:
        return f"{self.root}/{self.name}"

    def url(self, layout: str) -> str:
        url = server_url("zookeeper").split("?")[0]
        return f"{url}?fl.root={self.root}&fl.node_layout={layout}"


@dataclass
class Fleet:
    """Instances of another lock, and the layout with which ours exclude them."""

    layout: str
    command: list[str]
    arguments: list[str]

    def peer(self, place: Place) -> Program:
        """One instance, ready."""
        peer = Program.of(*self.command, place.hosts, place.path, *self.arguments)
        assert peer.line() == "ready"
        return peer


@pytest.fixture(
    params=[
        *("curator", "curator-with-plain", "kazoo", "kazoo-with-pattern"),
        *("hand-written", "hand-written-zkclient"),
    ]
)
def fleet(request: pytest.FixtureRequest) -> Fleet:
    match request.param:
        case "curator":
            return Fleet("curator", java("CuratorPeer"), [])
        case "curator-with-plain":
            return Fleet("plain", java("CuratorPeer"), [])
        case "kazoo":
            return Fleet("kazoo", python("kazoo_peer.py"), [])
        case "kazoo-with-pattern":
            return Fleet("curator", python("kazoo_peer.py"), ["-lock-"])
        case "hand-written":
            return Fleet("plain", python("hand_written_peer.py"), [])
        case _:
            return Fleet("plain", java("ZkClientPeer"), [])


@pytest.fixture
def place() -> Iterator[Place]:
    """A path that was there before us, as it is where an old fleet runs."""
    place = Place(f"/fleet-{uuid.uuid4()}", "product-123")
    old = KazooClient(place.hosts)
    old.start()
    old.ensure_path(place.path)
    yield place
    old.delete(place.root, recursive=True)
    old.stop()
    old.close()


def ask(peer: Program, line: str) -> str:
    peer.say(line)
    return peer.line()


def test_g1_each_excludes_the_other(fleet: Fleet, place: Place) -> None:
    with fencelock.connect(place.url(fleet.layout)) as client, fleet.peer(place) as peer:
        lock = client.lock(place.name, ttl=10)

        assert ask(peer, "acquire 0") == "true"
        assert lock.try_acquire() is None
        with pytest.raises(fencelock.LockTimeout):
            lock.acquire(timeout=0.1)
        info = client.inspect(place.name)
        assert (info.state, info.token, info.ttl_left_ms) == ("foreign", None, None)
        assert ask(peer, "release") == "released"

        with lock as lease:
            assert ask(peer, "acquire 0") == "false"
            assert ask(peer, "acquire 100") == "false"
            assert lease.held
        assert ask(peer, "acquire 0") == "true"


def test_g1_each_waits_for_the_other(fleet: Fleet, place: Place) -> None:
    with fencelock.connect(place.url(fleet.layout)) as client, fleet.peer(place) as peer:
        lock = client.lock(place.name, ttl=10, timeout=LIMIT)

        def queued() -> int:
            return len(client.inspect(place.name).queue)

        with lock:
            peer.say(f"acquire {LIMIT * 1000:.0f}")
            wait_until(lambda: queued() == 1)
        assert peer.line() == "true"

        taken: list[fencelock.Lease] = []
        ours = threading.Thread(target=lambda: taken.append(lock.acquire()))
        ours.start()
        wait_until(lambda: queued() == 1)
        assert not taken
        assert ask(peer, "release") == "released"
        ours.join()
        assert taken[0].held
        taken[0].release()


def test_g1_mixed_fleet_loses_no_increment(fleet: Fleet, place: Place, tmp_path: Path) -> None:
    file, rounds = tmp_path / "counter", 30
    file.write_text("0")
    with ExitStack() as stack:
        peers = [stack.enter_context(fleet.peer(place)) for _ in range(2)]
        url = place.url(fleet.layout)
        ours = [
            stack.enter_context(Program(OURS, url, place.name, str(rounds), str(file)))
            for _ in range(2)
        ]
        for peer in peers:
            peer.say(f"count {rounds} {file}")
        for peer in peers:
            assert peer.line() == "counted"
        for program in ours:
            assert program.end() == ""
    assert int(file.read_text()) == 4 * rounds


@pytest.mark.parametrize("layout", ["curator", "plain"])
def test_kazoo_by_itself_ignores_other_layouts(place: Place, layout: str) -> None:
    """The README warns of it; this tells when that is no longer so."""
    kazoo = Fleet(layout, python("kazoo_peer.py"), [])
    with fencelock.connect(place.url(layout)) as client, kazoo.peer(place) as peer:
        lock = client.lock(place.name, ttl=10)
        with lock:
            assert ask(peer, "acquire 0") == "true"
        assert lock.try_acquire() is None


def test_curator_and_layout_kazoo_do_not_exclude_each_other(place: Place) -> None:
    """Nor would Curator and kazoo: the README warns of both."""
    fleet = Fleet("kazoo", java("CuratorPeer"), [])
    with (
        fencelock.connect(place.url("kazoo")) as client,
        fleet.peer(place) as peer,
        client.lock(place.name, ttl=10),
    ):
        assert ask(peer, "acquire 0") == "true"
