"""Who runs which code block: the one table to look at when a block is added.

What stands nowhere here is run by test_blocks.py, if it knows the language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pages import Block

# Info strings of what is no program: output, settings, files of other tools.
NO_PROGRAM = {"text", "toml", "xml", "yaml", "json"}


@dataclass(frozen=True)
class Claim:
    """Blocks that a test elsewhere runs: `by` is its file, in which `word` stands."""

    pages: str
    languages: Sequence[str]
    by: str
    word: str
    headings: str = "*"

    def covers(self, block: Block) -> bool:
        return (
            fnmatchcase(block.page, self.pages)
            and block.language in self.languages
            and fnmatchcase(block.heading, self.headings)
        )


CLAIMS = [
    Claim(
        "core/src/FENCING.md", ["python", "sql", "lua"], "tests/docs/test_fencing.py", "FENCING.md"
    ),
    Claim("README.md", ["rust"], "core/src/lib.rs", "README.md"),
    Claim(
        "README.md", ["sh"], "bindings/cli/tests/cli/readme.rs", "Quick start: the shell", "Quick*"
    ),
    Claim("core/src/contract.md", [""], "core/src/lib.rs", "contract.md"),
    Claim("bindings/cli/README.md", ["sh"], "bindings/cli/tests/cli/readme.rs", "Usage", "Usage"),
    Claim(
        "bindings/java/README.md",
        ["java"],
        "bindings/java/tests/dev/fencelock/PagesTest.java",
        "README.md",
    ),
    Claim(
        "bindings/java/MIGRATION.md",
        ["java"],
        "bindings/java/tests/dev/fencelock/PagesTest.java",
        "MIGRATION.md",
    ),
    Claim("bindings/java/LEAVING-*.md", ["java"], "tests/fleets/test_java_pages.py", "LEAVING-"),
    Claim(
        "core/src/backend/zookeeper/LEAVING-CURATOR-AND-KAZOO.md",
        ["java"],
        "tests/fleets/test_java_pages.py",
        "LEAVING-CURATOR-AND-KAZOO.md",
    ),
    Claim(
        "bindings/node/LEAVING-REDLOCK.md",
        ["js"],
        "bindings/node/tests/leaving.test.mjs",
        "LEAVING-REDLOCK.md",
    ),
    Claim(
        "bindings/node/README.md", ["js", "ts"], "bindings/node/tests/package.test.mjs", "README.md"
    ),
    Claim(
        "bindings/uniffi/README.md",
        ["kotlin"],
        "bindings/uniffi/kotlin/tests/dev/fencelock/kotlin/PagesTest.kt",
        "README",
    ),
    # Run only where there is a Swift toolchain, as the page says itself.
    Claim(
        "bindings/uniffi/README.md",
        ["swift"],
        "bindings/uniffi/swift/Tests/FencelockTests/FencelockTests.swift",
        "README",
    ),
    Claim(
        "README.md",
        ["kotlin"],
        "tests/packages/test_quick_start.py",
        "Quick start: Kotlin",
    ),
    Claim("bindings/c/README.md", ["cmake"], "bindings/c/tests/package", "find_package"),
    Claim(
        "core/src/backend/*/LEAVING-*.md",
        ["python"],
        "bindings/python/tests/test_leaving_pages.py",
        "LEAVING-",
    ),
]

# Commands for a clone: they build and test what the tests are a part of, or are run with more words
# by a step of `make test`. Not run here; that what they name exists is checked.
CLONE = [
    Claim("README.md", ["sh"], "Makefile", "demo:", "Try it"),
    Claim("CONTRIBUTING.md", ["sh"], "Makefile", "test:"),
    Claim("bindings/*/README.md", ["sh"], "Makefile", "test:", "Installation"),
    Claim("bindings/*/README.md", ["sh"], "Makefile", "test:", "Testing"),
    Claim("examples/*/README.md", ["sh"], "examples/on-each-backend", "URL"),
]


def claim(block: Block) -> Claim | None:
    return next((claim for claim in CLAIMS if claim.covers(block)), None)


def in_clone(block: Block) -> bool:
    return any(claim.covers(block) for claim in CLONE)
