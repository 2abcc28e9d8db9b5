# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest instructions of an operation on RFS, ext4 and F2FS.

The virtual clock counts instructions, so what the guest's CPU is busy for says how many there
were, those of the kernel's threads and interrupts included. What a command costs without the
operations is subtracted. ext4 and F2FS are on a drive with a page map.
"""

from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, run_guest

INSTRUCTIONS_A_NS = 2**-GUEST_SPEED_SHIFT
# Of the better of ext4 and F2FS: what is read and written in bulk may cost no more.
BULK, OTHERS = 1.0, 1.3


@dataclass(frozen=True)
class Volume:
    """A file system on a drive; `mount` is the command without the drive."""

    system: str
    mkfs: str
    mount: str


VOLUMES = {
    "rfs": Volume("rsd", "mkfs.rfs -q", "mount -t rfs"),
    "ext4": Volume("page-ftl", "mkfs.ext4 -q -F", "mount -t ext4"),
    "f2fs": Volume("page-ftl", "mkfs.f2fs -q -f", "mount -t f2fs"),
}


@dataclass(frozen=True)
class _Load:
    """`command` does $n operations; `before` is not measured."""

    what: str
    operations: int
    command: str
    before: str = ":"
    limit: float = OTHERS


_DD = "dd bs=4k status=none count=$n"
LOADS = {
    "write": _Load(
        "write of 4 KiB, in order, to the drive",
        20_000,
        f"{_DD} if=/dev/zero of=new-$n; sync",
        limit=BULK,
    ),
    "overwrite": _Load(
        "overwrite of 4 KiB, in order, to the drive",
        20_000,
        f"{_DD} if=/dev/zero of=new-20000 conv=notrunc; sync",
        limit=BULK,
    ),
    "fsync": _Load(
        "write of 4 KiB and fsync", 2_000, f"{_DD} if=/dev/zero of=synced-$n oflag=sync"
    ),
    "read": _Load(
        "read of 4 KiB, in order, from the drive",
        20_000,
        f"{_DD} if=new-20000 of=/dev/null",
        "echo 3 >/proc/sys/vm/drop_caches; head -c 4k new-20000 >/dev/null",
        BULK,
    ),
    "cached": _Load("read of 4 KiB, from memory", 20_000, f"{_DD} if=new-20000 of=/dev/null"),
    "create": _Load(
        "create, to the drive",
        5_000,
        "seq -f files-$n/%.0f $n | xargs touch; sync",
        "mkdir files-$n",
    ),
    "unlink": _Load("unlink, to the drive", 5_000, "rm -r files-$n; sync"),
}

_PROLOGUE = """\
set -e
drive=/dev/nvme0n1
busy() {
	awk '/^now at/ { now = $3 } /idle_sleeptime|iowait_sleeptime/ { idle += $(NF - 1) }
		END { printf "%.0f\\n", now - idle }' /proc/timer_list
}
"""

_ONE = """\
n={operations}
{before}
sync
sleep 1
from=$(busy)
{command}
echo $(($(busy) - from)) >>/out/{name}
"""


def instructions(context: Context, title: str, volume: Volume) -> dict[str, float]:
    """Those of an operation of each load. Raises RsdError."""
    script = f"{_PROLOGUE}{volume.mkfs} $drive\n{volume.mount} $drive /mnt\ncd /mnt\n"
    for name, load in LOADS.items():
        for operations in (1, load.operations):
            script += _ONE.format(
                name=name, operations=operations, before=load.before, command=load.command
            )
    with (
        context.progress.step(f"CPU of operations, {title}"),
        context.cache.scratch("out") as out,
    ):
        job = GuestJob(volume.system, script, rfs=volume.system == "rsd", out_dir=out)
        finished(run_guest(job, context.built, cache=context.cache), f"instructions, {title}")
        found = {}
        for name, load in LOADS.items():
            one, all_of_them = map(int, (out / name).read_text().split())
            found[name] = (all_of_them - one) / (load.operations - 1) * INSTRUCTIONS_A_NS
    return found


def rfs_cpu(context: Context) -> list[Row]:
    """Each load on each file system."""
    costs = {kind: instructions(context, kind, volume) for kind, volume in VOLUMES.items()}
    rows = []
    for name, load in LOADS.items():
        ours = costs["rfs"][name]
        ratio = ours / min(costs["ext4"][name], costs["f2fs"][name])
        shown = ", ".join(f"{kind} {found[name]:,.0f}" for kind, found in costs.items())
        rows.append(
            Row(
                f"guest instructions, {load.what}",
                f"at most {load.limit} times the better of ext4 and F2FS",
                f"{ratio:.2f}: {shown}",
                ours,
                "instructions",
                "virtual",
                ratio <= load.limit,
            )
        )
    return rows
