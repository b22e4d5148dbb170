"""The table of verbs in the main README names only what there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Where each column's names are declared, in the order of the columns.
DECLARED = {
    "Rust": [*ROOT.glob("core/src/*.rs")],
    "Python": [*ROOT.glob("bindings/python/python/fencelock/*.py")],
    "Node": [ROOT / "bindings/node/lib/index.d.ts"],
    "Java": [*ROOT.glob("bindings/java/java/dev/fencelock/*.java")],
    "C": [ROOT / "include/fencelock.h"],
    "Kotlin": [*ROOT.glob("bindings/uniffi/kotlin/kotlin/dev/fencelock/kotlin/*.kt")],
}


@pytest.mark.parametrize("language", DECLARED)
def test_each_verb_of_the_readme_is_declared(language: str) -> None:
    table = (ROOT / "README.md").read_text().split("## Each verb in each language")[1]
    rows = re.findall(r"^\|(.*)\|$", table.split("\n## ")[0], re.MULTILINE)
    header, _, *verbs = [[cell.strip() for cell in row.split("|")] for row in rows]
    declared = "\n".join(file.read_text() for file in DECLARED[language])
    named = set()
    for verb in verbs:
        for code in re.findall(r"`([^`]+)`", verb[header.index(language)]):
            named |= set(re.findall(r"(?:client|lock|lease)\.(\w+)|(fencelock_\w+)", code))
    names = {name for pair in named for name in pair if name}
    assert len(names) >= 14
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", declared)] == []
