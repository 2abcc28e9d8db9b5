# SPDX-License-Identifier: GPL-2.0-or-later
"""An entry of the cache in a file, for another machine's cache.

The file is a tar, gzipped, the same bytes for the same entry, with the key of the entry and the
hashes of what made it.
"""

import gzip
import io
import json
import os
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rsd.cache import Cache
from rsd.cluster.unit import Unit
from rsd.errors import RsdError, naming
from rsd.untar import extract

SUFFIX = ".tar.gz"
MANIFEST = "rsd-cell.json"
CONTENT = "entry"
# Where a file is unpacked first: no entry has this name.
WHOLE = ".packed"
_BROKEN = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error)


def pack(unit: Unit, entry: Path, hashes: Mapping[str, str], target: Path) -> None:
    """Write the file. It appears when it is complete."""
    manifest = {"kind": unit.kind, "key": unit.key, "title": unit.title, "hashes": dict(hashes)}
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    with naming(target):
        try:
            with (
                partial.open("wb") as stream,
                gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
            ):
                text = json.dumps(manifest, indent=1, sort_keys=True).encode()
                member = tarfile.TarInfo(MANIFEST)
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text))
                for path in sorted(entry.rglob("*")):
                    tar.add(path, f"{CONTENT}/{path.relative_to(entry)}", False, filter=_anybody)
            partial.rename(target)
        finally:
            partial.unlink(missing_ok=True)


def _anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from machine to machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def take_in(
    directory: Path, units: Sequence[Unit], hashes: Mapping[str, str], cache: Cache
) -> list[Unit]:
    """Put the results that a directory's cells/ has into the cache. Gives the units without one.

    Raises RsdError for a result that something else made, and for a damaged one.
    """
    missing = []
    for unit in units:
        path = directory / "cells" / f"{unit.key}{SUFFIX}"
        if path.exists():
            _take(path, unit, cache)
        elif not cache.find(unit.kind, unit.key):
            missing.append(unit)
    known = {f"{unit.key}{SUFFIX}" for unit in units}
    for path in sorted((directory / "cells").glob(f"*{SUFFIX}")):
        if path.name not in known:
            raise RsdError(
                f"{path}: {_why(_manifest(path), hashes)}",
                "check out what made it, or remove the file: then it is measured here",
            )
    return missing


def _take(path: Path, unit: Unit, cache: Cache) -> None:
    manifest = _manifest(path)
    if (manifest["kind"], manifest["key"]) != (unit.kind, unit.key):
        raise RsdError(
            f"{path}: has the result of {manifest['title']!r} ({manifest['key']})",
            "do not rename results",
        )

    def unpack(target: Path) -> None:
        with naming(path):
            try:
                with tarfile.open(path) as tar:
                    extract(tar, target / WHOLE)
                for inner in (target / WHOLE / CONTENT).iterdir():
                    inner.rename(target / inner.name)
            except (*_BROKEN, FileNotFoundError) as error:
                raise _damaged(path, error) from error
            (target / WHOLE / MANIFEST).unlink()
            (target / WHOLE / CONTENT).rmdir()
            (target / WHOLE).rmdir()

    cache.entry(unit.kind, unit.key, unpack)


def _manifest(path: Path) -> dict[str, Any]:
    with naming(path):
        try:
            with tarfile.open(path) as tar:
                member = tar.next()
                stream = tar.extractfile(member) if member and member.name == MANIFEST else None
                if stream is None:
                    raise tarfile.TarError(f"{MANIFEST} is not the first file")
                content = json.loads(stream.read())
            wanted = {"kind": str, "key": str, "title": str, "hashes": dict}
            if not all(isinstance(content.get(name), kind) for name, kind in wanted.items()):
                raise tarfile.TarError(f"{MANIFEST} lacks {', '.join(wanted)}")
        except (*_BROKEN, ValueError, AttributeError) as error:
            raise _damaged(path, error) from error
    return dict(content)


def _damaged(path: Path, error: Exception) -> RsdError:
    return RsdError(
        f"{path}: not the result of a cell, or damaged ({error})",
        "remove it: then it is measured again",
    )


def _why(manifest: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    theirs = manifest["hashes"]
    names = sorted(theirs.keys() | hashes.keys())
    other = [name for name in names if theirs.get(name) != hashes.get(name)]
    title = manifest["title"]
    if other:
        return f"the result of {title!r} was made with another {', '.join(other)} than there is"
    return f"{title!r} ({manifest['key']}) is none of this command's cells"
