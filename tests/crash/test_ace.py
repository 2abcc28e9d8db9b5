# SPDX-License-Identifier: GPL-2.0-or-later
"""The built-in work and its check, on the host's own file system: no power is cut there."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.crash.guest import ace

WORKS = ace.sequences()


def number(title: str) -> int:
    """The number of the sequence of this title."""
    (found,) = (work.number for work in WORKS if work.title == title)
    return found


class Volume:
    """A directory in which sequences were done; `refused` by the host's file system."""

    def __init__(self, works: list[ace.Work], steps: int) -> None:
        self.works, self.refused, before = works, [], []
        for step in range(steps):
            work = works[step // ace.STEPS]
            try:
                (ace._fill, ace._operate, ace._make_durable)[step % ace.STEPS](work, before)
            except OSError as error:
                assert error.errno in ace.UNSUPPORTED and step % ace.STEPS == 1, work.title
                self.refused.append(work.number)
            if step % ace.STEPS == 2:
                before.append(work)
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


def test_the_model_is_what_a_file_system_does() -> None:
    """After every step of every sequence; a direct write may be refused here, as others."""
    for work in WORKS:
        volume = Volume([work], 2)
        volume.check(2, 2)
        volume.check(1, 2)
        assert not volume.refused or work.operation[0] in ("direct", "falloc"), work.title
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
