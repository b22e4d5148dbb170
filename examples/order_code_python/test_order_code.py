"""Runs the program as a user does and reads what it prints."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("order_code.py")


class Run:
    """What a run printed and how it ended."""

    def __init__(self, *arguments: str) -> None:
        env = {name: value for name, value in os.environ.items() if name != "FENCELOCK_URL"}
        run = subprocess.run(
            [sys.executable, PROGRAM, *arguments],
            capture_output=True,
            text=True,
            env=env,
            timeout=60,
        )
        self.code = run.returncode
        self.output = run.stdout + run.stderr
        self.codes = re.findall(r"^\d{8}-\d{6}(?=$|  token )", run.stdout, re.MULTILINE)

    def assert_codes_differ_and_rise(self, threads: int) -> None:
        assert self.code == 0, self.output
        assert len(self.codes) == threads, self.output
        # Lines stand in the order of the grants.
        assert all(a < b for a, b in pairwise(self.codes)), self.output
        assert self.output.endswith("OK: every order has a code of its own\n")


def test_g1_order_codes_differ_in_files_of_this_machine() -> None:
    run = Run()
    run.assert_codes_differ_and_rise(20)
    assert "20 threads, lock in files" in run.output


def test_g1_order_codes_differ_in_memory() -> None:
    Run("--url", "memory:", "--threads", "100").assert_codes_differ_and_rise(100)


@pytest.mark.parametrize("backend", ["redis", "mongodb", "zookeeper"])
def test_g1_order_codes_differ_in(backend: str) -> None:
    variable = f"FENCELOCK_TEST_{backend.upper()}_URL"
    url = os.environ.get(variable)
    if not url:
        pytest.fail(
            f"{variable} is not set; `make test` starts a server and sets it, as does"
            " `tests/services/run all COMMAND`"
        )
    Run("--url", url).assert_codes_differ_and_rise(20)


def test_without_the_lock_orders_get_the_same_code() -> None:
    run = Run("--url", "memory:", "--no-lock")
    assert run.code == 0, run.output
    assert len(run.codes) == 20, run.output
    assert len(set(run.codes)) < 20, run.output
    assert "of 20 orders got a code that was taken" in run.output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--threads", "0"), "not in 1 to 1000"),
        (("--threads", "many"), "not in 1 to 1000"),
        (("--url", "gopher://"), "order_code: "),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], hint: str) -> None:
    run = Run(*arguments)
    assert run.code != 0
    assert hint in run.output
    assert "Traceback" not in run.output
