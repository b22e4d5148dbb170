"""How the blocks of a page become one program in each language, and how it is run."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path

from pages import ROOT
from redis import Redis

AROUND = Path(__file__).parent / "around"
# What programs run on; tests of the packages put what they have installed in the place of these.
INTERPRETER = Path(sys.executable)
NODE_PACKAGE = ROOT / "bindings" / "node"
JAR = ROOT / "bindings" / "java" / "target" / "fencelock-0.1.0.jar"
INSTALLED = ROOT / "target" / "install"
LIMIT = 60

# Names that pages use for locks and data on the shared servers.
NAMES = re.compile(r"\b(product[/:-]123|orders/42|nightly|report|shop)\b")


def server(kind: str) -> str:
    variable = f"FENCELOCK_TEST_{kind.upper()}_URL"
    if variable not in os.environ:
        raise AssertionError(f"{variable} is not set: run the tests with tests/services/run")
    return os.environ[variable]


def of_this_run(code: str) -> str:
    """The code with the servers of the tests, and with names that no other test uses."""
    own = uuid.uuid4().hex[:8]
    code = NAMES.sub(rf"\1-{own}", code)
    code = re.sub(r"redis://127\.0\.0\.1/", lambda _: server("redis"), code)
    code = re.sub(r"mongodb://127\.0\.0\.1/(\?replicaSet=rs0)?", lambda _: server("mongodb"), code)
    code = re.sub(r"zookeeper://127\.0\.0\.1/", lambda _: server("zookeeper"), code)
    return re.sub(r"127\.0\.0\.1:2181", lambda _: zookeeper_hosts(), code)


def zookeeper_hosts() -> str:
    return server("zookeeper").removeprefix("zookeeper://").split("/")[0]


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    """What the command prints. It must end by itself, and well."""
    env = {name: value for name, value in os.environ.items() if name != "FENCELOCK_URL"}
    ended = subprocess.run(
        command,
        cwd=folder,
        env=env | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    printed = f"{ended.stdout}{ended.stderr}"
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{printed}"
    return printed


def python(code: str, folder: Path) -> str:
    program = folder / "page.py"
    program.write_text(f"from around import *  # noqa\n{code}")
    return run(folder, INTERPRETER, program)


def node(code: str, folder: Path) -> str:
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "fencelock").symlink_to(NODE_PACKAGE)
    program = folder / "page.mjs"
    program.write_text(f"import './around.mjs'\n{code}")
    return run(folder, "node", program)


def java(code: str, folder: Path) -> str:
    imports = re.findall(r"^import .*;$", code, re.MULTILINE)
    body = re.sub(r"^import .*;$", "", code, flags=re.MULTILINE)
    program = folder / "Page.java"
    lines = [*dict.fromkeys(imports), "class Page extends Around {"]
    lines += ["public static void main(String[] arguments) throws Exception {", body, "}", "}"]
    program.write_text("\n".join(lines))
    path = f"{JAR}:{folder}"
    run(folder, "javac", "-proc:none", "-cp", path, "-d", folder, "Around.java", program)
    return run(folder, "java", "-cp", path, "Page")


def c(code: str, folder: Path) -> str:
    includes = re.findall(r"^#include .*$", code, re.MULTILINE)
    body = re.sub(r"^#include .*$", "", code, flags=re.MULTILINE)
    program = folder / "page.c"
    lines = [*includes, '#include "around.h"', "int main(void) {", body, "return 0;", "}"]
    program.write_text("\n".join(lines))
    library = INSTALLED / "lib"
    flags = (
        f'cc -Wall -Werror page.c $(pkg-config --cflags --libs fencelock) -Wl,-rpath,"{library}"'
    )
    run(folder, "sh", "-c", f"{flags} -o page", PKG_CONFIG_PATH=str(library / "pkgconfig"))
    return run(folder, folder / "page")


def shell(code: str, folder: Path) -> str:
    path = f"{INSTALLED / 'bin'}:{os.environ['PATH']}"
    return run(folder, "bash", "-euo", "pipefail", "-c", code, PATH=path)


def sql(code: str, folder: Path) -> str:
    """Each statement once, with a token, on tables as they were before the page's own."""
    with sqlite3.connect(":memory:", isolation_level=None) as database:
        database.executescript((AROUND / "tables.sql").read_text())
        for statement in statements(code):
            database.execute(statement, {"token": 7})
    return ""


def statements(code: str) -> list[str]:
    without_comments = re.sub(r"--.*", "", code)
    return [part.strip() for part in without_comments.split(";") if part.strip()]


def lua(code: str, folder: Path) -> str:
    """Loaded by the real server, which compiles it; what it does, test_fencing.py shows."""
    with Redis.from_url(server("redis")) as client:
        client.script_load(code)
    return ""


RUN: dict[str, Callable[[str, Path], str]] = {
    "python": python,
    "js": node,
    "java": java,
    "c": c,
    "sh": shell,
    "sql": sql,
    "lua": lua,
}


def run_page(language: str, code: str, folder: Path) -> str:
    """Runs the code in a folder that has the reader's own functions and files in it."""
    shutil.copytree(AROUND, folder, dirs_exist_ok=True)
    return RUN[language](of_this_run(textwrap.dedent(code)), folder)
