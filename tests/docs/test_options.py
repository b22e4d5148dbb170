"""OPTIONS.md names the options that the code has, and no others."""

import re

import pages

PAGE = "core/OPTIONS.md"
# What bindings set for their users.
HIDDEN = {"language"}


def code(file: str) -> str:
    return (pages.ROOT / file).read_text()


def test_options_in_urls() -> None:
    known = set(re.findall(r'"(fl\.\w+)" =>', code("core/src/url.rs")))
    assert len(known) >= 12
    assert set(re.findall(r"fl\.\w+", pages.text(PAGE).split("## Of a client")[1])) == known


def test_options_in_code() -> None:
    setters = set(re.findall(r"pub fn (\w+)\(mut self", code("core/src/options.rs")))
    rows = re.findall(r"^\| (`[^|]*`)[^|`]*\|", pages.text(PAGE), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert setters - HIDDEN == named - {"name", "timeout"}


def test_schemes() -> None:
    arms = re.findall(r'((?:\|? *"[a-z+-]+"\s*)+)=> Ok\(Family::', code("core/src/url.rs"))
    known = {scheme for arm in arms for scheme in re.findall(r'"([a-z+-]+)"', arm)}
    assert len(known) >= 8
    assert set(re.findall(r"`([a-z+-]+):", pages.text(PAGE).split("## URLs")[1])) == known
