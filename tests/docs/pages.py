"""The pages of the repository, and the code blocks in them."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>.*)\n(?P<code>(?:.*\n)*?)(?P=indent)```$", re.MULTILINE
)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    heading: str
    # Of the info string, the word before the first comma: `rust,no_run` is rust.
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language or 'no language'}, below {self.heading!r})"


@cache
def names() -> tuple[str, ...]:
    """Every page that git knows, or will know with the next commit."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(name for name in listed.splitlines() if (ROOT / name).exists()))


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    found = []
    for match in FENCE.finditer(text(page)):
        before = FENCE.sub("", text(page)[: match.start()])
        heading = (HEADING.findall(before) or [""])[-1]
        language = re.split(r"[, ]", match["info"])[0]
        indent = len(match["indent"])
        code = "".join(line[indent:] or "\n" for line in match["code"].splitlines(True))
        line = text(page).count("\n", 0, match.start()) + 1
        found.append(Block(page, line, heading, language, code))
    return tuple(found)


def code(page: str, language: str, heading: str | None = None) -> str:
    """The blocks of one language, of the page or of one section of it, one after the other."""
    return "\n".join(
        block.code
        for block in blocks(page)
        if block.language == language and heading in (None, block.heading)
    )


def prose(page: str) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", text(page))


@cache
def anchors(page: str) -> frozenset[str]:
    """What a link to a heading of the page may say after the #, as GitHub makes it."""
    seen: dict[str, int] = {}
    found = set()
    for heading in HEADING.findall(prose(page)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
    return frozenset(found)
