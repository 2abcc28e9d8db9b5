# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of mounted volumes share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rsd.machine import GuestResult

# The fixture `run`.
Run = Callable[..., GuestResult]


@dataclass(frozen=True)
class Volume:
    """A file system on a drive of rsd.systems: RFS, or one by which the tests are tested."""

    system: str
    mkfs: str
    mount: str
    check: str
    namespace: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Its name for mount -t."""
        return self.mount.split()[2]

    @property
    def options(self) -> list[str]:
        """What it is always mounted with, after -o."""
        return self.mount.split()[4:5]


VOLUMES = {
    "rfs": Volume("rsd", "mkfs.rfs -q -f $drive", "mount -t rfs", "fsck.rfs $drive"),
    "rfs-compact": Volume(
        "rsd", "mkfs.rfs -q -f -c $drive", "mount -t rfs -o compact=on", "fsck.rfs $drive"
    ),
    "ext4": Volume("page-ftl", "mkfs.ext4 -q -F $drive", "mount -t ext4", "e2fsck -fn $drive"),
    "f2fs": Volume("page-ftl", "mkfs.f2fs -q -f $drive", "mount -t f2fs", "fsck.f2fs $drive"),
}

# A drive of 48 MiB: 48 zones of 64 blocks of 4 pages.
SMALL = {"channels": "2", "ways": "2", "blocks": "48", "pages": "64", "spare-blocks": "4"}


# _IOR('X', 125, __u32)
SHUT_DOWN = """
shut_down() {
    python3 -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open("/mnt", os.O_RDONLY), 0x8004587D, struct.pack("I", int(sys.argv[1])))' $1
}
"""


def script(volume: Volume, body: str, *, make: bool = True) -> str:
    """`body` with $drive and the functions start (mount), end (umount) and again (both).

    `shut_down HOW` is the ioctl that Linux's file systems share: 1 writes the log before, 2
    nothing. After each `end` the volume is checked. Without `make` it is there already.
    """
    return (
        "drive=/dev/nvme0n1\n"
        f"start() {{ {volume.mount} $* $drive /mnt; }}\n"
        f"end() {{ cd /; umount /mnt; {volume.check}; }}\n"
        "again() { end; start; }\n" + SHUT_DOWN + (f"{volume.mkfs}\n" if make else "") + f"{body}\n"
    )
