"""What a package says of itself is true."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, one

# The oldest C library that all of it runs with: that of Debian 12, Ubuntu 22.04, RHEL 9 or later.
GLIBC = (2, 34)
ELF = b"\x7fELF"
BINARIES = [
    "fencelock-*.whl",
    "fencelock-linux-*.tgz",
    "fencelock-[0-9].[0-9].[0-9].jar",
    "fencelock-kotlin-[0-9].[0-9].[0-9].jar",
    "fencelock-c-*.tar.gz",
    "fencelock-cli-*.tar.gz",
]


def files(package: Path) -> dict[str, bytes]:
    if package.suffix in {".whl", ".jar"}:
        with zipfile.ZipFile(package) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(package) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]


@pytest.mark.parametrize("pattern", BINARIES)
def test_runs_with_the_c_library_that_is_promised(dist: Path, pattern: str, tmp_path: Path) -> None:
    found = [content for content in files(one(dist, pattern)).values() if content[:4] == ELF]
    assert found
    for number, content in enumerate(found):
        file = tmp_path / str(number)
        file.write_bytes(content)
        printed = subprocess.run(
            ["objdump", "-T", file], check=True, capture_output=True, text=True
        ).stdout
        needed = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", printed)}
        assert needed and max(needed) <= GLIBC


def test_wheel_is_of_the_stable_interface_and_names_its_platform(dist: Path) -> None:
    wheel = one(dist, "fencelock-*.whl")
    assert f"-cp311-abi3-manylinux_{GLIBC[0]}_{GLIBC[1]}_" in wheel.name
    tools = Path(sys.executable).parent
    for command in (["abi3audit", "--strict"], ["auditwheel", "show"]):
        ended = subprocess.run(
            [tools / command[0], *command[1:], wheel], capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"manylinux_{GLIBC[0]}_{GLIBC[1]}_" in ended.stdout


@pytest.mark.parametrize("pattern", [*BINARIES, "fencelock-[0-9].[0-9].[0-9].tgz"])
def test_licence_is_inside(dist: Path, pattern: str) -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    assert licence in files(one(dist, pattern)).values()


def test_licences_of_what_is_linked_in_come_along(dist: Path) -> None:
    """In what `make dist` makes, which has the tool for it."""
    if dist.name != "dist":
        pytest.skip("packed for tests only")
    for pattern in BINARIES:
        contents = files(one(dist, pattern))
        (notices,) = [text for name, text in contents.items() if name.endswith("THIRD-PARTY.toml")]
        assert b'package_name = "tokio"' in notices


@pytest.mark.parametrize("crate", ["fencelock", "fencelock-shared", "fencelock-cli"])
def test_crates_have_what_they_need_and_no_path_of_ours(dist: Path, crate: str) -> None:
    contents = files(one(dist, f"{crate}-[0-9]*.crate"))
    (manifest,) = [c for name, c in contents.items() if name.endswith("/Cargo.toml")]
    assert not re.search(rb'^path = "\.\.', manifest, re.MULTILINE)
    names = {name.split("/", 1)[1] for name in contents}
    assert names >= {"Cargo.toml", "Cargo.lock", "LICENSE"}
    assert names & {"src/lib.rs", "src/main.rs"}


def test_checksums_name_every_file(dist: Path) -> None:
    subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist, check=True
    )
    listed = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert listed == {file.name for file in dist.iterdir()} - {"SHA256SUMS"}


def bills(dist: Path) -> dict[str, str]:
    inside = files(one(dist, "fencelock-*.whl"))
    (wheel,) = [text for name, text in inside.items() if name.endswith(".cyclonedx.json")]
    return {"wheel": wheel.decode()} | {f.name: f.read_text() for f in dist.glob("*.cdx.json")}


def test_bills_of_materials_name_what_is_linked(dist: Path) -> None:
    found = bills(dist)
    if dist.name == "dist":  # by `make dist`, which has the tool for the others
        assert len(found) >= 6
    for name, text in found.items():
        bill = json.loads(text)
        assert bill["bomFormat"] == "CycloneDX", name
        parts = {part["name"]: part for part in bill["components"]}
        assert {"tokio", "redis", "mongodb", "zookeeper-client"} <= parts.keys(), name
        assert all(part.get("version") for part in parts.values()), name
        assert "rcgen" not in parts, f"{name} names what only tests use"
        assert str(ROOT) not in text, f"{name} names a folder of the builder"
