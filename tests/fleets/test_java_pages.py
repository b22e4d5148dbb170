"""The pages on leaving a lock in Java: their code is compiled and run, with the real old lock.

Each block that is a whole class becomes one in a package of its own, so that the releases of a page
can run beside each other in one JVM, each with its own connections. ``pages/`` has what runs them.
"""

import os
import re
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FLEETS = ROOT / "target" / "fleets"
JAR = ROOT / "bindings" / "java" / "target" / "fencelock-0.1.0.jar"
LIMIT = 120
NAME = f"leaving-{uuid.uuid4()}"


@dataclass
class Page:
    """A page, its package, and the headings under which a class stands, by sub-package."""

    file: str
    package: str
    classes: dict[str, str]

    def section(self, heading: str) -> str:
        text = (ROOT / self.file).read_text(encoding="utf-8")
        found = re.search(
            rf"^#+ {re.escape(heading)}$(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL
        )
        assert found, heading
        return found[1]

    def block(self, heading: str, language: str) -> str:
        (block,) = re.findall(
            rf"^```{language}\n(.*?)^```$", self.section(heading), re.MULTILINE | re.DOTALL
        )
        return str(block)


RELEASES = {
    "release0": "Release 0: what runs now",
    "release1": "Release 1: both, the old one first",
    "release2": "Release 2: only ours",
}
REDISSON = Page(
    "bindings/java/LEAVING-REDISSON.md",
    "redisson",
    RELEASES | {"samekey": "Leaving Redisson", "fixed": "Call by call"},
)
SHEDLOCK = Page(
    "bindings/java/LEAVING-SHEDLOCK.md", "shedlock", RELEASES | {"atleast": "Its two times"}
)
CURATOR = Page(
    "core/src/backend/zookeeper/LEAVING-CURATOR-AND-KAZOO.md",
    "curator",
    {"before": "From Curator: before", "after": "From Curator: after"},
)
PAGES = [REDISSON, SHEDLOCK, CURATOR]
REDIS = os.environ["FENCELOCK_TEST_REDIS_URL"].rstrip("/")


def of_this_run(code: str) -> str:
    """With this run's servers, and names that no other run uses."""
    hosts = os.environ["FENCELOCK_TEST_ZOOKEEPER_URL"].removeprefix("zookeeper://").split("/")[0]
    for old, new in {
        "redis://127.0.0.1:6379": REDIS,
        "127.0.0.1:2181": hosts,
        '"product/123"': f'"product/{NAME}"',
        '"/locks': f'"/{NAME}',
        "fl.root=/locks": f"fl.root=/{NAME}",
        '"nightly"': f'"nightly-{NAME}"',
    }.items():
        code = code.replace(old, new)
    return code


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path, with all pages compiled at once."""
    libraries = (FLEETS / "classpath").read_text(encoding="utf-8")
    sources, built = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("classes")
    for page in PAGES:
        for name, heading in page.classes.items():
            code = page.block(heading, "java")
            title = re.search(r"^public (?:final )?class (\w+)", code, re.MULTILINE)
            assert title, heading
            folder = sources / page.package / name
            folder.mkdir(parents=True)
            package = f"package {page.package}.{name};\n"
            (folder / f"{title[1]}.java").write_text(package + of_this_run(code))
    path = f"{JAR}:{libraries}:{built}"
    files = [*sources.rglob("*.java"), *(HERE / "pages").glob("*.java")]
    lint = ["-Xlint:all,-try,-processing,-classfile,-path", "-Werror", "-proc:none"]
    subprocess.run(["javac", *lint, "-cp", path, "-d", built, *files], check=True)
    return path


def run(path: str, program: str, *arguments: str, warned: str = "") -> str:
    """What the program prints; it must end well, and quietly but for this warning."""
    # It lives for seconds: quick to start is quick enough.
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options += ["-XX:+IgnoreUnrecognizedVMOptions", "--enable-native-access=ALL-UNNAMED"]
    ended = subprocess.run(
        ["java", *options, "-cp", path, program, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (
        re.sub(r"(?m)^(.* dev.fencelock.Call log|WARNING: lease lost .*)\n", "", ended.stderr) == ""
    )
    assert (warned in ended.stderr) if warned else not ended.stderr
    return ended.stdout


def test_g1_redisson_and_ours_on_one_key_are_a_conflict(classes: str) -> None:
    printed = run(classes, "redisson.samekey.SameKey")
    assert printed == REDISSON.block("Leaving Redisson", "text")


def test_a_fixed_lease_is_what_redisson_calls_a_lease_time(classes: str) -> None:
    printed = run(classes, "redisson.fixed.FixedLease", warned="lease lost")
    assert printed == REDISSON.block("Call by call", "text")


def test_g1_leaving_redisson_in_two_releases(classes: str) -> None:
    """Increments that are lost: none, except where the page says that the two do not exclude."""
    assert run(classes, "RedissonPage", REDIS).splitlines() == [
        "0 beside 1: 0",
        "1 beside 2: 0",
        "tokens go on: true",
        "0 beside 2 loses some: true",
    ]


def test_g1_leaving_shedlock_in_two_releases(classes: str) -> None:
    printed = run(classes, "ShedLockPage", REDIS, NAME).splitlines()
    apart = {(0, 2), (2, 0)}
    assert printed[:9] == [
        f"{holder} excludes {other}: {str((holder, other) not in apart).lower()}"
        for holder in range(3)
        for other in range(3)
    ]
    # Its Redis record is a key as ours, which its unlock deletes without a look.
    assert printed[9:] == ["the same key: true", "ours: true", "its unlock deletes ours: FREE"]


def test_what_replaces_the_least_time_of_shedlock(classes: str) -> None:
    printed = run(classes, "shedlock.atleast.AtLeast")
    assert printed == SHEDLOCK.block("Its two times", "text")


def test_g1_leaving_curator_in_one_release(classes: str) -> None:
    assert run(classes, "CuratorPage") == "lost: 0\n"
