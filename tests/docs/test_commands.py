# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of README and docs/ run, and print what the pages say.

A block that begins with ```sh is run, those of a page one after the other in one directory. A
block of ```text behind it is what it printed on standard output; ... stands for anything. Blocks
behind <!-- long --> run with --long alone.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY, Artifacts

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("**/*.md")),
]
BLOCK = re.compile(r"(<!-- long -->\n)?^```(sh|text)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATIENCE_S = 1800


@dataclass
class Block:
    """A shell script, and what it is said to print, if it is said."""

    script: str
    long: bool
    expected: str | None = None


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        long, kind, content = match.groups()
        if kind == "sh":
            found.append(Block(content, bool(long)))
        else:
            assert found and found[-1].expected is None, f"no command printed:\n{content}"
            found[-1].expected = content
    return found


def pattern(expected: str) -> re.Pattern[str]:
    """A line of ... stands for lines, ... in a line for a part of it."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in expected.splitlines()
    ]
    return re.compile("".join(parts))


def with_commands(*, long: bool) -> list[Path]:
    found = [(page, blocks(page.read_text())) for page in PAGES]
    return [page for page, its in found if any(block.long == long for block in its)]


def run(page: Path, directory: Path, *, long: bool) -> None:
    (directory / "rsd").write_text(f'#!/bin/sh\nexec {REPOSITORY}/rsd "$@"\n')
    (directory / "rsd").chmod(0o755)
    for block in blocks(page.read_text()):
        if block.long and not long:
            continue
        done = subprocess.run(
            ["sh", "-ec", block.script],
            cwd=directory,
            env={**os.environ, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{block.script}\n{done.stdout}\n{done.stderr}"
        if block.expected is not None:
            assert pattern(block.expected).fullmatch(done.stdout), (
                f"{block.script}\n--- the page says:\n{block.expected}\n--- it printed:\n"
                f"{done.stdout}"
            )


@pytest.mark.guest
@pytest.mark.parametrize("page", with_commands(long=False), ids=lambda page: page.stem)
def test_commands(built: Artifacts, page: Path, tmp_path: Path) -> None:
    run(page, tmp_path, long=False)


@pytest.mark.guest
@pytest.mark.long
@pytest.mark.parametrize("page", with_commands(long=True), ids=lambda page: page.stem)
def test_commands_that_take_long(built: Artifacts, page: Path, tmp_path: Path) -> None:
    run(page, tmp_path, long=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_what_stands_for_anything() -> None:
    page = "```sh\nx\n```\n\n```text\na ... c\n...\nend\n```\n<!-- long -->\n```sh\ny\n```\n"
    first, second = blocks(page)
    assert (first.script, first.long, second.long) == ("x\n", False, True)
    assert first.expected is not None
    assert pattern(first.expected).fullmatch("a b c\n1\n2\nend\n")
    assert pattern(first.expected).fullmatch("a b c\nend\n")
    assert not pattern(first.expected).fullmatch("a b d\nend\n")
    assert not pattern(first.expected).fullmatch("a b c\n1\n")
