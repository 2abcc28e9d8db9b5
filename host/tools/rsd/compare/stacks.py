# SPDX-License-Identifier: GPL-2.0-or-later
"""The file systems that `./rsd compare` measures, each on a drive: a stack.

To add a stack, add a row to STACKS. Drives compared with each other have the same flash: a
scale's channels, ways and blocks, whatever the drive does with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rsd.compare.cells import MIB, Level
from rsd.systems import System, get_drive


@dataclass(frozen=True)
class Scale:
    """The size of an experiment: the drive of one paper, and a guest with less memory.

    `blocks` are those of a way and `raw_mib` the flash that they make, spare blocks apart;
    `conv_blocks` of them go to the second namespace, for F2FS's metadata.
    """

    name: str
    preset: str
    blocks: int
    raw_mib: int
    memory_mib: int
    conv_blocks: int
    source: str


SMALL = Scale("small", "redo", 128, 256, 128, 16, "256 MiB: half of REDO's drive")
REDO = Scale("redo", "redo", 256, 512, 192, 16, "512 MiB, 2 channels, 2 ways (REDO section 3)")
RISA = Scale("risa", "risa", 128, 2048, 512, 8, "2 GiB, 8 channels, 4 ways (RISA section 4.1)")


@dataclass(frozen=True)
class FileSystem:
    """How a file system is made, mounted and taken off; shell words, with $drive the drive.

    $second is its second namespace, where there is one. `counters` prints lines of what it counts
    itself, "name:number".
    """

    mkfs: str
    mount: str
    before_mount: str = ":"
    after_mount: str = ""
    counters: str = ""

    @property
    def rfs(self) -> bool:
        """Whether its guest needs RFS's module and tools."""
        return self.mkfs.startswith("mkfs.rfs")


# nilfs2 keeps every state of the last hour by default, so that a short run on a small drive
# would fill it: the cleaner may take what is older than a second, and takes it in time.
_NILFS_CLEANER = """\
cat >/etc/nilfs_cleanerd.conf <<'END'
protection_period 1
min_clean_segments 15%
max_clean_segments 25%
clean_check_interval 1
selection_policy timestamp
nsegments_per_clean 4
mc_nsegments_per_clean 8
cleaning_interval 0.1
mc_cleaning_interval 0.02
retry_interval 1
min_reclaimable_blocks 1%
mc_min_reclaimable_blocks 1%
use_set_suinfo
use_mmap
log_priority info
END
"""

EXT4 = FileSystem(
    "mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 $drive",
    "mount -t ext4 -o discard $drive",
)
# As ext4 is mounted by default, and as REDO will have had it
EXT4_NODISCARD = FileSystem(EXT4.mkfs, "mount -t ext4 -o nodiscard $drive")
F2FS = FileSystem("mkfs.f2fs -q -f -o 5 $drive", "mount -t f2fs -o discard $drive")
# F2FS as the papers of 2013 to 2016 met it. On a drive of less than 16 GiB today's sets itself to
# update in place nearly always, to reuse free blocks of segments in use, and to discard single
# blocks: it is no log there. That of Linux 3.8 to 3.13 updated in place only when it was more than
# full (MIN_IPU_UTIL 100), wrote free segments first, and discarded whole ones, of 2 MiB.
F2FS_2013 = FileSystem(
    "mkfs.f2fs -q -f -o 5 -s 1 $drive",
    "mount -t f2fs -o discard,alloc_mode=default,discard_unit=segment $drive",
    after_mount="policy=/sys/fs/f2fs/nvme0n1/ipu_policy\n"
    "echo 0 >$policy\n"
    '[ "$(cat $policy)" = 0 ] || fail "ipu_policy is not 0, which is never in place" $policy\n'
    "for option in alloc_mode=default discard_unit=segment mode=adaptive; do\n"
    '\tgrep "^$drive /vol f2fs " /proc/mounts | grep -q "[ ,]$option[ ,]" ||\n'
    '\t\tfail "F2FS is not mounted with $option" /proc/mounts\n'
    "done\n",
)
BTRFS = FileSystem(
    "mkfs.btrfs -q -f -d single -m single $drive", "mount -t btrfs -o discard=sync $drive"
)
XFS = FileSystem("mkfs.xfs -q -f $drive", "mount -t xfs -o discard $drive")
NILFS2 = FileSystem(
    # Segments of 1 MiB: of the usual ones of 8 MiB a drive of 256 MiB has 30, which are not enough
    # for the cleaner to work in.
    "mkfs.nilfs2 -q -f -B 256 $drive",
    # Not -o discard: nilfs_discard_segments() of Linux 6.12 counts in logical blocks what the block
    # layer takes in sectors. On logical blocks of 4 KiB it discards at an eighth of the address.
    "mount -t nilfs2 $drive",
    before_mount=_NILFS_CLEANER,
)
# Zones are reset instead of discarded. By default any zone of data that falls below 75% in use is
# relocated as soon as three quarters of the drive are allocated; each pass relocates all of them,
# so that a small drive does little else.
BTRFS_ZONED = FileSystem(
    "mkfs.btrfs -q -f -O zoned -d single -m single $drive",
    "mount -t btrfs $drive",
    after_mount="for data in /sys/fs/btrfs/*-*/allocation/data; do\n"
    "\techo 50 >$data/bg_reclaim_threshold || exit 3\n"
    "done\n",
)
F2FS_ZONED = FileSystem(
    "mkfs.f2fs -q -f -o 5 -m -c $drive $second", "mount -t f2fs -o discard $second"
)
RFS = FileSystem(
    "mkfs.rfs -q -f $drive",
    "mount -t rfs $drive",
    counters="( cd /sys/fs/rfs/nvme0n1 && grep . * )",
)
# A plain log-structured file system: SFS's LFS-CB
RFS_ONE_GROUP = FileSystem(
    RFS.mkfs, "mount -t rfs -o groups=1,gc=cost-benefit $drive", counters=RFS.counters
)


@dataclass(frozen=True)
class Stack:
    """A file system on a drive. `drive` is a name of rsd.systems; `namespace` changes it.

    `level` is the first level that measures it; `scales` the sizes at which it works. Of the flash,
    `fill` is how full it gets when it is aged, `written` how much is written in all: SFS writes
    twice the capacity (2.2).
    """

    file_system: FileSystem
    drive: str
    level: Level
    summary: str
    namespace: Mapping[str, str] = field(default_factory=dict)
    scales: tuple[Scale, ...] = (SMALL, REDO, RISA)
    fill: float = 0.60
    written: float = 2.0

    @property
    def system(self) -> System:
        """The drive."""
        return get_drive(self.drive)

    @property
    def ours(self) -> bool:
        """Whether the drive is ours: its runs have to be identical."""
        return not self.system.raw_media

    @property
    def rfs(self) -> bool:
        """Whether its guest has RFS's module and tools."""
        return self.file_system.rfs

    def properties(self, scale: Scale) -> dict[str, str]:
        """The drive's properties at a scale, beside the system's own."""
        if not self.ours:
            return {}
        shared = {"conv-blocks": str(scale.conv_blocks)} if self.system.second else {}
        size = {"preset": scale.preset, "blocks": str(scale.blocks)}
        return {**size, **shared, **self.namespace}

    def raw_bytes(self, scale: Scale) -> int:
        """The size of a drive that is a plain file."""
        return scale.raw_mib * MIB


def _page(file_system: FileSystem, name: str, level: Level) -> Stack:
    return Stack(file_system, "page-ftl", level, f"{name} on a page-level FTL")


def _of_2013(drive: str, ftl: str) -> Stack:
    summary = f"F2FS as it was in 2013 on {ftl}, for the papers"
    return Stack(F2FS_2013, drive, Level.FULL, summary, scales=(REDO, RISA))


STACKS: dict[str, Stack] = {
    "ext4-stock": Stack(EXT4, "stock", Level.FULL, "ext4 on QEMU's own NVMe drive"),
    "f2fs-stock": Stack(F2FS, "stock", Level.FULL, "F2FS on QEMU's own NVMe drive"),
    "ext4-page": _page(EXT4, "ext4", Level.QUICK),
    "ext4-page-nodiscard": Stack(
        EXT4_NODISCARD,
        "page-ftl",
        Level.FULL,
        "ext4 without discard on a page-level FTL, for REDO's table 1",
        scales=(REDO,),
    ),
    "f2fs-page": _page(F2FS, "F2FS", Level.DEFAULT),
    "f2fs-2013-page": _of_2013("page-ftl", "a page-level FTL"),
    "f2fs-2013-block": _of_2013("block-ftl", "a block-level FTL"),
    "f2fs-2013-block-plain": Stack(
        F2FS_2013,
        "block-ftl",
        Level.FULL,
        "F2FS as in 2013 on a block-level FTL without replacement blocks, for REDO's table 1",
        namespace={"replacement-blocks": "off"},
        scales=(REDO,),
    ),
    "f2fs-2013-fast": _of_2013("fast-ftl", "a hybrid FTL, FAST"),
    "btrfs-page": _page(BTRFS, "btrfs", Level.FULL),
    # mkfs.xfs wants 300 MB or more.
    "xfs-page": Stack(XFS, "page-ftl", Level.FULL, "xfs on a page-level FTL", scales=(REDO, RISA)),
    "nilfs2-page": _page(NILFS2, "nilfs2", Level.FULL),
    "f2fs-block": Stack(F2FS, "block-ftl", Level.FULL, "F2FS on a block-level FTL"),
    "f2fs-fast": Stack(F2FS, "fast-ftl", Level.FULL, "F2FS on a hybrid FTL, FAST"),
    "f2fs-rsd": Stack(
        F2FS_ZONED,
        "rsd-conv",
        Level.QUICK,
        "F2FS on RSD, its metadata in a conventional namespace of the same flash",
    ),
    "rfs+rsd": Stack(RFS, "rsd", Level.QUICK, "RFS on RSD"),
    "rfs-one-group+rsd": Stack(
        RFS_ONE_GROUP,
        "rsd",
        Level.FULL,
        "RFS with one group of data and cost-benefit cleaning, a plain log, on RSD",
        scales=(REDO, RISA),
    ),
    "btrfs-rsd": Stack(
        BTRFS_ZONED,
        "rsd",
        Level.FULL,
        "btrfs in zoned mode on RSD, without page metadata",
        namespace={"oob": "0"},
        # It wants zones of 4 MiB or more.
        scales=(RISA,),
        # Of all that it writes, more is relocated the fuller the zones are.
        fill=0.40,
        written=1.2,
    ),
}
