# SPDX-License-Identifier: GPL-2.0-or-later
"""Direct I/O of 4 KiB on a file of RFS, beside the bare drive, preset risa, in the guest.

What can be read is what the bare drive gives the same job. What can be written is what its dies can
program, less what RFS writes besides: index, summaries, check-points.
"""

from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.bench.rfs import CLOSED_FORM
from rsd.compare.figures import counters, read_json
from rsd.machine import GuestJob, run_guest

DEPTH = 64
FILE_MIB = 256
READS, WRITES = 100_000, 40_000
READ_SHARE, WRITE_SHARE = 0.95, 0.90
ENGINES = {"uring": "io_uring", "aio": "libaio"}

_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1
fio() {{ command fio --output-format=json --eta=never --randseed=3 --direct=1 "$@"; }}
job="--bs=4k --size={FILE_MIB}m --norandommap --iodepth={DEPTH}"
fio --name=fill --filename=$drive --rw=write --bs=256k --size={FILE_MIB}m --zonemode=zbd \\
    >/dev/null
fio --name=raw --filename=$drive --rw=randread --ioengine=io_uring --number_ios={READS} \\
    --zonemode=zbd $job >/out/raw.json
mkfs.rfs -q -f $drive
mount -t rfs $drive /mnt
fio --name=fill --filename=/mnt/file --rw=write --bs=1m --size={FILE_MIB}m >/dev/null
cat /mnt/file >/dev/null
sync
echo 1 >/proc/sys/vm/drop_caches
fio --name=read --filename=/mnt/file --rw=randread --ioengine=io_uring --number_ios={READS} \\
    $job >/out/read.json
for engine in {" ".join(f"{name}:{engine}" for name, engine in ENGINES.items())}; do
	name=${{engine%:*}}
	rsdctl show --json $drive >/out/$name-before.json
	fio --name=$name --filename=/mnt/file --rw=randwrite --ioengine=${{engine#*:}} \\
		--number_ios={WRITES} $job >/out/$name.json
	sync
	rsdctl show --json $drive >/out/$name-after.json
done
umount /mnt
"""


def _bandwidth(out: Path, name: str, side: str) -> float:
    return float(read_json(out / f"{name}.json")["jobs"][0][side]["bw_bytes"])


def _programs(out: Path, name: str) -> int:
    before, after = (
        counters(read_json(out / f"{name}-{when}.json"))["prog_host"]
        for when in ("before", "after")
    )
    return after - before


def rfs_direct(context: Context) -> list[Row]:
    """Reads and overwrites at random, so many at a time."""
    with context.progress.step("RFS: direct I/O"), context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=_SCRIPT, out_dir=out)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-direct")
        read, raw = _bandwidth(out, "read", "read"), _bandwidth(out, "raw", "read")
        rows = [
            Row(
                f"RFS, direct random reads of 4 KiB at queue depth {DEPTH}",
                f"{READ_SHARE:.0%} of the bare drive's {raw / 1e6:.1f} MB/s",
                f"{read / 1e6:.1f} MB/s ({read / raw:.1%})",
                read,
                "bytes/s",
                "virtual",
                read >= READ_SHARE * raw,
            )
        ]
        for name, engine in ENGINES.items():
            amplification = _programs(out, name) / WRITES
            most = CLOSED_FORM / amplification
            written = _bandwidth(out, name, "write")
            rows.append(
                Row(
                    f"RFS, direct random overwrite of 4 KiB at queue depth {DEPTH}, {engine}",
                    f"{WRITE_SHARE:.0%} of {most / 1e6:.1f} MB/s, the closed form's"
                    f" {CLOSED_FORM / 1e6:.1f} by {amplification:.3f} pages programmed for each",
                    f"{written / 1e6:.1f} MB/s ({written / most:.1%})",
                    written,
                    "bytes/s",
                    "virtual",
                    written >= WRITE_SHARE * most,
                )
            )
    return rows
