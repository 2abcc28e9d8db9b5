# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: what is done with a drive in each state that a power cut would have left."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence

from drive import Drive
from mounts import call, mount, umount

WRITTEN, BYTES = "/mnt/written", 4096


class Failed(Exception):
    """The state is wrong: `stage` says in which step that was found, `said` how."""

    def __init__(self, stage: str, said: str) -> None:
        super().__init__(f"{stage}: {said}")
        self.stage = stage
        self.said = said


class Volume:
    """How the file system is mounted: `mount` is device, type and options; and checked unmounted.

    `after_mount` is a command that sets what mount options cannot. Empty ones are not run.
    """

    def __init__(
        self, mount: Sequence[str], fsck: Sequence[str], after_mount: Sequence[str] = ()
    ) -> None:
        device, kind, options = mount
        self.mount = (device, kind, options)
        self.fsck = fsck
        self.after_mount = after_mount


@contextlib.contextmanager
def _stage(name: str) -> Iterator[None]:
    try:
        yield
    except (SystemExit, OSError, AssertionError) as error:
        raise Failed(name, str(error)) from error


def visit(
    drive: Drive,
    volume: Volume,
    op: int,
    outcomes: int | str,
    check: Callable[[], None],
    *,
    fsck: bool = True,
    thorough: bool = False,
    limit_s: float = 0,
) -> None:
    """Rewind, mount, check, write on, unmount; then with `fsck` the file system's own check.

    `thorough`: it is run before the mount as well, which not every file system's can be, and what
    was written on is looked for after another mount. Raises Failed.
    """
    with _stage("rewind"):
        drive.rewind(op, outcomes)
    if thorough:
        _fsck(volume, limit_s)
    with _stage("mount"):
        mount(*volume.mount)
        if volume.after_mount:
            call(*volume.after_mount)
    with _stage("check"):
        check()
    with _stage("write on"):
        room = _write_on(op)
    with _stage("unmount"):
        umount()
    if fsck:
        _fsck(volume, limit_s)
    if thorough:
        with _stage("mount again"):
            mount(*volume.mount)
            with open(WRITTEN) as stream:
                assert room and stream.readline() == f"{op}\n", "what was written on is not there"
            umount()


def _fsck(volume: Volume, limit_s: float) -> None:
    if volume.fsck:
        with _stage("fsck"):
            call(*volume.fsck, limit_s=limit_s)


def _write_on(op: int) -> bool:
    """Whether there was room: the work may have filled the volume."""
    try:
        with open("/mnt/after", "w") as stream:
            stream.write(f"{op}\n".ljust(BYTES))
        os.rename("/mnt/after", WRITTEN)
        os.sync()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True
