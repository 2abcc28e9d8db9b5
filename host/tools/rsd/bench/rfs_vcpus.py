# SPDX-License-Identifier: GPL-2.0-or-later
"""Does a second CPU of the guest help RFS? Four writers and four readers, in real time.

The readers read what is in memory and the writers make theirs durable now and then, so that it is
the file system that works and not the drive. In virtual time several CPUs take turns: here they
run at the same time, on two cores of the host, and the figures are not the same twice. The median
of some runs counts.
"""

import json
import statistics

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.machine import GuestJob, run_guest

FILE_MIB, SECONDS, RUNS, MUST = 32, 8, 3, 1.6

# How often writers make durable what they have written, in blocks of 4 KiB
LOADS = {"buffered writes": 0, "an fdatasync after 16 writes": 16}

_SCRIPT = """\
set -e
drive=/dev/nvme0n1
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
fio() {{ command fio --output-format=json --eta=never --directory=/mnt --thread "$@"; }}
fio --name=lay --rw=write --bs=1m --size={size}m --numjobs=4 --filename_format='r.$jobnum' \\
	>/dev/null
sync
# without --invalidate=0 fio drops what memory has of a file, and reads would wait for the drive
both="--bs=4k --ioengine=psync --norandommap --invalidate=0 --size={size}m --numjobs=4"
both="$both --group_reporting"
fio $both --time_based --runtime={seconds} \\
	--name=write --rw=randwrite --fdatasync={every} --filename_format='w.$jobnum' \\
	--name=read --new_group --rw=randread --filename_format='r.$jobnum' >/out/fio.json
umount /mnt
fsck.rfs $drive
"""


def _operations(context: Context, every: int, vcpus: int) -> float:
    """Reads and writes a second of one run."""
    script = _SCRIPT.format(size=FILE_MIB, seconds=SECONDS, every=every)
    with context.cache.scratch("out") as out:
        job = GuestJob(
            "rsd",
            script,
            out_dir=out,
            memory_mib=1024,
            vcpus=vcpus,
            deterministic=False,
            virtual_limit_s=0,
        )
        finished(run_guest(job, context.built, cache=context.cache), "rfs-vcpus")
        jobs = json.loads((out / "fio.json").read_text())["jobs"]
    return float(sum(job["read"]["iops"] + job["write"]["iops"] for job in jobs))


def rfs_vcpus(context: Context) -> list[Row]:
    """A row for each load."""
    rows = []
    for what, every in LOADS.items():
        with context.progress.step(f"RFS with one and two vCPUs, {what}"):
            one, two = (
                statistics.median(_operations(context, every, vcpus) for _ in range(RUNS))
                for vcpus in (1, 2)
            )
        rows.append(
            Row(
                f"RFS, 4 writers and 4 readers, {what}, real time",
                f"{MUST} times as many operations with 2 vCPUs as with 1",
                f"{two / one:.2f} ({two:,.0f} and {one:,.0f} a second)",
                two / one,
                "",
                "real",
                two >= MUST * one,
            )
        )
    return rows
