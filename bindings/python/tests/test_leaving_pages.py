"""The pages on leaving a hand-written lock: their code runs, one release beside the next.

They stand beside the backends in core. Each release defines ``product_locked``, under which the
tests raise an unguarded number: what two do at once is lost.
"""

import re
import sys
import textwrap
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from pymongo import MongoClient

import fencelock
from conftest import server_url
from support import Program

PAGES = Path(__file__).resolve().parents[3] / "core" / "src" / "backend"
ROUNDS = 12

COUNT = """
import pathlib, sys
import time
file, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    with product_locked():
        value = int(file.read_text())
        time.sleep(0.002)
        file.write_text(str(value + 1))
"""


class Page:
    """A page, and what stands in its code for things that the test has others of."""

    def __init__(self, file: str, replaced: dict[str, str]) -> None:
        self.text = (PAGES / file).read_text(encoding="utf-8")
        self.replaced = replaced

    def code(self, *headings: str) -> str:
        """The blocks below these headings, one after the other."""
        blocks: list[str] = []
        for heading in headings:
            title = rf"^##+ {re.escape(heading)}$"
            found = re.search(rf"{title}(.*?)(?=^##+ |\Z)", self.text, re.MULTILINE | re.DOTALL)
            assert found, heading
            # Also those within a list.
            blocks += map(
                textwrap.dedent,
                re.findall(r"^ *```python\n(.*?)^ *```$", found[1], re.MULTILINE | re.DOTALL),
            )
        code = "\n".join(blocks)
        for old, new in self.replaced.items():
            code = code.replace(old, new)
        return code

    def uses_all_that_is_replaced(self) -> bool:
        return all(old in self.text for old in self.replaced)


def assert_none_is_lost(releases: list[str], folder: Path) -> None:
    """Runs two instances of each release."""
    file = folder / "counter"
    file.write_text("0")
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                Program.of(sys.executable, "-c", code + COUNT, str(file), str(ROUNDS))
            )
            for code in releases * 2
        ]
        # None has done its rounds before the last one begins.
        for program in programs:
            assert program.line() == "ready"
        for program in programs:
            program.say("go")
        for program in programs:
            assert program.end() == ""
    assert int(file.read_text()) == ROUNDS * len(programs)


@pytest.fixture
def mongodb() -> Iterator[Page]:
    """The page, with a collection of the test's own that has the index the page asks for."""
    url, database = server_url("mongodb"), f"leaving-{uuid.uuid4()}"
    with MongoClient[dict[str, object]](url) as server:
        server[database]["locks"].create_index("key", unique=True)
        yield Page(
            "mongodb/LEAVING-A-COUNTER-LOCK.md",
            {
                '"mongodb://127.0.0.1/?replicaSet=rs0"': repr(url),
                '"shop"': repr(database),
                '"product/123"': repr(f"product/{database}"),
            },
        )
        server.drop_database(database)


@pytest.fixture
def redis() -> Page:
    """The page, with a key of the test's own."""
    return Page(
        "redis/LEAVING-REDIS-PY-AND-SETNX.md",
        {
            "redis://127.0.0.1/0": server_url("redis").rstrip("/") + "/0",
            "product/123": f"product/{uuid.uuid4()}",
        },
    )


@pytest.mark.parametrize("before", ["redis-py's `Lock`", "written by hand"])
def test_g1_leaving_a_string_key_in_one_release(redis: Page, tmp_path: Path, before: str) -> None:
    assert redis.uses_all_that_is_replaced()
    assert_none_is_lost([redis.code(f"Before: {before}"), redis.code("After")], tmp_path)


def test_g1_leaving_a_string_key_is_verified_as_the_page_says(redis: Page) -> None:
    with Program.of(sys.executable, "-c", redis.code("Step by step")) as program:
        assert program.end() == ""


@pytest.fixture
def kazoo() -> Iterator[Page]:
    """The page on kazoo, with a root of the test's own, which the old code makes."""
    url, root = server_url("zookeeper"), f"/leaving-{uuid.uuid4()}"
    hosts = url.removeprefix("zookeeper://").split("/")[0]
    client = KazooClient(hosts)
    client.start()
    client.ensure_path(f"{root}/product-123")
    replaced = {"127.0.0.1:2181": hosts, "/locks": root}
    yield Page("zookeeper/LEAVING-CURATOR-AND-KAZOO.md", replaced)
    client.delete(root, recursive=True)
    client.stop()
    client.close()


def test_g1_leaving_kazoo_in_one_release(kazoo: Page, tmp_path: Path) -> None:
    releases = [kazoo.code("From kazoo: before"), kazoo.code("From kazoo: after")]
    assert_none_is_lost(releases, tmp_path)


OLD, BOTH, OURS = (
    "Release 0: what runs now",
    "Release 1: both, the old one first",
    "Release 2: only ours",
)


def test_g1_leaving_a_counter_lock_old_beside_both(mongodb: Page, tmp_path: Path) -> None:
    assert mongodb.uses_all_that_is_replaced()
    assert_none_is_lost([mongodb.code(OLD), mongodb.code(OLD, BOTH)], tmp_path)


def test_g1_leaving_a_counter_lock_both_beside_ours(mongodb: Page, tmp_path: Path) -> None:
    assert_none_is_lost([mongodb.code(OLD, BOTH), mongodb.code(OURS)], tmp_path)


@pytest.fixture
def zookeeper() -> Iterator[Page]:
    """The page, with a root of the test's own."""
    url, root = server_url("zookeeper"), f"/leaving-{uuid.uuid4()}"
    hosts = url.removeprefix("zookeeper://").split("/")[0]
    yield Page(
        "zookeeper/LEAVING-A-HAND-WRITTEN-LOCK.md",
        {
            '"127.0.0.1:2181"': repr(hosts),
            "//127.0.0.1:2181/": f"//{hosts}/",
            "/locks": root,
            # The name of those that do not share a path.
            '"product-123"': repr(f"product-{root[1:]}"),
            "/product-123": f"/product-{root[1:]}",
        },
    )
    client = KazooClient(hosts)
    client.start()
    client.delete(root, recursive=True)
    client.stop()
    client.close()


NOW, DIRECT = "What runs now", "In one release"


def test_g1_leaving_a_hand_written_lock_in_one_release(zookeeper: Page, tmp_path: Path) -> None:
    assert zookeeper.uses_all_that_is_replaced()
    assert_none_is_lost([zookeeper.code(NOW), zookeeper.code(DIRECT)], tmp_path)


@pytest.mark.parametrize("prefix", ["", "lock_"])
def test_g1_leaving_a_hand_written_lock_old_beside_both(
    zookeeper: Page, tmp_path: Path, prefix: str
) -> None:
    zookeeper.replaced['PREFIX = ""'] = f"PREFIX = {prefix!r}"
    assert zookeeper.uses_all_that_is_replaced()
    assert_none_is_lost([zookeeper.code(NOW), zookeeper.code(NOW, BOTH)], tmp_path)


def test_g1_leaving_a_hand_written_lock_both_beside_ours(zookeeper: Page, tmp_path: Path) -> None:
    assert_none_is_lost([zookeeper.code(NOW, BOTH), zookeeper.code(OURS)], tmp_path)


@pytest.mark.parametrize(
    ("path", "root", "name"),
    [
        ("/locks/product-123", "/locks", "product-123"),
        ("/locks/stock/123", "/locks/stock", "123"),
        ("/product-lock", "/", "product-lock"),
    ],
)
def test_the_path_of_the_old_code_is_root_and_name(
    zookeeper: Page, path: str, root: str, name: str
) -> None:
    """As a table of the page says."""
    assert f"| path `{path}` | `fl.root={root}`, name `{name}`" in zookeeper.text
    own = zookeeper.replaced["/locks"]
    if root == "/":
        path, name = own, own[1:]
    else:
        path, root = path.replace("/locks", own), root.replace("/locks", own)
    url = server_url("zookeeper")
    client = KazooClient(url.removeprefix("zookeeper://").split("/")[0])
    client.start()
    with (
        fencelock.connect(f"{url}?fl.root={root}&fl.node_layout=plain") as ours,
        ours.lock(name, ttl=10),
    ):
        (node,) = client.get_children(path)
        assert re.fullmatch(r"\d{10}", node)
    client.stop()
    client.close()
