# SPDX-License-Identifier: GPL-2.0-or-later
"""The drives that are in use on this machine: media files that a process of ours has open."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rsd.errors import RsdError
from rsd.media_file import HEADER, MAGIC, VERSION

# Of what runs a drive; others may copy a media file, or look at it.
PROGRAMS = ("qemu-system-", "rsdsim")


@dataclass(frozen=True)
class Run:
    """`media` as the process has it open; `real_time` says that its clock is the machine's."""

    pid: int
    media: Path
    real_time: bool


def running() -> list[Run]:
    """All of them, by process id."""
    return sorted(_running(), key=lambda run: (run.pid, run.media))


def _running() -> Iterator[Run]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if not Path(words[0].decode()).name.startswith(PROGRAMS):
                continue
            files = {link.readlink() for link in (process / "fd").iterdir()}
        except (OSError, UnicodeDecodeError):
            continue  # it has ended, or is another user's
        simulated = words[0].endswith(b"rsdsim")
        for file in files:
            if _is_media(file):
                yield Run(int(process.name), file, b"-icount" not in words and not simulated)


def _is_media(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = stream.read(HEADER.size)
    except OSError:
        return False
    return len(head) == HEADER.size and HEADER.unpack(head) == (MAGIC, VERSION)


def find(media: Path | None) -> Run:
    """The drive to look at: that of a file, or the only one in use."""
    found = running()
    if media is not None:
        mine = [run for run in found if run.media.samefile(media)] if media.exists() else []
        return mine[0] if mine else Run(0, media, False)
    if not found:
        raise RsdError("no drive is in use", "start one in another terminal: ./rsd run, ./rsd sim")
    if len(found) > 1:
        names = "".join(f"\n  {run.media} (process {run.pid})" for run in found)
        raise RsdError(f"several drives are in use:{names}", "name one of these files")
    return found[0]
