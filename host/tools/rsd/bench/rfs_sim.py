# SPDX-License-Identifier: GPL-2.0-or-later
"""Cleaning of RFS in the guest beside sfssim, on the same writes.

The drive is preset risa with zones of one way each: 2,048 zones on 8 GiB, and with fewer pages a
block 1,024 on 1 GiB. sfssim says what is written after its page cache; in the guest each such
block is written by itself, with direct I/O. Some things of the volume the simulator has to be told,
since it has no metadata and no check-points: of a zone 1 block in 64 is a summary; data does not
have the zones that metadata had at the end, nor as many as were free on average, or were without a
block in use and waited for the next check-point to be free. The simulator's groups write one zone
at a time, so the volume's are not striped.

The volume is cleaned in rounds, each of which makes some fifteen zones free. The simulator does
the same, since with four groups that copies 3% more than to clean a few segments at a time. And
what counts is from the end of one round to the end of another: how many there are in a given
number of writes depends on when the first begins, and changes the copies by 3%, the standard
deviation.

What is never written again is on the drive before the rest is written: else the end of it, which
waits in the page cache, shares zones with that, and is copied with it (8% more copies with four
groups).
"""

import functools
import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row, near
from rsd.bench.guest import finished
from rsd.errors import RsdError
from rsd.machine import GuestJob, run_guest


@dataclass(frozen=True)
class Size:
    """A drive, and how much is written before and while it counts, times the volume."""

    drive: Mapping[str, str]
    zones: int
    zone_blocks: int
    age: float
    writes: float

    def state(self) -> dict[str, Any]:
        """Of the volume, for sfssim."""
        return {
            **STATE,
            "segments": self.zones,
            "blocks": self.zone_blocks - self.zone_blocks // 64,
        }

    def blocks(self) -> int:
        """As many as the simulator takes for the volume."""
        return self.zones * (self.zone_blocks - self.zone_blocks // 64)


@dataclass(frozen=True)
class Whole:
    """Rounds of cleaning in the guest, whole ones only: `begin` is the first write that counts."""

    begin: int
    rounds: int
    written: int
    copied: int
    free: float
    waiting: float


# In the guest, the state is noted every so many writes
NOTED = 64


SMALL = Size({"segment": "way", "pages": "32", "blocks": "256"}, 1024, 256, 0.5, 0.5)
LARGE = Size({"segment": "way", "blocks": "512"}, 2048, 1024, 0.25, 0.125)
STATE = {
    "fill": 85,
    "set": 12,
    "work": "zipf",
    "theta": 0.99,
    "seed": 1,
    "cache": 0.5,
    "quantize": "balanced",
}
GROUPS = (4, 1)
GC = "cost-benefit"
TOLERANCE = 0.05
WALL_LIMIT_S = 4 * 3600

_REPLAY = """\
import array, glob, json, mmap, os, sys
noted = int(sys.argv[1])
blocks = array.array("I", open("/in/trace", "rb").read())
state = glob.glob("/sys/fs/rfs/*")[0]
page = mmap.mmap(-1, 4096)
def zones(name):
    return int(open(f"{state}/{name}").read())
fd = os.open("/mnt/hot", os.O_WRONLY | os.O_DIRECT)
found = []
for nth, block in enumerate(blocks):
    if nth % noted == 0:
        copies = sum(map(int, open(f"{state}/written_copies").read().split()))
        found.append([copies, zones("free_zones"), zones("zones_to_be_free")])
    page[:8] = nth.to_bytes(8, "little")
    os.pwrite(fd, page, block * 4096)
print(json.dumps(found))
"""

_SCRIPT = """\
set -e
mkfs.rfs -q -w 1 /dev/nvme0n1
mount -t rfs -o gc={gc},groups={groups} /dev/nvme0n1 /mnt
head -c {cold_bytes} /dev/zero >/mnt/cold
sync
head -c {hot_bytes} /dev/zero >/mnt/hot
sync
python3 /in/replay.py {noted} >/out/found
umount /mnt
dump.rfs /dev/nvme0n1 zones >/out/zones
fsck.rfs /dev/nvme0n1
"""


def _compare(size: Size, context: Context) -> list[Row]:
    """A row for each number of groups, and what the groups gain."""
    program = sim.ensure_sfssim(context.cache, context.progress)
    found: dict[int, tuple[float, float]] = {}
    rows = []
    for groups in GROUPS:
        step = context.progress.step(f"RFS beside sfssim, {groups} groups")
        with step, context.cache.scratch("out") as out:
            trace = out / "trace"
            planned = _simulate(
                program, size, groups, size.age, size.writes, size.zones // 20, trace=trace
            )
            whole = _whole_rounds(_in_guest(context, size, out, planned, trace, groups), planned)
            metadata = _metadata_zones(out / "zones")
            again = _simulate(
                program,
                size,
                groups,
                whole.begin / size.blocks(),
                whole.written / size.blocks(),
                whole.free + whole.waiting + metadata,
                whole.written * size.zones // (whole.rounds * size.blocks()),
            )
            simulated = again["copies_a_write"]
        measured = whole.copied / whole.written
        found[groups] = measured, simulated
        rows.append(
            Row(
                f"RFS in the guest, {GC}, groups={groups}: copies a block written, Zipf, "
                f"{STATE['fill']}% full",
                f"sfssim's {simulated:.3f}, within {TOLERANCE:.0%}",
                f"{measured:.3f} ({measured / simulated - 1:+.1%}); of {size.zones} zones "
                f"{whole.free:.1f} free, {whole.waiting:.1f} to be free, {metadata} "
                "metadata's",
                measured,
                "",
                "count",
                near(measured, simulated, TOLERANCE),
            )
        )
    gains = [1 - found[4][i] / found[1][i] for i in range(2)]
    rows.append(
        Row(
            f"RFS in the guest, {GC}: fewer copies with 4 groups than with 1",
            f"sfssim's {gains[1]:.0%}",
            f"{gains[0]:.0%}",
            gains[0],
            "",
            "count",
            None,
        )
    )
    return rows


rfs_sim = functools.partial(_compare, SMALL)
rfs_sim_8g = functools.partial(_compare, LARGE)


def _metadata_zones(dump: Path) -> int:
    """Check-points', the log's, index's and inode map's; `dump` is what dump.rfs says."""
    states = [line.split()[1:3] for line in dump.read_text().splitlines()[1:]]
    return sum(stream != "data" and state != "free" for state, stream in states)


def _simulate(
    program: Path,
    size: Size,
    groups: int,
    age: float,
    writes: float,
    reserve: float,
    round_: int = 0,
    trace: Path | None = None,
) -> Any:
    """As many writes as `age` and `writes` times the volume.

    `reserve` zones are not data's, and `round_` of them are made free at once.
    """
    options = {
        **size.state(),
        "groups": groups,
        "gc": GC,
        "age": f"{age:.6f}",
        "writes": f"{writes:.6f}",
        "reserve": f"{100 * reserve / size.zones:.4f}",
        "round": round_,
    }
    if trace:
        options["trace"] = trace
    words = [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _whole_rounds(found: Sequence[Sequence[int]], planned: Any) -> Whole:
    """Of what _REPLAY noted: copies, zones free and to be free, every so many writes.

    A round ends when its zones become free, all at once. Raises RsdError.
    """
    least = planned["segments"] // 128
    ends = [
        nth
        for nth in range(1, len(found))
        if found[nth][1] - found[nth - 1][1] >= least and nth * NOTED >= planned["aged"]
    ]
    if len(ends) < 2:
        raise RsdError("rfs-sim: the volume was not cleaned twice while it counts")
    begin, end = ends[0], ends[-1]
    return Whole(
        begin * NOTED,
        len(ends) - 1,
        (end - begin) * NOTED,
        found[end][0] - found[begin][0],
        statistics.mean(free for _, free, _ in found[begin:end]),
        statistics.mean(waiting for _, _, waiting in found[begin:end]),
    )


def _in_guest(
    context: Context, size: Size, out: Path, planned: Any, trace: Path, groups: int
) -> Any:
    cold, hot = planned["file_blocks"]
    script = _SCRIPT.format(
        gc=GC,
        groups=groups,
        cold_bytes=cold * 4096,
        hot_bytes=hot * 4096,
        noted=NOTED,
    )
    inputs = {"replay.py": _REPLAY, "trace": trace}
    job = GuestJob(
        system="rsd",
        script=script,
        inputs=inputs,
        out_dir=out,
        namespace=size.drive,
        virtual_limit_s=0,
        wall_limit_s=WALL_LIMIT_S,
    )
    finished(run_guest(job, context.built, cache=context.cache), "rfs-sim")
    return json.loads((out / "found").read_text())
