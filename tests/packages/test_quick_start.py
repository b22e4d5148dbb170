"""Each package, installed in a clean place, runs the README's quick start of its language."""

import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pages
import programs
import pytest
from conftest import ROOT, one

README = "README.md"
# Before the home is another one.
MAVEN = Path.home() / ".m2"


def unpack(archive: Path, folder: Path) -> Path:
    """The one folder that an archive has at its top."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
        (top,) = {name.split("/")[0] for name in files.getnames()}
    assert archive.name.startswith(top)
    return folder / top


def quick_start(language: str, section: str, folder: Path) -> str:
    code = pages.code(README, language, f"Quick start: {section}")
    assert "redis://127.0.0.1/" in code
    return programs.run_page(language, code, folder / "program")


def test_wheel(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.run(place, sys.executable, "-m", "venv", "venv")
    python = place / "venv" / "bin" / "python"
    wheel = one(dist, "fencelock-*.whl")
    programs.run(place, python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    monkeypatch.setattr(programs, "INTERPRETER", python)
    quick_start("python", "Python", place)


def test_npm_package(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "package.json").write_text("{}")
    # The main package names one of each platform; npm takes this one from the command line.
    both = [one(dist, "fencelock-[0-9]*.tgz"), one(dist, "fencelock-linux-*.tgz")]
    programs.run(place, "npm", "install", "--offline", "--no-audit", "--no-fund", *both)
    monkeypatch.setattr(programs, "NODE_PACKAGE", place / "node_modules" / "fencelock")
    quick_start("js", "Node", place)


def test_jar(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version
    jar = shutil.copy(dist / f"fencelock-{version[1]}.jar", place / "fencelock.jar")
    monkeypatch.setattr(programs, "JAR", jar)
    quick_start("java", "Java", place)


def test_kotlin_jar(dist: Path, place: Path) -> None:
    """With the compiler and the libraries that Maven has fetched to build it."""
    code = programs.of_this_run(pages.code(README, "kotlin", "Quick start: Kotlin"))
    around = "fun takeOneUnit(token: ULong) = check(token > 0uL)\n"
    (place / "Start.kt").write_text(f"{code}\n{around}")
    library = ":".join([*libraries("kotlin-stdlib", "kotlinx-coroutines-core-jvm", "jna")])
    beside = ["kotlin-script-runtime", "kotlin-reflect", "kotlin-daemon-embeddable", "annotations"]
    compiler = ":".join([library, *libraries("kotlin-compiler-embeddable", *beside)])
    jar = one(dist, "fencelock-kotlin-[0-9].[0-9].[0-9].jar")
    main = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
    options = ["-no-stdlib", "-no-reflect", "-cp", f"{library}:{jar}", "-d", str(place)]
    programs.run(place, "java", "-cp", compiler, main, *options, place / "Start.kt")
    programs.run(place, "java", "-cp", f"{place}:{library}:{jar}", "StartKt")


def libraries(*names: str) -> Iterator[str]:
    """The newest of each that the build of the jar has put into Maven's folder."""
    for name in names:
        found = (MAVEN / "repository").glob(f"**/{name}/*/{name}-[0-9]*.jar")
        numbers = {tuple(map(int, re.findall(r"\d+", jar.parent.name))): jar for jar in found}
        assert numbers, f"Maven has no {name}: build the jar first (`make uniffi`)"
        yield str(numbers[max(numbers)])


def test_c_archive(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = unpack(one(dist, "fencelock-c-*.tar.gz"), place)
    monkeypatch.setattr(programs, "INSTALLED", prefix)
    quick_start("c", "C", place)


def test_c_archive_by_cmake(dist: Path, place: Path) -> None:
    prefix = unpack(one(dist, "fencelock-c-*.tar.gz"), place)
    (place / "main.c").write_text(
        "#include <fencelock.h>\n#include <stdio.h>\n"
        "int main(void) { puts(fencelock_version()); }\n"
    )
    (place / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(clean C)\nfind_package(fencelock REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main fencelock::fencelock)\n"
    )
    programs.run(place, "cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    programs.run(place, "cmake", "--build", "build")
    assert programs.run(place, place / "build" / "main").strip() in prefix.name


def test_command(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = unpack(one(dist, "fencelock-cli-*.tar.gz"), place)
    monkeypatch.setattr(programs, "INSTALLED", prefix)
    assert "state     free" in quick_start("sh", "the shell", place)
    share = prefix / "share"
    assert "fencelock run" in (share / "man" / "man1" / "fencelock-run.1").read_text()
    completions = share / "bash-completion" / "completions" / "fencelock"
    programs.run(place, "bash", "-euc", f"source {completions}; complete -p fencelock")


def test_crates(dist: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is built from the crates alone, and with it the quick start of Rust."""
    folders = {
        name: unpack(one(dist, f"{name}-[0-9]*.crate"), place)
        for name in ("fencelock", "fencelock-shared", "fencelock-cli")
    }
    cli = folders["fencelock-cli"]
    # With the versions and settings of the other tests, so that what they have built serves again.
    shutil.copy(ROOT / "Cargo.lock", cli / "Cargo.lock")
    profile = re.search(
        r"^\[profile\.ci\]\n(?:.+\n)+", (ROOT / "Cargo.toml").read_text(), re.MULTILINE
    )
    assert profile
    settings = place / "settings.toml"
    settings.write_text(
        f"{profile[0]}\n[patch.crates-io]\n"
        f'fencelock = {{ path = "{folders["fencelock"]}" }}\n'
        f'fencelock-shared = {{ path = "{folders["fencelock-shared"]}" }}\n'
    )
    starts = [
        block.code
        for block in pages.blocks(README)
        if block.heading == "Quick start: Rust" and block.language == "rust"
    ]
    assert len(starts) == 3
    # Under another name: in the shared target folder, `fencelock` is what other tests run.
    manifest = cli / "Cargo.toml"
    text = manifest.read_text().replace('name = "fencelock"\n', 'name = "packed"\n', 1)
    for number, code in enumerate(starts):
        program = f"#![allow(missing_docs)]\n{programs.of_this_run(code)}"
        (cli / f"start{number}.rs").write_text(program)
        text += f'\n[[bin]]\nname = "start{number}"\npath = "start{number}.rs"\n'
    manifest.write_text(text)
    target = ROOT / "target"
    monkeypatch.setattr(programs, "LIMIT", 400)
    cargo = ["cargo", "build", "--offline", "--config", str(settings), "--profile", "ci", "--bins"]
    programs.run(cli, *cargo, "--target-dir", target)
    for number in range(len(starts)):
        programs.run(place, target / "ci" / f"start{number}")
    assert "fencelock 0." in programs.run(place, target / "ci" / "packed", "--version")
