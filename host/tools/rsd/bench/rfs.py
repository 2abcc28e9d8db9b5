# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on preset risa, in the guest: bandwidth, fsync, reads, mounting, memory."""

from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.device import PAGE, RISA_CHANNELS, RISA_WAYS, T_CMD, T_PROG, T_XFER
from rsd.bench.guest import finished
from rsd.compare.figures import read_json
from rsd.errors import RsdError
from rsd.machine import GuestJob, Outcome, run_guest

MIB = 1 << 20
CLOSED_FORM = RISA_CHANNELS * RISA_WAYS * PAGE / (T_CMD + T_XFER + T_PROG) * 1e9
ONE_PROGRAM_US = (T_CMD + T_XFER + T_PROG) / 1e3
APPENDS = 300
# What a summary adds: one page after 63.
SUMMARY = 1 + 1 / 63
READS = 3000
CACHED_BLOCKS = 1 << 17
OPEN_FILES = 10_000
# Written since the check-point when the power goes, of two volumes.
WINDOWS_MIB = (4, 96)

PROLOGUE = """\
set -e
drive=/dev/nvme0n1
fio() { command fio --output-format=json --eta=never --randseed=3 "$@"; }
now() { date +%s%N; }
# timed NAME COMMAND...: how long it takes, ns
timed() {
	name=$1
	shift
	begin=$(now)
	"$@"
	echo $(($(now) - begin)) >/out/$name.ns
}
counters() { rsdctl show --json $drive >/out/$1.json; }
dropped() { sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1; }
memory() { cat /proc/meminfo >/out/$1.memory; }
"""

_APPEND = """\
import os, time
fd = os.open("/mnt/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
data = bytes(4096)
os.write(fd, data)
os.fsync(fd)
os.system("rsdctl show --json /dev/nvme0n1 >/out/append-before.json")
times = []
for i in range(%d):
    begin = time.monotonic_ns()
    os.write(fd, data)
    os.fsync(fd)
    times.append(time.monotonic_ns() - begin)
os.system("rsdctl show --json /dev/nvme0n1 >/out/append-after.json")
times.sort()
print(times[len(times) // 2], times[0], times[-1])
"""

# Nobody keeps the numbers: they would be memory too.
_OPEN = f"""\
import os, resource
limit = {OPEN_FILES} + 100
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.system("cat /proc/meminfo >/out/files-before.memory")
for i in range(1, {OPEN_FILES} + 1):
    os.open("many/%d" % i, os.O_RDONLY)
os.system("cat /proc/meminfo >/out/files-after.memory")
"""

_FIGURES = f"""\
mkfs.rfs -q $drive
dropped
memory unmounted
timed mount-new mount -t rfs $drive /mnt
dropped
memory mounted
cat >/tmp/append.py <<'END'
{_APPEND % APPENDS}END
sync
python3 /tmp/append.py >/out/append
cd /mnt
fio --name=seq --filename=file --rw=write --bs=1m --size=1g --end_fsync=1 >/out/seq.json
sync
fio --name=over --filename=file --rw=randwrite --bs=4k --size=1g --io_size=256m --norandommap \\
    --end_fsync=1 >/out/over.json
sync
echo 3 >/proc/sys/vm/drop_caches
for name in cold warm; do
	fio --name=$name --filename=file --rw=randread --bs=4k --size=1g --number_ios={READS} \\
		--norandommap >/out/$name.json
done
dropped
memory blocks-before
head -c {CACHED_BLOCKS * PAGE} file >/dev/null
memory blocks-after
mkdir many
seq -f many/%.0f {OPEN_FILES} | xargs touch
dropped
cat >/tmp/open.py <<'END'
{_OPEN}END
python3 /tmp/open.py
cd /
timed umount umount /mnt
timed mount-clean mount -t rfs $drive /mnt
umount /mnt
fio --name=raw --filename=$drive --rw=randread --bs=4k --size=1g --number_ios={READS} \\
    --direct=1 --zonemode=zbd >/out/raw.json
"""

_CUT = """\
mkfs.rfs -q $drive
mount -t rfs -o commit=3600 $drive /mnt
head -c {bytes} /dev/zero >/mnt/file
sync -d /mnt/file
echo b >/proc/sysrq-trigger
sleep 100
"""

_AFTER = """\
counters before
timed mount mount -t rfs $drive /mnt
counters after
test $(stat -c %s /mnt/file) -eq {bytes}
umount /mnt
fsck.rfs $drive
"""


def _pages(out: Path, name: str, side: str) -> int:
    return int(read_json(out / f"{name}.json")["counters"][side]["value"])


def milliseconds(out: Path, name: str) -> float:
    return int((out / f"{name}.ns").read_text()) / 1e6


def _bandwidth(out: Path, name: str) -> float:
    job = read_json(out / f"{name}.json")["jobs"][0]
    side = job["write"]
    # To the end of fsync, which fio's own bandwidth leaves out.
    return side["io_bytes"] / (job["job_runtime"] / 1e3)


def rfs(context: Context) -> list[Row]:
    """C.5's figures that take a guest."""
    with context.progress.step("RFS: bandwidth, fsync, reads"), context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=PROLOGUE + _FIGURES, out_dir=out)
        finished(run_guest(job, context.built, cache=context.cache), "rfs")
        rows = [
            *_writing(out),
            *_fsync(out),
            *_reading(out),
            _row("mount of a clean volume", "under 100 ms", milliseconds(out, "mount-clean"), 100),
            *_memory(out),
        ]
    return [*rows, *(_recovery(context, mib) for mib in WINDOWS_MIB)]


def _row(what: str, must: str, value: float, limit: float) -> Row:
    return Row(f"RFS, {what}", must, f"{value:.1f} ms", value, "ms", "virtual", value < limit)


def _writing(out: Path) -> list[Row]:
    rows = []
    for name, what, share in (
        ("seq", "sequential write, 1 GiB, buffered", 0.95),
        ("over", "random 4 KiB overwrite of 256 MiB, buffered", 0.90),
    ):
        speed = _bandwidth(out, name)
        rows.append(
            Row(
                f"RFS, {what}",
                f"{share:.0%} of the closed form's {CLOSED_FORM / 1e6:.1f} MB/s",
                f"{speed / 1e6:.1f} MB/s ({speed / CLOSED_FORM:.1%})",
                speed,
                "bytes/s",
                "virtual",
                speed >= share * CLOSED_FORM,
            )
        )
    return rows


def _fsync(out: Path) -> list[Row]:
    pages = _pages(out, "append-after", "prog_host") - _pages(out, "append-before", "prog_host")
    median, least, most = (int(word) / 1e3 for word in (out / "append").read_text().split())
    return [
        Row(
            f"RFS, pages programmed by {APPENDS} appends of 4 KiB with fsync",
            "1 each, and a summary after 63",
            f"{pages}",
            pages,
            "pages",
            "count",
            APPENDS <= pages <= APPENDS * SUMMARY + 1,
        ),
        Row(
            "RFS, append of 4 KiB with fsync",
            f"{ONE_PROGRAM_US:.1f} us for command, bus and program, and the guest's CPU",
            f"{median:.1f} us (median; {least:.1f} to {most:.1f})",
            median,
            "us",
            "virtual",
            median < 1.15 * ONE_PROGRAM_US,
        ),
    ]


def _reading(out: Path) -> list[Row]:
    def mean(name: str) -> float:
        job = read_json(out / f"{name}.json")["jobs"][0]
        return float(job["read"]["lat_ns"]["mean"]) / 1e3

    raw = mean("raw")
    rows = []
    # The file has 1041 index nodes: the first reads fetch most of them.
    for name, what, required in (
        ("cold", f"the first {READS}, index not in memory", False),
        ("warm", f"the next {READS}, most of the index in memory", True),
    ):
        rows.append(
            Row(
                f"RFS, random reads of 4 KiB at queue depth 1, {what}",
                f"within 10% of the bare drive's {raw:.1f} us" if required else "informative",
                f"{mean(name):.1f} us ({mean(name) / raw - 1:+.1%})",
                mean(name),
                "us",
                "virtual",
                mean(name) <= 1.1 * raw if required else None,
            )
        )
    return rows


def _recovery(context: Context, mib: int) -> Row:
    with (
        context.progress.step(f"RFS: power cut with {mib} MiB in the window"),
        context.cache.scratch("cut") as scratch,
    ):
        media, out = scratch / "media", scratch / "out"
        out.mkdir()
        size = {"bytes": mib * MIB}
        cut = GuestJob("rsd", PROLOGUE + _CUT.format(**size), media=media, out_dir=out)
        result = run_guest(cut, context.built, cache=context.cache)
        if result.outcome is not Outcome.LOST:
            raise RsdError(f"rfs: the guest did not end as it should: {result.output}")
        after = GuestJob("rsd", PROLOGUE + _AFTER.format(**size), media=media, out_dir=out)
        finished(run_guest(after, context.built, cache=context.cache), "rfs")
        took = milliseconds(out, "mount")
        read = _pages(out, "after", "host_read_pages") - _pages(out, "before", "host_read_pages")
    written = mib * MIB // PAGE
    return Row(
        f"RFS, mount after a power cut, {written:,} pages since the check-point",
        "under 1 s, reads in proportion",
        f"{took:.1f} ms, {read:,} pages read",
        took,
        "ms",
        "virtual",
        took < 1000 and read < 1.2 * written + 500,
    )


def _meminfo(out: Path, name: str, field: str) -> int:
    text = (out / f"{name}.memory").read_text()
    return int(text.split(f"\n{field}:")[1].split()[0]) << 10


def taken(out: Path, before: str, after: str) -> int:
    """Bytes, those of the page cache left out."""
    free, cached = (
        _meminfo(out, before, field) - _meminfo(out, after, field)
        for field in ("MemFree", "Cached")
    )
    return free + cached


def _memory(out: Path) -> list[Row]:
    mounted = taken(out, "unmounted", "mounted")
    block = taken(out, "blocks-before", "blocks-after") / CACHED_BLOCKS
    file = taken(out, "files-before", "files-after") / OPEN_FILES
    return [
        _informative(what, f"{value:,.0f} {unit}", value, unit)
        for what, value, unit in (
            ("memory of a mounted, empty volume of 2 GiB", mounted / 1024, "KiB"),
            ("memory of a million cached blocks, besides their content", block * 1e6 / MIB, "MiB"),
            ("memory of an open file, Linux's own for it included", file, "bytes"),
        )
    ]


def _informative(what: str, measured: str, value: float, unit: str) -> Row:
    return Row(f"RFS, {what}", "informative", measured, value, unit, "count", None)
