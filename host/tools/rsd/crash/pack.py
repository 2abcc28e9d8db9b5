# SPDX-License-Identifier: GPL-2.0-or-later
"""A run and one of its states as one file, with which somebody else sees the same."""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.crash.campaign import MARKS, RUN, Campaign, lock
from rsd.crash.record import MODULE
from rsd.crash.states import State
from rsd.crash.visit import Verdict
from rsd.errors import RsdError, naming
from rsd.untar import COPY_BYTES, extract

NAME = "pack.json"
PARTS = (RUN, "work", "check", "in", "patch", MODULE, "media", "log", "trace", MARKS)
# Changes little in size, much in time
LEVEL = 4


@dataclass(frozen=True)
class Packed:
    """What is in a file: the state and its verdict. The run is in a directory by now."""

    state: int
    verdict: Mapping[str, Any]


def said(verdict: Verdict) -> dict[str, Any]:
    """Of a verdict, what somebody else has to see."""
    return {"passed": verdict.passed, "stage": verdict.stage, "said": verdict.said}


def check_target(target: Path) -> None:
    """RsdError if the file cannot be written."""
    if target.exists():
        raise RsdError(f"{target}: it exists", "name another file, or remove it")
    if not target.parent.is_dir():
        raise RsdError(f"{target}: there is no directory {target.parent}", "make it first")


def pack(campaign: Campaign, state: State, verdict: Verdict, target: Path) -> None:
    """Write the file. The same state gives the same bytes. One that exists is left alone."""
    check_target(target)
    content = json.dumps({"state": state.id, "verdict": said(verdict)}) + "\n"
    unfinished = target.with_name(f"{target.name}.part")
    # One that is there already was left by a process that was killed, unless somebody holds it.
    with naming(target), unfinished.open("ab") as stream:
        lock(stream, str(target))
        try:
            stream.truncate(0)
            with (
                gzip.GzipFile("", "wb", LEVEL, stream, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
            ):
                info = tarfile.TarInfo(NAME)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
                for name in PARTS:
                    if (path := campaign.directory / name).exists():
                        tar.add(path, name, filter=_plain)
            stream.flush()
            unfinished.rename(target)
        finally:
            unfinished.unlink(missing_ok=True)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what is another machine's."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    return info


def unpack(source: Path, directory: Path) -> Packed:
    """Fill a directory, which exists, with the run."""
    if not source.is_file():
        raise RsdError(f"{source}: no such file", "name a file that ./rsd crash pack wrote")
    try:
        with gzip.open(source) as packed:
            with tarfile.open(fileobj=packed, mode="r:") as tar:
                left_out = extract(tar, directory)
            # The checksum is behind what tarfile reads.
            while packed.read(COPY_BYTES):
                pass
        content = json.loads((directory / NAME).read_text())
        found = Packed(int(content["state"]), content["verdict"])
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, KeyError) as error:
        raise RsdError(
            f"{source}: not what ./rsd crash pack writes, or not all of it ({error})",
            "./rsd crash pack N --file FILE makes one",
        ) from error
    if left_out:
        raise RsdError(f"{source}: {left_out[0]!r} leads outside", "it was not made by pack")
    return found
