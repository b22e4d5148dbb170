"""What a page refers to is there: files, headings, tests."""

import re
import subprocess

import pages
import pytest

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"\bg\d+_(?:g\d+_)*[a-z]\w+")


@pytest.mark.parametrize("page", pages.names())
def test_links_lead_somewhere(page: str) -> None:
    wrong = []
    for targets in LINK.findall(pages.prose(page)):
        target = "".join(targets)
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (pages.ROOT / page).parent / file if file else pages.ROOT / page
        if not path.exists():
            wrong.append(f"{target}: no such file")
        elif anchor and path.suffix == ".md":
            name = str(path.resolve().relative_to(pages.ROOT))
            if anchor not in pages.anchors(name):
                wrong.append(f"{target}: no such heading; there are {sorted(pages.anchors(name))}")
    assert not wrong


def test_the_tests_that_pages_name_exist() -> None:
    command = ["git", "grep", "-hoEw", "--untracked", r"g[0-9]+_\w+", "--", ":!*.md"]
    there = subprocess.run(command, cwd=pages.ROOT, check=True, capture_output=True, text=True)
    known = set(there.stdout.split())
    missing = [
        f"{page}: {name}"
        for page in pages.names()
        for name in TEST.findall(pages.text(page))
        if name not in known
    ]
    assert not missing
