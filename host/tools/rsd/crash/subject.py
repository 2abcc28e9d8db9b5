# SPDX-License-Identifier: GPL-2.0-or-later
"""What is looked at: a file system on a drive, as `./rsd compare` names them, but smaller."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsd.compare.stacks import STACKS, Stack
from rsd.crash import patched
from rsd.errors import RsdError, nearest

# Channels, ways and pages are the same for all. Blocks of a way are what mkfs asks for; 4 of them
# have 1 MiB of flash.
GEOMETRY = {"channels": "2", "ways": "2", "pages": "64", "spare-blocks": "4"}
BLOCKS = {"rfs": 48, "ext4": 64, "f2fs": 96, "btrfs": 128, "nilfs2": 128, "xfs": 320}
# Zones of F2FS are 2 MiB or more, those of btrfs 4.
ZONED = {
    "f2fs": {"pages": "128", "blocks": "96", "conv-blocks": "16"},
    "btrfs": {"pages": "256", "blocks": "64"},
}

# The check of a file system that comes with it: it changes nothing, and fails if there is a fault.
FSCK = {
    "rfs": "fsck.rfs",
    "ext4": "e2fsck -fn",
    "f2fs": "fsck.f2fs --dry-run",
    "btrfs": "btrfs check --readonly",
    "xfs": "xfs_repair -n",
}

DRIVES = {"$drive": "/dev/nvme0n1", "$second": "/dev/nvme0n2"}


def names() -> list[str]:
    """The stacks that can be rewound: those on drives of ours, but for those of 2013.

    What these set after mounting looks for compare's directory.
    """
    return [
        name
        for name, stack in STACKS.items()
        if stack.ours and "/vol" not in stack.file_system.after_mount
    ]


@dataclass(frozen=True)
class Subject:
    """A stack, with properties of its drive and options of its mount that are the user's.

    `patch` changes the file system of the guest's kernel; `module` is what was built of it.
    """

    name: str
    set: Mapping[str, str] = field(default_factory=dict)
    options: str = ""
    patch: Path | None = None
    module: Path | None = None

    @property
    def stack(self) -> Stack:
        """The stack. RsdError if there is none of this name that can be rewound."""
        if self.name not in names():
            close = nearest(self.name, names())
            raise RsdError(
                f"--system {self.name}: there is {', '.join(names())}",
                f"--system {close}" if close else "./rsd compare --list explains them",
            )
        return STACKS[self.name]

    def check_patch(self) -> None:
        """RsdError if there is a patch, and it cannot be used with this stack."""
        if self.patch is None:
            return
        # What is set after mounting is set in /sys, where the patched one has another name.
        allowed = [
            name
            for name in names()
            if Subject(name).kind in patched.KINDS and not STACKS[name].file_system.after_mount
        ]
        if self.name not in allowed:
            raise RsdError(
                f"--patch {self.patch}: --system {self.name} cannot have one",
                f"these can: {', '.join(allowed)}",
            )
        if not self.patch.is_file():
            raise RsdError(f"--patch {self.patch}: no such file", "name what diff -u wrote")

    @property
    def kind(self) -> str:
        """The file system's type, as mount names it."""
        return self.mount[1]

    @property
    def mount(self) -> tuple[str, str, str]:
        """Device, type and options."""
        words = shlex.split(self.stack.file_system.mount)
        options = words[words.index("-o") + 1] if "-o" in words else ""
        kind = words[words.index("-t") + 1]
        return DRIVES[words[-1]], kind, ",".join(filter(None, [options, self.options]))

    @property
    def fsck(self) -> list[str]:
        """The command that checks the volume, unmounted; nothing if it has none."""
        return [*shlex.split(FSCK[self.kind]), self.mount[0]] if self.kind in FSCK else []

    @property
    def properties(self) -> dict[str, str]:
        """The drive's, beside its system's own."""
        size = {**GEOMETRY, "blocks": str(BLOCKS[self.kind])}
        if self.stack.system.second or (self.kind != "rfs" and self.stack.drive == "rsd"):
            size |= ZONED[self.kind]
        return {**size, **self.stack.namespace, **self.set}
