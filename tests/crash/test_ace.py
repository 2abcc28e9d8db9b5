# SPDX-License-Identifier: GPL-2.0-or-later
"""The built-in work and its check, on the host's own file system: no power is cut there."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.crash.guest import ace

WORKS = ace.sequences("seq1")
PAIRS = ace.sequences("seq2")
# Of the many pairs, so many are done here.
SAMPLE = 600


def number(title: str) -> int:
    """The number of the sequence of this title."""
    (found,) = (work.number for work in WORKS if work.title == title)
    return found


class Volume:
    """A directory in which steps were done; the host's file system may refuse some of them."""

    def __init__(self, works: list[ace.Work], steps: int) -> None:
        self.works = works
        self.refused: list[list[int]] = []
        before: list[ace.Work] = []
        for step in range(steps):
            at, number = divmod(step, len(works[0].steps))
            if not ace.do_step(works[at], number, before):
                self.refused.append([works[at].number, number - 1])
            if works[at].steps[number] == "call":
                before.append(works[at])
        self.trees = ace.trees(works, self.refused)

    def check(self, done: int, begun: int) -> None:
        ace.check(ace.Allowed(self.works, self.trees, done, begun), [])


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path = tmp_path / "volume"
    tmp_path.mkdir()
    monkeypatch.setattr(ace, "TOP", str(tmp_path))
    try:
        os.setxattr(tmp_path, ace.ATTRIBUTE, b"x")
        os.removexattr(tmp_path, ace.ATTRIBUTE)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP
        pytest.skip("the directory of temporary files has no attributes")
    return tmp_path


def test_they_are_different() -> None:
    assert len({work.title for work in WORKS}) == len(WORKS) > 250
    text = (REPOSITORY / "docs/crashing.md").read_text()
    assert f"It does {len(WORKS)} sequences" in text
    assert {work.call[0] for work in WORKS} == {"fsync", "fdatasync", "sync"}
    assert len({work.title for work in PAIRS}) == len(PAIRS) > 20_000
    assert f"{len(PAIRS):,} sequences of two operations" in text


def test_pairs_are_in_a_random_order_that_stays() -> None:
    """A range of them is a sample, and the number of a sequence means the same everywhere."""
    assert PAIRS[0].title == "symlink A/bar; falloc foo punch across blocks; fsync A/foo"
    firsts = {work.operations[0] for work in PAIRS[:SAMPLE]}
    assert firsts == {work.operations[0] for work in WORKS}


def test_the_guest_is_given_the_same() -> None:
    given = ace.load(ace.dump(PAIRS[:9]))
    assert [(one.number, one.title) for one in given] == [
        (one.number, one.title) for one in PAIRS[:9]
    ]


def test_the_model_is_what_a_file_system_does() -> None:
    """After every step of every sequence; a direct write may be refused here, as others."""
    for work in WORKS:
        volume = Volume([work], 2)
        volume.check(2, 2)
        volume.check(1, 2)
        assert not volume.refused or work.operations[0][0] in ("direct", "falloc"), work.title
        ace._remove(f"{ace.TOP}/{work.directory}")


def test_the_model_of_two_operations_is_what_a_file_system_does() -> None:
    """Each operation of seq2 is possible: one that is not ends with an error of another kind."""
    for work in PAIRS[:SAMPLE]:
        volume = Volume([work], 3)
        volume.check(3, 3)
        volume.check(1, 3)
        for _, index in volume.refused:
            assert work.operations[index][0] in ("direct", "falloc"), work.title
        ace._remove(f"{ace.TOP}/{work.directory}")


def test_only_two_sequences_are_there() -> None:
    for steps in (3, 4, 7, 9, 10):
        volume = Volume(WORKS[:4], steps)
        volume.check(steps, steps)
        for entry in os.listdir(ace.TOP):
            ace._remove(f"{ace.TOP}/{entry}")


def spoilt(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


WRITE = "write foo across blocks; fsync foo"
CREAT = "creat bar; fsync bar"
LINK = "link foo bar; fdatasync bar"
RENAMED = "rename foo bar; fdatasync bar"
RENAME = "rename foo bar; fsync A/foo"
UNLINK = "unlink foo; fsync ."


@pytest.mark.parametrize(
    ("title", "done", "spoil", "said"),
    [
        (WRITE, 3, lambda top: spoilt(top / "A/foo", 5000), "byte 5000 was never written so, 1 "),
        (WRITE, 3, lambda top: spoilt(top / "foo", 3000), "byte 3000 was never written so"),
        (WRITE, 3, lambda top: os.truncate(top / "foo", 8192), "has 8192 bytes, not 12288"),
        (WRITE, 3, lambda top: (top / "A/foo").unlink(), "A/foo is not there"),
        (WRITE, 3, lambda top: (top / "new").touch(), "new is there"),
        (WRITE, 3, lambda top: os.setxattr(top / "foo", ace.ATTRIBUTE, b"y"), "attribute b'y'"),
        (CREAT, 3, lambda top: (top / "bar").unlink(), "bar is not there"),
        (CREAT, 3, lambda top: (top / "bar").write_text("x"), "has 1 bytes, not 0"),
        (RENAMED, 3, lambda top: (top / "bar").unlink(), "foo is under no name"),
        (RENAME, 2, lambda top: (top / "bar").unlink(), "is under no name"),
        (RENAME, 2, lambda top: os.link(top / "bar", top / "foo"), "foo are one file"),
        (LINK, 3, lambda top: os.link(top / "foo", top.parents[1] / "beside"), "has 3 links"),
        (UNLINK, 3, lambda top: (top / "foo").touch(), "foo is there"),
    ],
)
def test_what_cannot_be_is_found(
    top: Path, title: str, done: int, spoil: Callable[[Path], object], said: str
) -> None:
    volume = Volume([WORKS[number(title) - 1]], done)
    volume.check(done, done)
    spoil(top / volume.works[0].directory)
    with pytest.raises(AssertionError, match=said):
        volume.check(done, done)


def test_before_the_call_the_old_is_as_good(top: Path) -> None:
    """The same faults are none while nothing was promised, or the step had just begun."""
    volume = Volume([WORKS[number(WRITE) - 1]], 2)
    path = top / volume.works[0].directory / "foo"
    new, old = path.read_bytes(), ace._bytes(volume.works[0].number, "foo")
    path.write_bytes(old[:4096] + new[4096:])
    volume.check(1, 2)
    volume.check(2, 2)
    path.write_bytes(old)
    volume.check(1, 2)
    with pytest.raises(AssertionError, match="never written so"):
        volume.check(3, 3)
    with pytest.raises(AssertionError, match="never written so"):
        path.write_bytes(new)
        volume.check(1, 1)


def test_fdatasync_speaks_of_no_name(top: Path) -> None:
    volume = Volume([WORKS[number(LINK) - 1]], 3)
    (top / volume.works[0].directory / "bar").unlink()
    volume.check(3, 3)
