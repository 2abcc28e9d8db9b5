# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on zones of one way each, over which it is striped (RISA 4.5), beside zones of all ways.

Smaller zones cost nothing of the bandwidth, and cleaning copies less, at every number of channels
and ways of RISA's figure 14. The bandwidth is that of preset risa in the guest. The copies are
those of the same code without a kernel: they take no time there, and drives that large can be had.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.copies import Copies, Geometry, copies_by_geometry
from rsd.bench.device import PAGE
from rsd.bench.guest import finished
from rsd.compare.figures import counters, read_json
from rsd.machine import GuestJob, run_guest

SHARE = 0.95
# Preset risa has 2 GiB; the page cache has all of the file.
FILE_MIB, WRITTEN_MIB, MEMORY_MIB = 1200, 256, 2048
WARM_MIB, CLEANED_MIB = 600, 600


@dataclass(frozen=True)
class _Volume:
    """How a volume is made, on which drive."""

    drive: Mapping[str, str]
    mkfs: str


ALL, STRIPED, ONE = "all ways", "one way, striped", "one way, not striped"
VOLUMES = {
    ALL: _Volume({"segment": "all"}, ""),
    STRIPED: _Volume({"segment": "way"}, ""),
    ONE: _Volume({"segment": "way"}, "-w 1"),
}
# What is measured in the guest, and what it is called
JOBS = {
    "seq": f"sequential write of {FILE_MIB} MiB by 1 MiB",
    "random": f"random overwrite of {WRITTEN_MIB} MiB by 1 MiB",
    "random4k": f"random overwrite of {WRITTEN_MIB} MiB by 4 KiB",
    "cleaning": f"random overwrite of {CLEANED_MIB} MiB by 4 KiB, while it cleans",
}

# The first round of overwriting by 4 KiB makes it clean all the time, and is not measured. Each job
# draws other blocks: what is overwritten in the order in which it was written leaves whole zones
# dead, and cleaning has little to copy.
_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1
seed=0
fio() {{
	name=$1
	seed=$((seed + 1))
	shift
	command fio --output-format=json --eta=never --randseed=$seed --invalidate=0 --end_fsync=1 \\
		--filename=/mnt/file --size={FILE_MIB}m --name=$name --output=$name.json "$@"
	sync
}}
mkfs.rfs -q {{mkfs}} $drive
mount -t rfs $drive /mnt
cd /out
fio seq --rw=write --bs=1m
fio random --rw=randwrite --bs=1m --io_size={WRITTEN_MIB}m
fio random4k --rw=randwrite --bs=4k --io_size={WRITTEN_MIB}m
fio warm --rw=randwrite --bs=4k --io_size={WARM_MIB}m --norandommap
sleep 2
rsdctl show --json $drive >before.json
fio cleaning --rw=randwrite --bs=4k --io_size={CLEANED_MIB}m --norandommap
rsdctl show --json $drive >after.json
umount /mnt
fsck.rfs $drive
"""


def rfs_ways(context: Context) -> list[Row]:
    """A row for each job in the guest, and for each geometry."""
    found = {name: _measure(context, name, volume) for name, volume in VOLUMES.items()}
    return [
        *(_bandwidth(job, {name: speeds[job] for name, speeds in found.items()}) for job in JOBS),
        *_copies(context),
    ]


def _measure(context: Context, name: str, volume: _Volume) -> dict[str, tuple[float, str]]:
    """Bytes a second of each job, and what is to be said of it."""
    step = context.progress.step(f"RFS: zones of {name}")
    with step, context.cache.scratch("out") as out:
        job = GuestJob(
            system="rsd",
            script=_SCRIPT.replace("{mkfs}", volume.mkfs),
            out_dir=out,
            memory_mib=MEMORY_MIB,
            namespace=volume.drive,
        )
        finished(run_guest(job, context.built, cache=context.cache), "rfs-ways")
        speeds = {name: (_speed(out, name), "") for name in JOBS}
        written = read_json(out / "cleaning.json")["jobs"][0]["write"]["io_bytes"]
        programs = _programs(out / "after.json") - _programs(out / "before.json")
        speed = speeds["cleaning"][0]
        speeds["cleaning"] = speed, f", amplification {programs * PAGE / written:.3f}"
        return speeds


def _programs(path: Path) -> int:
    return int(counters(read_json(path))["prog_host"])


def _speed(out: Path, name: str) -> float:
    """To the end of fsync, which fio's own bandwidth leaves out."""
    job = read_json(out / f"{name}.json")["jobs"][0]
    return float(job["write"]["io_bytes"] / (job["job_runtime"] / 1e3))


def _bandwidth(job: str, found: Mapping[str, tuple[float, str]]) -> Row:
    def said(name: str) -> str:
        speed, more = found[name]
        return f"{speed / 1e6:.1f} MB/s{more}"

    speed, whole = found[STRIPED][0], found[ALL][0]
    return Row(
        f"RFS, zones of one way, {JOBS[job]}",
        f"{SHARE:.0%} of that with zones of all ways, {said(ALL)}",
        f"{said(STRIPED)} ({speed / whole:.1%}; not striped {said(ONE)})",
        speed,
        "bytes/s",
        "virtual",
        speed >= SHARE * whole,
    )


def _copies(context: Context) -> list[Row]:
    return [_row(*pair) for pair in copies_by_geometry(context).items()]


def _row(geometry: Geometry, found: Copies) -> Row:
    (channels, ways), whole, striped = geometry, found.whole, found.striped
    limit, value = whole.a_write, striped.a_write
    return Row(
        f"RFS, {channels} channels, {ways} ways, zones of one way: copies a block written, OLTP",
        f"fewer than with zones of all ways, {limit:.3f}",
        f"{value:.3f} ({value / limit - 1:+.1%}; {striped.zones:,} zones, "
        f"{striped.open_zones:.1f} open, instead of {whole.zones:,} and "
        f"{whole.open_zones:.1f})",
        value,
        "",
        "count",
        value < limit,
    )
