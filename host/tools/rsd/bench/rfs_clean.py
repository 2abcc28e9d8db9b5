# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS while it cleans: overwriting a file at random.

What cleaning copies, and metadata, take their share of the drive's bandwidth: what is left for the
user is raw bandwidth by the write amplification, of which RFS is to reach most.
"""

from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.device import PAGE
from rsd.bench.guest import finished
from rsd.bench.rfs import CLOSED_FORM
from rsd.compare.figures import counters, read_json
from rsd.machine import GuestJob, run_guest

SHARE = 0.90
# Preset risa has 2 GiB; the page cache has all of the file.
FILE_MIB, WRITTEN_MIB, MEMORY_MIB = 1200, 800, 2048
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
    """A row for each round; the last one must reach its share."""
    step = context.progress.step("RFS: overwriting under cleaning")
    with step, context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=_SCRIPT, out_dir=out, memory_mib=MEMORY_MIB)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-clean")
        return [_row(out, name) for name in ROUNDS]


def _programs(out: Path, name: str) -> int:
    return int(counters(read_json(out / f"{name}.txt"))["prog_host"])


def _row(out: Path, name: str) -> Row:
    job = read_json(out / f"fio-{name}.json")["jobs"][0]
    written = job["write"]["io_bytes"]
    speed = written / (job["job_runtime"] / 1e3)
    programs = _programs(out, f"{name}.postrun") - _programs(out, f"{name}.prerun")
    amplification = programs * PAGE / written
    can_be = CLOSED_FORM / amplification
    required = name == ROUNDS[-1]
    return Row(
        f"RFS, random 4 KiB overwrite of {WRITTEN_MIB} MiB of {FILE_MIB}, {name}",
        f"{SHARE:.0%} of raw bandwidth by the write amplification" if required else "informative",
        f"{speed / 1e6:.1f} MB/s, amplification {amplification:.3f}: {speed / can_be:.1%} of "
        f"{can_be / 1e6:.1f} MB/s",
        speed,
        "bytes/s",
        "virtual",
        speed >= SHARE * can_be if required else None,
    )
