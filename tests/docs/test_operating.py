"""OPERATING.md quotes the log as it is, and knows every code of an error."""

import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import fencelock
import pages
import programs
import pytest

PAGE = "core/OPERATING.md"
WARNING = re.compile(r'tracing::(?:warn|error)!\((?:.*?)"([^"]+)"\s*\)', re.DOTALL)


def first_cells(heading: str) -> list[str]:
    section = pages.text(PAGE).split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def sources(folder: str) -> list[Path]:
    """The code below a folder that git knows, without tests."""
    command = ["git", "ls-files", *(f"{folder}/**.{end}" for end in ["rs", "java", "js"])]
    listed = subprocess.run(command, cwd=pages.ROOT, check=True, capture_output=True, text=True)
    files = [pages.ROOT / name for name in listed.stdout.splitlines()]
    return [file for file in files if "tests" not in file.parts]


def test_warnings_are_quoted_as_they_are() -> None:
    code = "\n".join(file.read_text() for file in [*sources("core"), *sources("bindings")])
    quoted = first_cells("Warnings in the log")
    assert len(quoted) >= 10
    assert [text for text in quoted if text not in code] == []


def test_no_warning_of_core_is_left_out() -> None:
    quoted = first_cells("Warnings in the log")
    found = [text for file in sources("core/src") for text in WARNING.findall(file.read_text())]
    assert len(found) >= 9
    assert [text for text in found if not any(text.startswith(one) for one in quoted)] == []


def test_every_error_has_a_line() -> None:
    code = (pages.ROOT / "core/src/error.rs").read_text()
    declared = re.findall(r'=> "([A-Z_]+)"', code)
    assert sorted(declared) == sorted(first_cells("Errors"))


HOLD = {
    "python": """
import fencelock, time
with fencelock.connect(URL) as client, client.lock(NAME):
    print("held", flush=True)
    time.sleep(60)
""",
    "js": """
import { connect } from 'fencelock'
const client = await connect(URL)
await client.lock(NAME).using(async () => {
  console.log('held')
  await new Promise((resolve) => setTimeout(resolve, 60_000))
})
""",
}
START = {"python": [sys.executable, "-c"], "js": ["node", "--input-type=module", "-e"]}


@pytest.mark.parametrize("language", HOLD)
def test_the_handler_of_term_releases(language: str) -> None:
    url, name = programs.server("redis"), f"operating-{uuid.uuid4()}"
    code = HOLD[language].replace("URL", repr(url)).replace("NAME", repr(name))
    # Node finds the package by its place in this repository.
    code = code.replace("'fencelock'", repr(str(pages.ROOT / "bindings/node/index.mjs")))
    code = pages.code(PAGE, language) + code
    command = [*START[language], code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=pages.ROOT) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGTERM)
        assert holder.wait(timeout=20) == 143
    with fencelock.connect(url) as client:
        assert client.inspect(name).state == "free"
