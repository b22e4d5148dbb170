"""Every code block of every page runs: here, or in the test that claims it."""

import re
from pathlib import Path

import claims
import pages
import programs
import pytest

BLOCKS = [block for page in pages.names() for block in pages.blocks(page)]


def ours() -> dict[tuple[str, str], list[pages.Block]]:
    """What is run here: the blocks of one page in one language are one program."""
    found: dict[tuple[str, str], list[pages.Block]] = {}
    for block in BLOCKS:
        if block.language in programs.RUN and not (claims.claim(block) or claims.in_clone(block)):
            found.setdefault((block.page, block.language), []).append(block)
    return found


@pytest.mark.parametrize(("page", "language"), ours())
def test_runs(page: str, language: str, tmp_path: Path) -> None:
    code = "\n".join(block.code for block in ours()[page, language])
    programs.run_page(language, code, tmp_path)


def test_somebody_runs_each_block() -> None:
    nobody = [
        str(block)
        for block in BLOCKS
        if block.language not in {*claims.NO_PROGRAM, *programs.RUN}
        and not (claims.claim(block) or claims.in_clone(block))
    ]
    assert not nobody, (
        f"nobody runs {nobody}: name the language after the ```, as one of {sorted(programs.RUN)} "
        f"or, if it is no program, of {sorted(claims.NO_PROGRAM)}; or add the test that runs it "
        "to tests/docs/claims.py"
    )


@pytest.mark.parametrize("claim", [*claims.CLAIMS, *claims.CLONE], ids=lambda one: one.pages)
def test_each_claim_is_of_blocks_and_of_a_test_that_exist(claim: claims.Claim) -> None:
    assert any(claim.covers(block) for block in BLOCKS), f"no block is {claim}"
    assert claim.word in (pages.ROOT / claim.by).read_text(), f"{claim.by} no longer runs it"


def test_commands_for_a_clone_name_what_there_is() -> None:
    makefile = (pages.ROOT / "Makefile").read_text()
    manifests = "\n".join(file.read_text() for file in pages.ROOT.glob("*/**/Cargo.toml"))
    wrong = []
    for block in filter(claims.in_clone, BLOCKS):
        code = re.sub(r" *#.*", "", block.code)
        for target in re.findall(r"^make (\S+)", code, re.MULTILINE):
            if not re.search(rf"^{target}:", makefile, re.MULTILINE):
                wrong.append(f"{block}: no target {target}")
        for package in re.findall(r"^cargo .*-p (\S+)", code, re.MULTILINE):
            if f'name = "{package}"' not in manifests:
                wrong.append(f"{block}: no package {package}")
        for file in re.findall(r"\b(?:bindings|examples|tests)/[\w./-]+", code):
            if "/target/" not in file and not (pages.ROOT / file.rstrip("/.")).exists():
                wrong.append(f"{block}: no file {file}")
    assert not wrong
