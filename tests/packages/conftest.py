"""A clean place for each test, and the packages."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What the README's code needs around it, and how it becomes a program.
sys.path.insert(0, str(ROOT / "tests" / "docs"))

TOOLS = ("cargo", "cc", "cmake", "java", "node", "pkg-config", "tar")


def one(dist: Path, pattern: str) -> Path:
    """The one file of this name."""
    found = [*dist.glob(pattern)]
    assert len(found) == 1, f"{pattern} in {dist}: {found}"
    return found[0]


@pytest.fixture(scope="session")
def dist() -> Path:
    folder = os.environ.get("FENCELOCK_TEST_DIST")
    assert folder, "FENCELOCK_TEST_DIST is not set: run the tests with `make test-packages`"
    return ROOT / folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the home as well; the environment has only what tools need."""
    # Found before the home is another one: rustup keeps its toolchains there.
    rust = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}
    homes = {name: os.environ.get(name, str(Path.home() / place)) for name, place in rust.items()}
    found = [shutil.which(tool) for tool in TOOLS]
    folders = [str(Path(tool).parent) for tool in found if tool]
    for name in list(os.environ):
        if not name.startswith(("FENCELOCK_TEST_", "SSL_CERT", "RUSTUP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", ":".join(dict.fromkeys([*folders, "/usr/bin", "/bin"])))
    monkeypatch.setenv("LANG", "C.UTF-8")
    for name, home in homes.items():
        monkeypatch.setenv(name, home)
    folder = tmp_path / "clean"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
