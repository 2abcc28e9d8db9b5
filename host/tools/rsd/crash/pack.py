# SPDX-License-Identifier: GPL-2.0-or-later
"""A run and one of its states as one file, with which somebody else sees the same."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.crash.campaign import MARKS, RUN, Campaign, lock
from rsd.crash.record import MODULE
from rsd.crash.states import State
from rsd.crash.visit import Verdict
from rsd.errors import RsdError, naming
from rsd.untar import extract

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


def pack(campaign: Campaign, state: State, verdict: Verdict, target: Path) -> None:
    """Write the file. The same state gives the same bytes. One that exists is left alone."""
    if target.exists():
        raise RsdError(f"{target}: it exists", "name another file, or remove it")
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
    try:
        with tarfile.open(source) as tar:
            left_out = extract(tar, directory)
        content = json.loads((directory / NAME).read_text())
        found = Packed(int(content["state"]), content["verdict"])
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, OSError, ValueError, KeyError) as error:
        raise RsdError(
            f"{source}: not what ./rsd crash pack writes, or not all of it ({error})",
            "./rsd crash pack N FILE makes one",
        ) from error
    if left_out:
        raise RsdError(f"{source}: {left_out[0]!r} leads outside", "it was not made by pack")
    return found
