# SPDX-License-Identifier: GPL-2.0-or-later
"""How long somebody waits for RFS while others make it work.

Who calls stat, appends with fsync, creates, or reads must not wait for a check-point, for cleaning,
or for the deletion of a large file. The index of a large file is what such a file costs, so here it
is one whose blocks lie so far apart that each has an index node of its own: 16,000 of them, as many
as a dense file of 15.4 GiB has. Beside each block another one is preallocated, so that no node is a
run of blocks, which would be in the node map and not be read.
"""

import json
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.errors import RsdError
from rsd.machine import GuestJob, Outcome, run_guest

ERASE_US = 3500.0
STAT_US = 100.0
# Who creates files and waits for none of them, beside so many who call fsync for each of theirs
CREATE_US, CREATES, SYNCERS = 100.0, 3000, 4
# Preset risa has 2 GiB; the page cache has all of the file that is overwritten.
FILE_MIB, BEFORE_MIB, WRITTEN_MIB, MEMORY_MIB = 1200, 500, 300, 2048
# Blocks of the large file, and how far they are apart: what an index node leads to.
NODES, STRIDE = 16_000, 252 * 4096
WORKERS = 8
READERS, READS, READ_MEMORY_MIB = 32, 48_000, 512
# Of the file, for each reader one: all of them have the same random numbers.
PART = NODES // READERS - 1
READ_SHARE = 0.80
MOVES = 0.20
MOUNT_MS = 1000.0
# A volume of 8 GiB may have so many inodes. Times are taken each time FEW more names are there.
NAMES, FEW, NAMES_BLOCKS = 1_000_000, 10_000, 512
CREATE_SHARE = 0.75

# probe.py KIND SECONDS FILE: latencies in us, one a millisecond, to the standard output
_PROBE = """\
import json, os, sys, time
kind, seconds, path = sys.argv[1], float(sys.argv[2]), sys.argv[3]
data = bytes(4096)
fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.write(fd, data)
os.fsync(fd)
os.stat(path)
times = []
end = time.monotonic() + seconds
while time.monotonic() < end:
    begin = time.monotonic_ns()
    if kind == "stat":
        os.stat(path)
    else:
        os.write(fd, data)
        os.fsync(fd)
    times.append((time.monotonic_ns() - begin) / 1e3)
    time.sleep(0.001)
print(json.dumps(times))
"""

# A file with an index node for each of its blocks, which has a preallocated block, too
_LARGE = f"""\
import os
fd = os.open("/mnt/large", os.O_CREAT | os.O_WRONLY)
for i in range({NODES}):
    os.pwrite(fd, b"x" * 4096, i * {STRIDE})
    os.posix_fallocate(fd, i * {STRIDE} + 4096, 4096)
os.fsync(fd)
"""

# create.py: ns that each FEW of the names took, to the standard output
_CREATE = f"""\
import json, os, time
os.mkdir("/mnt/names")
dir = os.open("/mnt/names", os.O_RDONLY)
times = []
begin = time.monotonic_ns()
for i in range(1, {NAMES} + 1):
    os.close(os.open(f"file-{{i:07}}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=dir))
    if i % {FEW} == 0:
        now = time.monotonic_ns()
        times.append(now - begin)
        begin = now
print(json.dumps(times))
"""

# beside.py: us that each file took to create, to the standard output
_BESIDE = f"""\
import json, os, time
def create(dir, i):
    return os.open(f"/mnt/{{dir}}/{{i}}", os.O_CREAT | os.O_WRONLY)
def sync_each(dir):
    i = 0
    while not os.path.exists("/mnt/stop"):
        file = create(dir, i)
        os.fsync(file)
        os.close(file)
        i += 1
    os._exit(0)
for dir in "abcdefgh"[:{SYNCERS}]:
    os.mkdir("/mnt/" + dir)
    if not os.fork():
        sync_each(dir)
os.mkdir("/mnt/own")
times = []
for i in range({CREATES}):
    begin = time.monotonic_ns()
    os.close(create("own", i))
    times.append((time.monotonic_ns() - begin) / 1e3)
os.mkdir("/mnt/stop")
for _ in range({SYNCERS}):
    os.wait()
print(json.dumps(times))
"""

_PROLOGUE = f"""\
set -e
drive=/dev/nvme0n1
fio() {{ command fio --output-format=json --eta=never --randseed=3 "$@"; }}
cat >/tmp/probe.py <<'END'
{_PROBE}END
cat >/tmp/large.py <<'END'
{_LARGE}END
"""

_CLEANING = f"""\
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
write() {{
	fio --name=write --filename=/mnt/file --invalidate=0 --bs=4k --size={FILE_MIB}m \\
		--norandommap --end_fsync=1 "$@" >/dev/null
}}
write --rw=write --bs=1m
sync
write --rw=randwrite --io_size={BEFORE_MIB}m
write --rw=randwrite --io_size={WRITTEN_MIB}m &
writer=$!
python3 /tmp/probe.py stat 1.5 /mnt/stat >/out/stat.json &
python3 /tmp/probe.py append 1.5 /mnt/append >/out/append.json
wait $writer
wait
umount /mnt
fsck.rfs $drive
"""

_CREATING = f"""\
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
cat >/tmp/create.py <<'END'
{_CREATE}END
python3 /tmp/create.py >/out/create.json
umount /mnt
fsck.rfs $drive
"""

_SYNCING = f"""\
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
cat >/tmp/beside.py <<'END'
{_BESIDE}END
python3 /tmp/beside.py >/out/beside.json
umount /mnt
fsck.rfs $drive
"""

_REMOVING = f"""\
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
python3 /tmp/large.py
sync
workers() {{
	for n in $(seq {WORKERS}); do
		python3 /tmp/probe.py append 1.5 /mnt/worker-$n >/out/$1-$n.json &
	done
}}
workers alone
wait
umount /mnt
mount -t rfs $drive /mnt
workers beside
sleep 0.3
rm /mnt/large
wait
umount /mnt
fsck.rfs $drive
"""

_CUT_DELETE = """\
mkfs.rfs -q $drive
mount -t rfs -o commit=3600 $drive /mnt
python3 /tmp/large.py
sync
rm /mnt/large
sync -d /mnt
echo b >/proc/sysrq-trigger
sleep 100
"""

_MOUNT_AFTER = """\
begin=$(date +%s%N)
mount -t rfs $drive /mnt
echo $(($(date +%s%N) - begin)) >/out/mount.ns
test ! -e /mnt/large
umount /mnt
fsck.rfs $drive
"""

_READING = f"""\
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
python3 /tmp/large.py
sync
umount /mnt
mount -t rfs $drive /mnt
read() {{
	name=$1
	shift
	fio --name=$name --rw=randread --bs=4k --ioengine=psync --direct=1 --numjobs={READERS} \\
		--thread --group_reporting --norandommap --number_ios=$(({READS} / {READERS})) "$@" \\
		>/out/$name.json
}}
for name in cold warm; do
	read $name --filename=/mnt/large --blockalign={STRIDE} --size={PART * STRIDE} \\
		--offset_increment={PART * STRIDE}
	# the content of files goes from memory, metadata may stay
	echo 1 >/proc/sys/vm/drop_caches
done
umount /mnt
# pages that were never written would be read in no time
blkzone reset $drive
fio --name=fill --filename=$drive --rw=write --bs=128k --direct=1 --zonemode=zbd \\
	--size={NODES * 4096} >/dev/null
read raw --filename=$drive --size={PART * 4096} --offset_increment={PART * 4096}
"""


def rfs_latency(context: Context) -> list[Row]:
    """A row for each of those who wait."""
    return [
        *_cleaning(context),
        _syncing(context),
        _removing(context),
        _mounting(context),
        _creating(context),
        *_reading(context),
    ]


def _percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def _times(out: Path, name: str) -> list[float]:
    times: list[float] = json.loads((out / f"{name}.json").read_text())
    return times


def _run(context: Context, script: str, out: Path, memory_mib: int) -> None:
    job = GuestJob(system="rsd", script=_PROLOGUE + script, out_dir=out, memory_mib=memory_mib)
    finished(run_guest(job, context.built, cache=context.cache), "rfs-latency")


def _cleaning(context: Context) -> list[Row]:
    step = context.progress.step("RFS: stat and fsync beside a writer and cleaning")
    with step, context.cache.scratch("out") as out:
        _run(context, _CLEANING, out, MEMORY_MIB)
        return [
            _waits(
                f"RFS, {what}, 99.9th percentile, beside random overwriting and cleaning",
                must,
                _times(out, name),
                limit,
            )
            for name, what, must, limit in (
                ("stat", "stat of a cached inode", f"under {STAT_US:.0f} us", STAT_US),
                (
                    "append",
                    "append of 4 KiB with fsync",
                    f"3 erase times, {3 * ERASE_US / 1e3:.1f} ms",
                    3 * ERASE_US,
                ),
            )
        ]


def _waits(what: str, must: str, times: list[float], limit: float) -> Row:
    value = _percentile(times, 0.999)
    measured = (
        f"{value:,.1f} us (median {_percentile(times, 0.5):,.1f}, longest {max(times):,.1f}, "
        f"{len(times):,} times)"
    )
    return Row(what, must, measured, value, "us", "virtual", value < limit)


def _syncing(context: Context) -> Row:
    step = context.progress.step("RFS: files that are created beside processes that call fsync")
    with step, context.cache.scratch("out") as out:
        _run(context, _SYNCING, out, MEMORY_MIB)
        return _waits(
            f"RFS, create of a file, 99.9th percentile, beside {SYNCERS} processes that create "
            "files with an fsync for each",
            f"under {CREATE_US:.0f} us",
            _times(out, "beside"),
            CREATE_US,
        )


def _removing(context: Context) -> Row:
    step = context.progress.step("RFS: workers beside the deletion of a large file")
    with step, context.cache.scratch("out") as out:
        _run(context, _REMOVING, out, MEMORY_MIB)
        times = {
            name: [time for n in range(1, WORKERS + 1) for time in _times(out, f"{name}-{n}")]
            for name in ("alone", "beside")
        }
    alone, beside = (_percentile(found, 0.99) for found in times.values())
    rare = [f"{_percentile(found, 0.999):,.1f}" for found in times.values()]
    return Row(
        f"RFS, {WORKERS} workers' appends with fsync, 99th percentile, while a file with "
        f"{NODES:,} index nodes is deleted",
        f"{MOVES:.0%} more at most than alone",
        f"{beside:,.1f} us, alone {alone:,.1f} us ({beside / alone - 1:+.1%}; 99.9th percentile "
        f"{rare[1]}, alone {rare[0]})",
        beside,
        "us",
        "virtual",
        beside <= (1 + MOVES) * alone,
    )


def _mounting(context: Context) -> Row:
    step = context.progress.step("RFS: mount after a power cut within a large deletion")
    with step, context.cache.scratch("cut") as scratch:
        media, out = scratch / "media", scratch / "out"
        out.mkdir()
        cut = GuestJob("rsd", _PROLOGUE + _CUT_DELETE, media=media, out_dir=out)
        result = run_guest(cut, context.built, cache=context.cache)
        if result.outcome is not Outcome.LOST:
            raise RsdError(f"rfs-latency: the guest did not end as it should: {result.output}")
        after = GuestJob("rsd", _PROLOGUE + _MOUNT_AFTER, media=media, out_dir=out)
        finished(run_guest(after, context.built, cache=context.cache), "rfs-latency")
        took = int((out / "mount.ns").read_text()) / 1e6
    return Row(
        f"RFS, mount after a power cut, a file with {NODES:,} index nodes just deleted",
        f"under {MOUNT_MS / 1e3:.0f} s",
        f"{took:,.1f} ms",
        took,
        "ms",
        "virtual",
        took < MOUNT_MS,
    )


def _creating(context: Context) -> Row:
    step = context.progress.step(f"RFS: {NAMES:,} names in one directory")
    with step, context.cache.scratch("out") as out:
        script = _PROLOGUE + _CREATING
        blocks = {"blocks": str(NAMES_BLOCKS)}
        job = GuestJob(system="rsd", script=script, out_dir=out, namespace=blocks)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-latency")
        times = _times(out, "create")
    few = FEW / times[0] * 1e9
    half = len(times) // 2
    rate, whole, least = (
        FEW * len(part) / sum(part) * 1e9 for part in (times[half:], times, [max(times)])
    )
    return Row(
        f"RFS, create in one directory, names {NAMES // 2 + 1:,} to {NAMES:,}, with the "
        "check-points among them",
        f"{CREATE_SHARE:.0%} of the rate of the first {FEW:,}, {few:,.0f} a second",
        f"{rate:,.0f} a second ({rate / few:.1%}; of all {whole / few:.1%}, of the slowest {FEW:,} "
        f"{least / few:.1%})",
        rate,
        "1/s",
        "virtual",
        rate >= CREATE_SHARE * few,
    )


def _reading(context: Context) -> list[Row]:
    step = context.progress.step("RFS: reads of a large file, index not in memory")
    with step, context.cache.scratch("out") as out:
        _run(context, _READING, out, READ_MEMORY_MIB)
        cold, warm, raw = (
            float(json.loads((out / f"{name}.json").read_text())["jobs"][0]["read"]["iops"])
            for name in ("cold", "warm", "raw")
        )
    return [
        Row(
            f"RFS, random reads of 4 KiB, {READERS} at a time, of a file with {NODES:,} index "
            f"nodes in {READ_MEMORY_MIB} MiB, {what}",
            f"{READ_SHARE:.0%} of the bare drive's {raw:,.0f} IOPS" if required else "informative",
            f"{iops:,.0f} IOPS ({iops / raw:.1%})",
            iops,
            "IOPS",
            "virtual",
            iops >= READ_SHARE * raw if required else None,
        )
        for what, iops, required in (
            (f"the first {READS:,}, index not in memory", cold, False),
            (f"the next {READS:,}", warm, True),
        )
    ]
