"""Runs the flash sale as a user does and reads what it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

PROGRAM = Path(__file__).with_name("flash_sale.py")


class Sale:
    """What a run printed and how it ended."""

    def __init__(self, url: str | None, *arguments: str, picture: Path | None = None) -> None:
        env = {name: value for name, value in os.environ.items() if name != "FENCELOCK_URL"}
        run = subprocess.run(
            [
                *(sys.executable, PROGRAM),
                *(("--url", url) if url else ()),
                *("--picture", picture or "none"),
                *arguments,
            ],
            capture_output=True,
            text=True,
            env=env,
            timeout=60,
        )
        self.code = run.returncode
        self.output = run.stdout + run.stderr
        lines = [line.split("  ", 1) for line in run.stdout.splitlines() if "  " in line]
        self.figures = {name: value.strip() for name, value in lines}

    def number(self, name: str) -> float:
        """The number that a line begins with."""
        return float(self.figures[name].split()[0])

    def assert_sold_once(self, units: int) -> None:
        assert self.code == 0, self.output
        expected = {
            "total": units,
            "sold": units,
            "left": 0,
            "oversold": 0,
            "lost": 0,
            "refused": 0,
        }
        assert {name: self.number(name) for name in expected} == expected, self.output
        assert self.figures["tokens"].startswith("rise"), self.output
        assert self.number("orders/s") > 0, self.output
        assert self.number("wait p50") <= self.number("wait p99"), self.output

    def assert_oversold(self) -> None:
        assert self.code == 0, self.output
        assert self.number("oversold") > 0, self.output
        assert "WITHOUT THE LOCK: oversold" in self.output

    def assert_survived_crash(self) -> None:
        """The others waited for the ttl, and at most a second more."""
        found = re.search(r"waited (\d+) ms", self.figures.get("crash", ""))
        assert found, self.output
        assert 1_900 <= int(found[1]) < 3_000, self.output


def server_url(backend: str) -> str:
    """A server of the tests."""
    variable = f"FENCELOCK_TEST_{backend.upper()}_URL"
    url = os.environ.get(variable)
    if not url:
        pytest.fail(
            f"{variable} is not set; `make test` starts a server and sets it, as does"
            " `tests/services/run all COMMAND`"
        )
    return url


@pytest.fixture
def redis(request: pytest.FixtureRequest) -> str:
    """The Redis server, with keys of this test alone."""
    url = server_url("redis")
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}fl.prefix={request.node.name}-{os.getpid()}:"


def test_g1_flash_sale_sells_every_unit_once(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "sale.svg"
    Sale("memory:", picture=picture).assert_sold_once(2000)

    assert picture.stat().st_size < 1 << 20
    drawn = "".join(ElementTree.parse(picture).getroot().itertext())
    assert "worker 7" in drawn
    assert "2000 sold" in drawn


@pytest.mark.parametrize("backend", ["redis", "mongodb", "zookeeper"])
def test_g1_flash_sale_of_processes_sells_every_unit_once(backend: str) -> None:
    sale = Sale(server_url(backend), "--stock", "500")
    sale.assert_sold_once(500)
    assert "8 processes" in sale.output


def test_g1_flash_sale_without_a_url_runs_in_processes_of_this_machine() -> None:
    sale = Sale(None)
    sale.assert_sold_once(2000)
    assert "8 processes, lock in files" in sale.output


def test_flash_sale_without_the_lock_oversells() -> None:
    Sale("memory:", "--no-lock", "--stock", "500").assert_oversold()


def test_flash_sale_of_processes_without_the_lock_oversells(redis: str) -> None:
    Sale(redis, "--no-lock", "--stock", "500").assert_oversold()


def test_g4_flash_sale_goes_on_when_a_worker_crashes(tmp_path: Path) -> None:
    picture = tmp_path / "crash.svg"
    sale = Sale("memory:", "--crash", picture=picture)
    sale.assert_sold_once(2000)
    sale.assert_survived_crash()
    assert "killed holding token" in picture.read_text()


def test_g4_flash_sale_goes_on_when_a_worker_process_is_killed(redis: str) -> None:
    sale = Sale(redis, "--crash")
    sale.assert_sold_once(2000)
    sale.assert_survived_crash()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--workers", "0"), "not in 1 to 1000"),
        (("--stock", "0"), "not in 1 to 1000000"),
        (("--crash", "--no-lock"), "not allowed with"),
        (("--crash", "--workers", "1"), "at least 2 workers"),
        (("--url", "gopher://"), "flash_sale: "),
    ],
)
def test_flash_sale_says_what_is_wrong_with_its_options(
    arguments: tuple[str, ...], hint: str
) -> None:
    sale = Sale("memory:", *arguments)
    assert sale.code != 0
    assert hint in sale.output
    assert "Traceback" not in sale.output
