# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpacks archives that we did not make, for Pythons before tarfile had filters."""

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from rsd.errors import naming

COPY_BYTES = 1 << 20


class _Outside(Exception):
    """A name or a link that leads out of the directory."""


def extract(tar: tarfile.TarFile, target: Path) -> list[str]:
    """Files, directories and links of an archive that can seek, below `target` and owned by us.

    Gives the names of what was left out: names and links that lead outside. Devices are
    left out without a word. Raises tarfile.TarError for a damaged archive.
    """
    target.mkdir(parents=True, exist_ok=True)
    left_out = []
    for member in tar:
        try:
            _extract_one(tar, member, target)
        except _Outside:
            left_out.append(member.name)
    return left_out


def _extract_one(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    parts = _inside(PurePosixPath(member.name))
    path = target.joinpath(*parts)
    _check_parents(target, path)
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    if member.issym():
        _inside(PurePosixPath(*parts[:-1]) / member.linkname)
        path.symlink_to(member.linkname)
    elif member.islnk():
        source = target.joinpath(*_inside(PurePosixPath(member.linkname)))
        _check_parents(target, source)
        os.link(source, path, follow_symlinks=False)
    elif member.isreg():
        data = tar.extractfile(member)
        assert data is not None
        with naming(path), path.open("wb") as stream:
            if member.sparse is None:
                shutil.copyfileobj(data, stream)
            else:
                _copy_sparse(data, stream, member.sparse)
                stream.truncate(member.size)
        path.chmod(member.mode & 0o755 | 0o600)


def _copy_sparse(data: IO[bytes], stream: IO[bytes], pieces: list[tuple[int, int]]) -> None:
    """Only what is no hole, (offset, bytes) each: a file may be larger than the disk."""
    for offset, left in pieces:
        data.seek(offset)
        stream.seek(offset)
        while left:
            chunk = data.read(min(left, COPY_BYTES))
            if not chunk:
                raise tarfile.ReadError("unexpected end of data")
            stream.write(chunk)
            left -= len(chunk)


def _inside(path: PurePosixPath) -> list[str]:
    """The parts of a path without "..", none of which may climb over its beginning."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part == ".." or part == "/":
            raise _Outside
        else:
            parts.append(part)
    return parts


def _check_parents(target: Path, path: Path) -> None:
    """No link that was unpacked before may carry this one elsewhere."""
    parent = path.parent
    while parent != target and target in parent.parents:
        if parent.is_symlink():
            raise _Outside
        parent = parent.parent
