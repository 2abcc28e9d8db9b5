# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that is filled through a flash of a hundredth of it, beside ext4 on the disk alone."""

from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.compare.figures import read_json
from rsd.machine import Beside, GuestJob, run_guest

# 16 MiB of flash in zones of 256 KiB, and a disk of 1.6 GB: a block of it is a unit of 4.43 MiB
FLASH = {"channels": "2", "ways": "2", "blocks": "64", "pages": "16", "spare-blocks": "4"}
DISK = {"blocks": "361"}
PARTS = 20
STEADY = 0.5
# What the disk writes out when its cache is full, at its innermost tracks (preset barracuda-320)
CACHE_BYTES, INNER_BYTES, TURN_S = 8 << 20, 118 * 4096, 60 / 7200
QUEUE_S = CACHE_BYTES / INNER_BYTES * TURN_S

# fill.py FILE: writes of 1 MiB, directly, until there is no room; how long each took, in ns
_FILL = """\
import errno, json, mmap, os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
room = os.statvfs(sys.argv[1])
block = mmap.mmap(-1, 1 << 20)
block.write(os.urandom(1 << 20))
took, bytes = [], 0
while True:
    began = time.monotonic_ns()
    try:
        bytes += os.write(file, block)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        break
    took.append(time.monotonic_ns() - began)
print(json.dumps({"room": room.f_bavail * room.f_bsize, "bytes": bytes, "took": took}))
"""

_SCRIPT = """\
set -e
drive=/dev/nvme0n1 slow=/dev/nvme1n1
mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,nodiscard $slow
mount $slow /mnt
python3 /in/fill.py /mnt/file >/out/disk.json
umount /mnt
mkfs.rfs -q -f --slow $slow $drive
mount -t rfs -o slow=$slow $drive /mnt
python3 /in/fill.py /mnt/file >/out/hybrid.json
sync
cat /sys/fs/rfs/nvme0n1/written_copies >/out/copies
umount /mnt
fsck.rfs -n --slow $slow $drive
"""


@dataclass(frozen=True)
class _Fill:
    room: int  # bytes that were free before
    bytes: int  # that were written before ENOSPC
    took: list[int]  # ns of each write of 1 MiB

    @property
    def longest_s(self) -> float:
        return max(self.took) / 1e9

    @property
    def slowest_part(self) -> float:
        """The rate of the slowest twentieth of the writes, of that of all."""
        size = len(self.took) // PARTS
        parts = [sum(self.took[n * size : (n + 1) * size]) for n in range(PARTS)]
        return sum(parts) / PARTS / max(parts)

    @property
    def rate(self) -> float:
        """MB a second."""
        return len(self.took) * 1048.576 / (sum(self.took) / 1e6)


def rfs_fill(context: Context) -> list[Row]:
    """Where ENOSPC comes, how steady the writes before were, and the longest of them."""
    with context.progress.step("filling a disk"), context.cache.scratch("out") as out:
        job = GuestJob(
            system="rsd",
            script=_SCRIPT,
            inputs={"fill.py": _FILL},
            out_dir=out,
            virtual_limit_s=1800,
            namespace=FLASH,
            beside=Beside("barracuda-320", None, DISK),
        )
        finished(run_guest(job, context.built, cache=context.cache), "rfs-fill")
        disk, hybrid = (_Fill(**read_json(out / f"{on}.json")) for on in ("disk", "hybrid"))
        copies = int((out / "copies").read_text())
    what = "RFS, a disk filled through a flash of a hundredth of it"
    return [
        Row(
            f"{what}: ENOSPC",
            f"with the last MiB of {hybrid.room / 1e6:,.1f} MB",
            f"after {hybrid.bytes / 1e6:,.1f} MB, {copies} blocks copied",
            hybrid.bytes / 1e6,
            "MB",
            "count",
            hybrid.room - hybrid.bytes < 1 << 20,
        ),
        Row(
            f"{what}: the slowest twentieth",
            f"{STEADY:.0%} of the rate of all",
            f"{hybrid.slowest_part:.0%} of {hybrid.rate:.1f} MB/s; ext4 on the disk alone"
            f" {disk.slowest_part:.0%} of {disk.rate:.1f} MB/s",
            hybrid.slowest_part,
            "of all",
            "virtual",
            hybrid.slowest_part >= STEADY,
        ),
        Row(
            f"{what}: the longest write of 1 MiB",
            f"at most {QUEUE_S:.3f} s, in which the disk writes its cache",
            f"{hybrid.longest_s:.3f} s; ext4 on the disk alone {disk.longest_s:.3f} s",
            hybrid.longest_s,
            "s",
            "virtual",
            hybrid.longest_s <= QUEUE_S,
        ),
    ]
