# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured is in documents only where a command writes it (`<!-- table: ... -->`)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY

PLACES = ("*.md", "docs/*.md", "hw/rsd-nvme/README.md", "host/fs/README.md", "host/tools/**/*.md")

_NUMBER = r"(?<![\w.-])\d[\d.,]*"
# Units that only a measurement has here. Settings, sizes and limits have others.
MEASURED = re.compile(
    rf"{_NUMBER} (?:"
    r"[MG]i?B/s|IOPS|us|ms|minutes|hours|"
    r"s of (?:processor|CPU)|ms of (?:processor|CPU)|"
    r"(?:\w+ ){0,3}a (?:CPU )?second)\b"
    rf"|{_NUMBER}% (?:more|less|fewer|faster|slower|longer|cheaper|worse|better)\b"
)
# These give their source: a paper, a data sheet, or the settings of a preset.
SOURCES = re.compile(r"paper|data sheet|times of `|\(RISA \d|--[a-z]+")


def by_hand(text: str) -> Iterator[str]:
    """Sentences outside of what commands write, and outside of examples, that have a figure."""
    generated = example = False
    for line in text.splitlines():
        if line.startswith("<!-- "):
            generated = not line.startswith("<!-- end")
        if line.startswith("```"):
            example = not example
        if generated or example:
            continue
        for sentence in re.split(r"(?<=[.:]) ", line):
            said = re.sub(r"`[^`]*`", "``", sentence)
            if MEASURED.search(said) and not SOURCES.search(sentence):
                yield sentence


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It takes 7.5 ms. The other takes `7.5 ms`.", ["It takes 7.5 ms."]),
        ("It copies 3% more. A paper says 3% more.", ["It copies 3% more."]),
        ("Of 4 KiB, at 67,000 writes a second.", ["Of 4 KiB, at 67,000 writes a second."]),
        ("<!-- line: bench x -->\nIt has 3 MB/s.\n<!-- end -->\nIt has 2.", []),
        ("```\n3 IOPS\n```\nIt has blocks of 64 pages, and 5% of over-provisioning.", []),
    ],
)
def test_figures_are_found(text: str, found: list[str]) -> None:
    assert [*by_hand(text)] == found


def documents() -> list[Path]:
    return sorted({path for place in PLACES for path in REPOSITORY.glob(place)})


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_figure_is_typed(path: Path) -> None:
    found = [*by_hand(path.read_text())]
    assert not found, f"let a command write it, or name the command that prints it: {found}"
