# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpacks archives that we did not make, for Pythons before tarfile had filters."""

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath


def extract(tar: tarfile.TarFile, target: Path) -> None:
    """Files, directories and links of an archive, below `target` and owned by us.

    Devices are left out. Raises tarfile.TarError for a name or a link that leads outside.
    """
    target.mkdir(parents=True, exist_ok=True)
    for member in tar:
        parts = _inside(PurePosixPath(member.name), member)
        path = target.joinpath(*parts)
        _check_parents(target, path, member)
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or path.is_file():
            path.unlink()
        if member.issym():
            _inside(PurePosixPath(*parts[:-1]) / member.linkname, member)
            path.symlink_to(member.linkname)
        elif member.islnk():
            source = target.joinpath(*_inside(PurePosixPath(member.linkname), member))
            _check_parents(target, source, member)
            os.link(source, path, follow_symlinks=False)
        elif member.isreg():
            data = tar.extractfile(member)
            assert data is not None
            with path.open("wb") as stream:
                shutil.copyfileobj(data, stream)
            path.chmod(member.mode & 0o755 | 0o600)


def _inside(path: PurePosixPath, member: tarfile.TarInfo) -> list[str]:
    """The parts of a path without "..", none of which may climb over its beginning."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part == ".." or part == "/":
            raise tarfile.TarError(f"{member.name!r} leads outside")
        else:
            parts.append(part)
    return parts


def _check_parents(target: Path, path: Path, member: tarfile.TarInfo) -> None:
    """No link that was unpacked before may carry this one elsewhere."""
    parent = path.parent
    while parent != target and target in parent.parents:
        if parent.is_symlink():
            raise tarfile.TarError(f"{member.name!r} is below a link")
        parent = parent.parent
