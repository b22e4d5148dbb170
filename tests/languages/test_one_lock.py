"""One process of each language contends for one name; see README.md."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = Path(os.environ["FENCELOCK_TEST_BUILT"])
INSTALLED = ROOT / "target" / "install"
JAR = ROOT / "bindings" / "java" / "target" / "fencelock-0.1.0.jar"
ROUNDS = 500
# 2,500 turns take seconds; this is for a machine that does much else.
LIMIT = 240


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """How the program is started, by language."""
    folder = tmp_path_factory.mktemp("peers")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fencelock"],
        env=os.environ | {"PKG_CONFIG_PATH": str(INSTALLED / "lib" / "pkgconfig")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    built = [str(folder / "peer"), f"-Wl,-rpath,{INSTALLED / 'lib'}"]
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, HERE / "peer.c", *flags, "-o", *built], check=True)
    subprocess.run(["javac", "-cp", JAR, "-d", folder, HERE / "Peer.java"], check=True)
    return {
        "rust": [str(BUILT / "peer")],
        "python": [sys.executable, str(HERE / "peer.py")],
        "node": ["node", str(HERE / "peer.mjs")],
        "java": [
            "java",
            "-XX:+IgnoreUnrecognizedVMOptions",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            f"{JAR}:{folder}",
            "Peer",
        ],
        "c": [built[0]],
    }


@pytest.mark.parametrize("backend", ["redis", "mongodb", "zookeeper"])
def test_g1_g3_one_lock_in_five_languages(
    programs: dict[str, list[str]], backend: str, tmp_path: Path
) -> None:
    url = os.environ[f"FENCELOCK_TEST_{backend.upper()}_URL"]
    file = tmp_path / "counter"
    file.write_text("0")
    tokens = Path(f"{file}.tokens")
    tokens.touch()
    name = f"five-languages/{os.getpid()}/{backend}"

    peers = {
        language: subprocess.Popen(
            [*program, url, name, str(ROUNDS), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for language, program in programs.items()
    }
    try:
        for language, peer in peers.items():
            assert peer.stdout is not None
            assert peer.stdout.readline() == "ready\n", (language, peer.communicate()[1])
        for peer in peers.values():
            assert peer.stdin is not None
            peer.stdin.close()
            peer.stdin = None
        for language, peer in peers.items():
            output, errors = peer.communicate(timeout=LIMIT)
            assert (peer.returncode, output, errors) == (0, "", ""), language
    finally:
        for peer in peers.values():
            peer.kill()
            peer.wait()

    turns = [line.split() for line in tokens.read_text().splitlines()]
    assert file.read_text() == str(ROUNDS * len(programs)), "increments were lost"
    assert [sum(turn[0] == language for turn in turns) for language in programs] == [ROUNDS] * 5
    granted = [int(token) for _, token in turns]
    assert all(earlier < later for earlier, later in pairwise(granted)), "tokens do not rise"
    # They did contend: served in turn, the lock nearly always goes to another language.
    handed_over = sum(a[0] != b[0] for a, b in pairwise(turns))
    assert handed_over > len(turns) // 2
