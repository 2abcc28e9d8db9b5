# SPDX-License-Identifier: GPL-2.0-or-later
"""A file of RFS written and read in order, through the page cache and directly, preset risa.

What can be had is what a drive reaches whose dies and channels never rest.
"""

from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.device import PAGE, RISA_CHANNELS, RISA_WAYS, T_CMD, T_PROG, T_READ, T_XFER
from rsd.bench.guest import finished
from rsd.compare.figures import read_json
from rsd.machine import GuestJob, run_guest

SHARE = 0.97
FILE_MIB, DEPTH = 1024, 8
MEMORY_MIB = 2048


def _closed_form(array: int) -> float:
    """Bytes a second, where dies need so long for a page, ns: dies or channels are the limit."""
    slot = T_CMD + T_XFER
    return RISA_CHANNELS * PAGE * min(1 / slot, RISA_WAYS / (slot + array)) * 1e9


@dataclass(frozen=True)
class _Job:
    what: str
    side: str
    options: str


_DIRECT = f"--direct=1 --ioengine=io_uring --iodepth={DEPTH}"
_HOW = {"": "through the page cache", _DIRECT: f"directly, {DEPTH} at a time"}
JOBS = {
    f"{'direct' if options else 'buffered'}-{side}": _Job(
        f"RFS, {side} in order by 1 MiB, {how}", side, options
    )
    for side in ("write", "read")
    for options, how in _HOW.items()
}

_PROLOGUE = """\
set -e
drive=/dev/nvme0n1
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
fio() { command fio --output-format=json --eta=never --filename=/mnt/file --bs=1m "$@"; }
"""


def _commands(name: str, job: _Job) -> str:
    """A file that is written is a new one, and is written to its end."""
    writes = job.side == "write"
    return (
        f"{'rm -f /mnt/file' if writes else ':'}\n"
        "sync\n"
        "echo 3 >/proc/sys/vm/drop_caches\n"
        f"fio --name={name} --rw={job.side} --size={FILE_MIB}m {job.options} "
        f"{'--end_fsync=1' if writes else ''} >/out/{name}.json\n"
    )


def _row(out: Path, name: str, job: _Job) -> Row:
    can_be = _closed_form(T_PROG if job.side == "write" else T_READ)
    done = read_json(out / f"{name}.json")["jobs"][0]
    speed = done[job.side]["io_bytes"] / (done["job_runtime"] / 1e3)
    return Row(
        job.what,
        f"{SHARE:.0%} of the closed form's {can_be / 1e6:.1f} MB/s",
        f"{speed / 1e6:.1f} MB/s ({speed / can_be:.1%})",
        speed,
        "bytes/s",
        "virtual",
        speed >= SHARE * can_be,
    )


def rfs_order(context: Context) -> list[Row]:
    """A row for each direction and way."""
    with context.progress.step("RFS: in order"), context.cache.scratch("out") as out:
        script = _PROLOGUE + "".join(_commands(name, job) for name, job in JOBS.items())
        job = GuestJob("rsd", script, out_dir=out, memory_mib=MEMORY_MIB)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-order")
        return [_row(out, name, one) for name, one in JOBS.items()]
