# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS's names and comments use the field's words: in flight, complete, reserve, active segment."""

import re
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY

FOLDER = REPOSITORY / "host/fs"
# What is written instead: in flight; submit; complete, go to; reserve; need; end, last, active
# segment; fault injection.
BANNED = {
    *("air", "fly", "flies", "flying", "flown"),
    *("land", "lands", "landed", "landing"),
    *("promise", "promises", "promised", "promising"),
    *("owe", "owes", "owed", "owing"),
    *("tail", "tails", "teeth"),
}
# Linux calls these so.
LINUX = {"list_add_tail", "list_move_tail"}

_COMMENT = r"/\*.*?\*/|//[^\n]*"
_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_strings(text: str) -> str:
    """The text with its comments, and without what it prints."""
    token = re.compile(f"({_COMMENT})|{_STRING}", re.S)
    return token.sub(lambda match: match[1] or '""', text)


def banned(text: str) -> set[str]:
    """Names, and words of comments, of which a part is banned."""
    names = set(_WORD.findall(without_strings(text))) - LINUX
    return {name for name in names if BANNED & set(name.lower().split("_"))}


def files() -> list[Path]:
    return sorted(FOLDER.rglob("*.[ch]"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/* It lands there. */", {"lands"}),
        ("// owed to others\nint flight;", {"owed"}),
        ("u32 rfs_pages_promised;", {"rfs_pages_promised"}),
        ('pr_err("tail \\" tail"); char c = \'"\'; /* teeth */', {"teeth"}),
        ("bool allowed = repair; /* airy, island */ list_add_tail(a, b);", set()),
    ],
)
def test_words_are_found(text: str, found: set[str]) -> None:
    assert banned(text) == found


def test_words() -> None:
    looked_at = files()
    assert looked_at
    found = sorted(
        (name, str(path.relative_to(FOLDER)))
        for path in looked_at
        for name in banned(path.read_text())
    )
    assert not found, f"say it with the field's words: {found}"
