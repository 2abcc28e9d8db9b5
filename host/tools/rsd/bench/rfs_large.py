# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on large drives, in the guest: preset risa with zones of 64 MiB.

A drive of 16 TB is beside one of 256 zones; its media file is sparse. On one of 1 TB there are as
many files as the host's disk has room for: it keeps all that they contain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.bench.rfs import PROLOGUE, milliseconds, taken
from rsd.compare.figures import read_json
from rsd.machine import GuestJob, run_guest

MIB = 1 << 20
ZONE_BYTES = 64 * MIB
FEW = 256
TERA = 10**12
MOUNT_MS = 500
MEMORY_BYTES = 64 * MIB
CHECKPOINT_SHARE = 1.20
ROUNDS, WRITES = 15, 1024

FILES = 4
READS, DEPTH = 60_000, 32
READ_SHARE = 0.80
WALL_LIMIT_S = 4 * 3600

# The content is durable before a check-point is timed.
_ROUNDS = f"""\
import ctypes, mmap, os, random, time
libc = ctypes.CDLL(None)
fd = os.open("/mnt/file", os.O_RDWR)
page = bytes(4096)
draw = random.Random(1)
times = []
for i in range({ROUNDS}):
    for j in range({WRITES}):
        os.pwrite(fd, page, draw.randrange(65536) * 4096)
    os.fdatasync(fd)
    begin = time.monotonic_ns()
    libc.syncfs(fd)
    times.append(time.monotonic_ns() - begin)
times.sort()
print(times[len(times) // 2])
"""

_MANY = f"""\
timed mkfs mkfs.rfs -q $drive
dropped
memory unmounted
timed mount-new mount -t rfs $drive /mnt
dropped
memory mounted
head -c {256 * MIB} /dev/zero >/mnt/file
sync
cat >/tmp/rounds.py <<'END'
{_ROUNDS}END
python3 /tmp/rounds.py >/out/checkpoint.ns
umount /mnt
timed mount mount -t rfs $drive /mnt
umount /mnt
timed fsck fsck.rfs $drive
"""

# Runs a command that is told where to say how far it is, and prints what it took.
_METER = """\
import json, os, resource, subprocess, sys, time
said, says = os.pipe()
begin = time.monotonic_ns()
done = subprocess.Popen([sys.argv[1], "-C", str(says), *sys.argv[2:]], pass_fds=[says])
os.close(says)
lines = os.fdopen(said).read().splitlines()
status = done.wait()
print(json.dumps({
    "status": status,
    "ns": time.monotonic_ns() - begin,
    "bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
    "said": len(lines),
    "last": lines[-1].split()[1:3],
}))
"""

_FILES = f"""\
timed mkfs mkfs.rfs -q $drive
timed mount-new mount -t rfs $drive /mnt
files=$(seq -s : -f /mnt/%.0f {FILES})
for i in $(seq {FILES}); do
	fio --name=fill --filename=/mnt/$i --rw=write --bs=1m --size=1g >/dev/null
done
sync
umount /mnt
timed mount mount -t rfs $drive /mnt
read="--rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth={DEPTH} --norandommap"
for name in cold warm; do
	fio --name=$name --filename=$files --size={FILES}g --number_ios={READS} \\
		--file_service_type=random $read >/out/$name.json
done
umount /mnt
fio --name=raw --filename=$drive --size={FILES}g --number_ios={READS} --zonemode=zbd \\
	$read >/out/raw.json
cat >/tmp/meter.py <<'END'
{_METER}END
python3 /tmp/meter.py fsck.rfs $drive >/out/fsck.json
python3 /tmp/meter.py fsck.rfs --rescan -n $drive >/out/rescan.json
"""


@dataclass(frozen=True)
class _Drive:
    zones: int

    def properties(self) -> Mapping[str, str]:
        return {"pages": "512", "blocks": str(self.zones)}


def rfs_large(context: Context) -> list[Row]:
    """Rows of both drives."""
    return [*_many_zones(context), *_many_files(context)]


def _run(context: Context, out: Path, zones: int, script: str) -> None:
    job = GuestJob(
        system="rsd",
        script=PROLOGUE + script,
        out_dir=out,
        namespace=_Drive(zones).properties(),
        virtual_limit_s=0,
        wall_limit_s=WALL_LIMIT_S,
    )
    finished(run_guest(job, context.built, cache=context.cache), "rfs-large")


def _many_zones(context: Context) -> list[Row]:
    many = 16 * TERA // ZONE_BYTES
    found: dict[int, dict[str, float]] = {}
    for zones in (FEW, many):
        with (
            context.progress.step(f"RFS in the guest: {zones:,} zones"),
            context.cache.scratch("out") as out,
        ):
            _run(context, out, zones, _MANY)
            found[zones] = {
                name: milliseconds(out, name)
                for name in ("mkfs", "mount-new", "mount", "checkpoint", "fsck")
            }
            found[zones]["memory"] = taken(out, "unmounted", "mounted")
    few, lot = found[FEW], found[many]

    def row(what: str, must: str, name: str, passed: bool | None) -> Row:
        return Row(
            f"RFS, 16 TB in {many:,} zones: {what}",
            must,
            f"{lot[name]:,.1f} ms ({FEW} zones: {few[name]:,.1f} ms)",
            lot[name],
            "ms",
            "virtual",
            passed,
        )

    return [
        row("mkfs.rfs", "informative", "mkfs", None),
        row("mount of a clean volume", f"under {MOUNT_MS} ms", "mount", lot["mount"] < MOUNT_MS),
        row(
            f"a check-point after {WRITES:,} blocks of 256 MiB were overwritten at random",
            f"at most {CHECKPOINT_SHARE - 1:.0%} more than with {FEW}",
            "checkpoint",
            lot["checkpoint"] <= CHECKPOINT_SHARE * few["checkpoint"],
        ),
        row("fsck.rfs of that", "informative", "fsck", None),
        Row(
            f"RFS, 16 TB in {many:,} zones: memory of a mounted, empty volume",
            f"under {MEMORY_BYTES // MIB} MiB",
            f"{lot['memory'] / MIB:.1f} MiB ({FEW} zones: {few['memory'] / MIB:.1f} MiB)",
            lot["memory"],
            "bytes",
            "count",
            lot["memory"] < MEMORY_BYTES,
        ),
    ]


def _many_files(context: Context) -> list[Row]:
    zones = TERA // ZONE_BYTES
    with (
        context.progress.step(f"RFS in the guest: {FILES} GiB of files on 1 TB"),
        context.cache.scratch("out") as out,
    ):
        _run(context, out, zones, _FILES)
        times = {name: milliseconds(out, name) for name in ("mkfs", "mount-new", "mount")}
        speed = {name: _bandwidth(out, name) for name in ("cold", "warm", "raw")}
        tools = {name: read_json(out / f"{name}.json") for name in ("fsck", "rescan")}
    what = f"RFS, {FILES} GiB of files on 1 TB"
    rows = [
        Row(f"{what}: {name}", "informative", f"{ms:,.1f} ms", ms, "ms", "virtual", None)
        for name, ms in (("mkfs.rfs", times["mkfs"]), ("mount", times["mount"]))
    ]
    for name, which in (
        ("cold", f"the first {READS:,}, index not in memory"),
        ("warm", f"the next {READS:,}"),
    ):
        share = speed[name] / speed["raw"]
        required = name == "warm"
        rows.append(
            Row(
                f"{what}: direct random reads of 4 KiB at queue depth {DEPTH}, {which}",
                f"{READ_SHARE:.0%} of the bare drive's {speed['raw'] / 1e6:.1f} MB/s"
                if required
                else "informative",
                f"{speed[name] / 1e6:.1f} MB/s ({share:.1%})",
                speed[name],
                "bytes/s",
                "virtual",
                share >= READ_SHARE if required else None,
            )
        )
    return [*rows, *(_tool_row(what, name, tools[name]) for name in ("fsck", "rescan"))]


def _bandwidth(out: Path, name: str) -> float:
    return float(read_json(out / f"{name}.json")["jobs"][0]["read"]["bw_bytes"])


def _tool_row(what: str, name: str, found: Mapping[str, Any]) -> Row:
    command = {"fsck": "fsck.rfs", "rescan": "fsck.rfs --rescan -n"}[name]
    good = {"fsck": 0, "rescan": 4}[name]
    seconds = found["ns"] / 1e9
    done, of = found["last"]
    return Row(
        f"{what}: {command}",
        f"ends with status {good}; it says how far it is",
        f"{seconds:.1f} s, {found['bytes'] / MIB:.0f} MiB of memory, "
        f"status {found['status']}; told {found['said']:,} times, at last {done} of {of} blocks",
        seconds,
        "s",
        "virtual",
        found["status"] == good and done == of,
    )
