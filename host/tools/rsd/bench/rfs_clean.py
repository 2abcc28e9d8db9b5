# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS while it cleans: overwriting a file at random.

What cleaning copies, and metadata, take their share of the drive's bandwidth: what is left for the
user is raw bandwidth by the write amplification, of which RFS is to reach most. Raw bandwidth is
that of dies that do nothing but program. A drive that is written over and over erases as well, a
block for each of its pages' programs, so that it cannot reach that.

How much is copied depends on when cleaning begins, so a round says little. RFS's code without a
kernel does the same with many seeds, with runs in its index and without.
"""

import statistics
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.copies import copies_by_seed
from rsd.bench.device import (
    PAGE,
    RISA_CHANNELS,
    RISA_WAYS,
    T_CMD,
    T_ERASE,
    T_PROG,
    T_READ,
    T_XFER,
)
from rsd.bench.guest import finished
from rsd.bench.rfs import CLOSED_FORM
from rsd.compare.figures import counters, read_json
from rsd.machine import GuestJob, run_guest

SHARE, SHARE_WITH_ERASES = 0.90, 0.95
# What a die needs for an operation, ns
PROGRAM, READ, ERASE = T_CMD + T_XFER + T_PROG, T_CMD + T_READ + T_XFER, T_CMD + T_ERASE
DIES, BLOCK_PAGES = RISA_CHANNELS * RISA_WAYS, 128
ERASES = tuple(f"erase_{cause}" for cause in ("host", "clean", "merge", "wear", "map", "pad"))
# Preset risa has 2 GiB; the page cache has all of the file.
FILE_MIB, WRITTEN_MIB, MEMORY_MIB = 1200, 800, 2048
# The same drive and file in percent, aged by a round, then one that counts; and how often
ALONE = {
    "channels": RISA_CHANNELS,
    "ways": RISA_WAYS,
    "mib": 2048,
    "fill": 100 * FILE_MIB // 2048,
    "age": 100 * WRITTEN_MIB // FILE_MIB,
    "writes": 100 * WRITTEN_MIB // FILE_MIB,
    "uniform": 1,
}
SEEDS = range(1, 31)
# Until it cleans all the time, and after that
ROUNDS = ("first", "sustained")

# fio drops the file from the page cache before each job, unless it is told not to. Counters are
# read by fio itself, so that what is cleaned before and after a round does not count. Each round
# draws other blocks: the same ones would die in the order in which they were written.
_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1
fio() {{
	command fio --output-format=json --eta=never --invalidate=0 \\
		--filename=/mnt/file "$@"
}}
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
cd /out
fio --name=fill --rw=write --bs=1m --size={FILE_MIB}m --end_fsync=1 >/dev/null
sync
seed=3
for name in {" ".join(ROUNDS)}; do
	sleep 2
	# their output goes to $name.prerun.txt and $name.postrun.txt
	fio --name=$name --rw=randwrite --bs=4k --size={FILE_MIB}m --io_size={WRITTEN_MIB}m \\
		--randseed=$seed --norandommap --end_fsync=1 --output=fio-$name.json \\
		--exec_prerun="rsdctl show --json $drive" --exec_postrun="rsdctl show --json $drive"
	seed=$((seed + 1))
done
umount /mnt
fsck.rfs $drive
"""


def rfs_clean(context: Context) -> list[Row]:
    """Rows for each round; the last one must reach its shares."""
    step = context.progress.step("RFS: overwriting under cleaning")
    with step, context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=_SCRIPT, out_dir=out, memory_mib=MEMORY_MIB)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-clean")
        rows = [row for name in ROUNDS for row in _rows(out, name)]
    return [*rows, _seeds(context)]


def _seeds(context: Context) -> Row:
    """Does the amplification depend on runs? Its mean, and its standard deviation."""
    found = {
        runs: [run.amplification for run in made]
        for runs, made in copies_by_seed(context, SEEDS, ALONE).items()
    }
    runs, without = (
        f"{statistics.mean(values):.3f} (deviation {statistics.stdev(values):.3f}, "
        f"{min(values):.3f} to {max(values):.3f})"
        for values in (found[1], found[0])
    )
    return Row(
        f"RFS without a kernel, the same drive, sustained, {len(SEEDS)} seeds: amplification",
        "informative",
        f"{runs}; on volumes without runs {without}",
        statistics.mean(found[1]),
        "",
        "count",
        None,
    )


def _done(out: Path, name: str) -> dict[str, int]:
    """What the drive did in a round, by the names of its counters."""
    before, after = (counters(read_json(out / f"{name}.{when}run.txt")) for when in ("pre", "post"))
    return {counter: after[counter] - before[counter] for counter in after}


def _rows(out: Path, name: str) -> list[Row]:
    job = read_json(out / f"fio-{name}.json")["jobs"][0]
    written = job["write"]["io_bytes"]
    took_ms = job["job_runtime"]
    speed = written / (took_ms / 1e3)
    done = _done(out, name)
    amplification = done["prog_host"] * PAGE / written
    can_be = CLOSED_FORM / amplification
    required = name == ROUNDS[-1]
    what = f"RFS, random 4 KiB overwrite of {WRITTEN_MIB} MiB of {FILE_MIB}, {name}"
    rows = [
        Row(
            what,
            f"{SHARE:.0%} of raw bandwidth by the write amplification"
            if required
            else "informative",
            f"{speed / 1e6:.1f} MB/s, amplification {amplification:.3f}: {speed / can_be:.1%} of "
            f"{can_be / 1e6:.1f} MB/s",
            speed,
            "bytes/s",
            "virtual",
            speed >= SHARE * can_be if required else None,
        )
    ]
    if required:
        rows += [_with_erases(what, speed, can_be), _dies(what, done, took_ms * 1e6)]
    return rows


def _with_erases(what: str, speed: float, can_be: float) -> Row:
    """Where each block that is programmed is erased before."""
    most = can_be * PROGRAM / (PROGRAM + ERASE / BLOCK_PAGES)
    return Row(
        f"{what}, of what dies reach that erase a block for {BLOCK_PAGES} programs",
        f"{SHARE_WITH_ERASES:.0%} of that by the write amplification",
        f"{speed / most:.1%} of {most / 1e6:.1f} MB/s",
        speed,
        "bytes/s",
        "virtual",
        speed >= SHARE_WITH_ERASES * most,
    )


def _dies(what: str, done: dict[str, int], took_ns: float) -> Row:
    busy = {
        "program": done["nand_programs"] * PROGRAM,
        "erase": sum(done[counter] for counter in ERASES) * ERASE,
        "read": done["nand_reads"] * READ,
    }
    shares = {name: time / (DIES * took_ns) for name, time in busy.items()}
    idle = 1 - sum(shares.values())
    shown = ", ".join(f"{name} for {share:.1%}" for name, share in shares.items())
    return Row(
        f"{what}, the time of the dies",
        "informative",
        f"they {shown}, and do nothing for {idle:.1%}",
        idle,
        "",
        "virtual",
        None,
    )
