# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the runs of a file's blocks are, and how much of the index they save.

A pointer of RFS says where a block is, how often and when it was written, as SFS's groups need it.
Blocks of a file could share a pointer where they lie in a row, were written as often, and in the
same second. Each figure is what is left of the pointers then.
"""

import json
from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.machine import GuestJob, run_guest

# Preset risa with 512 MiB, of which two files take four fifths
DRIVE = {"pages": "32"}
COLD_MIB, HOT_MIB, WRITTEN_MIB = 250, 150, 600
# Blocks that a leaf of the index leads to
LEAF_BLOCKS = 252


@dataclass(frozen=True)
class _File:
    name: str
    state: str
    what: str


FILES = (
    _File("cold", "before", "written in order, 1 MiB at a time"),
    _File("cold", "after", "written in order, after zones were cleaned"),
    _File("hot", "after", "overwritten at random, 4 KiB at a time"),
)

_COUNT = """\
import json, sys
blocks = runs = 0
last = None
next(sys.stdin)
for line in sys.stdin:
    block, address, _, *written = line.split()
    now = int(block), int(address), written
    blocks += 1
    runs += last is None or now != (last[0] + 1, last[1] + 1, last[2])
    last = now
print(json.dumps({"blocks": blocks, "runs": runs}))
"""

_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1
cat >/tmp/count.py <<'END'
{_COUNT}END
start() {{ mount -t rfs $drive /mnt; }}
count() {{ dump.rfs $drive map $1 | python3 /tmp/count.py >/out/$2; }}
mkfs.rfs -q $drive
start
dd if=/dev/zero of=/mnt/cold bs=1M count={COLD_MIB} status=none
sync
cat /sys/fs/rfs/nvme0n1/written_index >/out/index
dd if=/dev/zero of=/mnt/hot bs=1M count={HOT_MIB} status=none
cold=$(stat -c %i /mnt/cold) hot=$(stat -c %i /mnt/hot)
umount /mnt
count $cold cold-before
start
fio --name=hot --filename=/mnt/hot --rw=randwrite --bs=4k --size={HOT_MIB}m \\
	--io_size={WRITTEN_MIB}m --randseed=3 --norandommap --random_distribution=zipf:0.99 \\
	--end_fsync=1 --eta=never >/dev/null
cat /sys/fs/rfs/nvme0n1/written_copies >/out/copies
umount /mnt
count $cold cold-after
count $hot hot-after
fsck.rfs $drive
"""


def rfs_runs(context: Context) -> list[Row]:
    """A row for each file and state."""
    step = context.progress.step("RFS: runs of blocks")
    with step, context.cache.scratch("out") as out:
        job = GuestJob("rsd", _SCRIPT, out_dir=out, namespace=DRIVE)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-runs")
        copies = int((out / "copies").read_text())
        index = int((out / "index").read_text())
        leaves = -(-(COLD_MIB << 8) // LEAF_BLOCKS)
        rows = []
        for file in FILES:
            found = json.loads((out / f"{file.name}-{file.state}").read_text())
            mean, left = found["blocks"] / found["runs"], found["runs"] / found["blocks"]
            rows.append(
                Row(
                    f"RFS, runs of blocks of a file {file.what}",
                    "informative",
                    f"{mean:.1f} blocks each: {left:.1%} as many as blocks",
                    mean,
                    "blocks",
                    "count",
                    None,
                )
            )
    rows.append(
        Row(
            "RFS, index nodes that were written for the file written in order",
            "informative",
            f"{index}; without runs it has {leaves} leaves",
            index,
            "blocks",
            "count",
            None,
        )
    )
    rows.append(
        Row(
            "RFS, blocks that cleaning copied meanwhile",
            "informative",
            f"{copies:,}, the volume having {(COLD_MIB + HOT_MIB) << 8:,} in use",
            copies,
            "blocks",
            "count",
            None,
        )
    )
    return rows
