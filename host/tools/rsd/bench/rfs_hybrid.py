# SPDX-License-Identifier: GPL-2.0-or-later
"""A hybrid volume of RFS beside what else can be made of its two drives, in the guest.

That is ext4 on the disk alone, RFS on the flash alone, and ext4 on dm-cache, whose flash is the
same, with a page map. The drive is preset risa, the disk barracuda-320. Not all that is used is in
the page cache.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench import dm_cache
from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.compare.figures import read_json
from rsd.machine import Beside, GuestJob, run_guest

DISK_TIMES, FLASH_SHARE, PROGRAMS_SHARE = 10, 1.10, 0.7
FILE_MIB, OLTP_MIB, WARM_MIB = 512, 24, 48
FILES, TRANSACTIONS = 4000, 15000
# A drive of half of the file
LITTLE = {"pages": "32", "blocks": "64"}

# What a volume can be on; dm-cache takes another drive than RFS
OURS = ("disk", "flash", "hybrid")
CACHED = ("writeback", "writethrough")

_SCRIPT = """\
set -e
drive=/dev/nvme0n1 slow=/dev/nvme1n1
ext4() { mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard $1 4G; mount $1 /mnt; }
make_disk() { ext4 $slow; }
make_flash() { mkfs.rfs -q -f $drive; mount -t rfs $drive /mnt; }
make_hybrid() {
    mkfs.rfs -q -f --slow $slow $drive
    mount -t rfs -o slow=$slow $drive /mnt
}
size=8388608    # 4 GiB
DM_CACHE
make_writeback() { cached writeback; ext4 $cached; }
make_writethrough() { cached writethrough; ext4 $cached; }
end() { umount /mnt; test ! -e /dev/mapper/cached || uncached; }
timed() {
    name=$1; shift
    rsdctl show --json $drive >/out/$name.before.json
    began=$(date +%s%N)
    "$@" >/tmp/said 2>&1 || { cat /tmp/said; exit 1; }
    sync
    echo $(($(date +%s%N) - began)) >/out/$name
    rsdctl show --json $drive >/out/$name.after.json
}
fill() {
    fio --name=fill --filename=/mnt/file --rw=write --bs=1m --size=FILE_MIBm >/dev/null
    sync
    forget
}
forget() { echo 1 >/proc/sys/vm/drop_caches; }
# oltp MIB SEED OPTION...
oltp() {
    size_mib=$1 seed=$2; shift 2
    fio --name=oltp --filename=/mnt/file --rw=randrw --bs=4k --size=FILE_MIBm \\
        --io_size=${size_mib}m --fdatasync=4 --randseed=$seed --norandommap "$@"
}
"""

_FITS = f"""\
cat >/tmp/postmark <<END
set location /mnt
set number {FILES}
set transactions {TRANSACTIONS}
set size 500 10000
set subdirectories 20
run
quit
END
for on in VOLUMES; do
    make_$on
    timed postmark-$on postmark /tmp/postmark
    fill
    timed oltp-$on oltp {OLTP_MIB} 5
    end
done
"""

_BEYOND = f"""\
for on in VOLUMES; do
    make_$on
    fill
    oltp {WARM_MIB} 6 --random_distribution=zipf:1.1 >/dev/null
    sync
    forget
    timed skewed-$on oltp {OLTP_MIB} 5 --random_distribution=zipf:1.1
    end
done
"""


@dataclass(frozen=True)
class _Work:
    name: str
    title: str
    fits: bool = True
    why: str = ""  # a row may be missed


@dataclass(frozen=True)
class _Run:
    seconds: float
    programs: int


_OLTP = f"{OLTP_MIB} MiB, as many reads as writes, fdatasync after every 4 writes"
WORKS = (
    _Work(
        "postmark",
        f"postmark, {FILES:,} files, {TRANSACTIONS:,} transactions, and sync",
        why="it waits for nothing before the sync, when it has deleted its files: what is written"
        " is what became of their names",
    ),
    _Work(
        "oltp",
        f"4 KiB at random in {FILE_MIB} MiB, {_OLTP}",
        why=f"of {OLTP_MIB << 7:,} pages, about, that are written, each is programmed at least"
        " once on both",
    ),
    _Work(
        "skewed",
        f"4 KiB in {FILE_MIB} MiB by zipf:1.1, flash of half of that, after {WARM_MIB} MiB of it:"
        f" {_OLTP}",
        fits=False,
    ),
)


def _programs(out: Path, name: str) -> int:
    return int(read_json(out / f"{name}.json")["counters"]["nand_programs"]["value"])


def _measured(
    context: Context,
    what: str,
    volumes: tuple[str, ...],
    body: str,
    namespace: Mapping[str, str],
) -> dict[str, _Run]:
    """What was timed on each of some volumes that one guest can have, by the name of its file."""
    cached = volumes[0] in CACHED
    script = _SCRIPT.replace("DM_CACHE", dm_cache.INSERT if cached else "") + body
    script = script.replace("FILE_MIB", str(FILE_MIB)).replace("VOLUMES", " ".join(volumes))
    with context.progress.step(what), context.cache.scratch("out") as out:
        job = GuestJob(
            system="page-ftl" if cached else "rsd",
            script=script,
            inputs=dm_cache.inputs(context) if cached else None,
            out_dir=out,
            virtual_limit_s=1800,
            namespace=namespace,
            beside=Beside("barracuda-320"),
        )
        finished(run_guest(job, context.built, cache=context.cache), what)
        return {
            path.name.removesuffix(".before.json"): _Run(
                int((out / path.name.removesuffix(".before.json")).read_text()) / 1e9,
                _programs(out, path.name.replace(".before.json", ".after"))
                - _programs(out, path.name.removesuffix(".json")),
            )
            for path in out.glob("*.before.json")
        }


def _beside_one(work: _Work, run: Mapping[str, _Run]) -> Iterator[Row]:
    """The hybrid volume, and each of its drives alone."""
    what, both = f"RFS, hybrid volume, {work.title}", run[f"{work.name}-hybrid"].seconds
    disk, flash = (run[f"{work.name}-{on}"].seconds for on in ("disk", "flash"))
    fast = DISK_TIMES * both <= disk
    yield Row(
        what,
        f"{DISK_TIMES} times as fast as ext4 on the disk alone, {disk:.2f} s",
        f"{disk / both:.1f} times: {both:.2f} s",
        both,
        "s",
        "virtual",
        fast,
        "" if fast else work.why,
    )
    yield Row(
        what,
        f"at most 10% longer than RFS on flash alone, {flash:.2f} s",
        f"{both / flash - 1:+.1%}: {both:.2f} s",
        both,
        "s",
        "virtual",
        both <= FLASH_SHARE * flash,
    )


def _beside_cache(work: _Work, run: Mapping[str, _Run], mode: str) -> Iterator[Row]:
    """The hybrid volume, and ext4 on dm-cache."""
    what = f"RFS, hybrid volume, {work.title}"
    ours, theirs = run[f"{work.name}-hybrid"], run[f"{work.name}-{mode}"]
    fast = ours.seconds < theirs.seconds
    few = ours.programs <= PROGRAMS_SHARE * theirs.programs
    yield Row(
        what,
        f"faster than ext4 on dm-cache, {mode}, {theirs.seconds:.2f} s",
        f"{theirs.seconds / ours.seconds:.2f} times: {ours.seconds:.2f} s",
        ours.seconds,
        "s",
        "virtual",
        fast,
        "" if fast else work.why,
    )
    yield Row(
        what,
        f"at most {PROGRAMS_SHARE:.0%} of the {theirs.programs:,} NAND programs of ext4 on"
        f" dm-cache, {mode}",
        f"{ours.programs / theirs.programs:.0%}: {ours.programs:,}",
        ours.programs,
        "pages",
        "count",
        few,
        "" if few else work.why,
    )


def rfs_hybrid(context: Context) -> list[Row]:
    """The times of jobs of which the working set fits into flash, and of one that does not."""
    run = {
        **_measured(context, "a hybrid volume", OURS, _FITS, {}),
        **_measured(context, "dm-cache", CACHED, _FITS, {}),
        **_measured(context, "a hybrid volume, less flash", OURS[2:], _BEYOND, LITTLE),
        **_measured(context, "dm-cache, less flash", CACHED, _BEYOND, LITTLE),
    }
    rows: list[Row] = []
    for work in WORKS:
        if work.fits:
            rows += _beside_one(work, run)
        for mode in CACHED:
            rows += _beside_cache(work, run, mode)
    return rows
