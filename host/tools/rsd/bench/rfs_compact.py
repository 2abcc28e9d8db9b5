# SPDX-License-Identifier: GPL-2.0-or-later
"""What the option compact=on costs where nothing is small, and saves where it is.

Two guests do the same on volumes that may have pieces of blocks, mounted with compact=on and with
compact=off. What is written in whole blocks must not cost more.
"""

from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.bench.rfs_cpu import LOADS, Volume, instructions
from rsd.compare.figures import read_json
from rsd.machine import GuestJob, run_guest

OPTIONS = ("on", "off")
MKFS = "mkfs.rfs -q -c"
# Than with compact=off, where all is of whole blocks
WORSE = 0.02
APPENDS, SEQUENTIAL_MIB, RANDOM_MIB = 300, 256, 64
FILES, BYTES = 100, 500
# Pages that FILES new files of BYTES may take
ALONE, TOGETHER = 1, 20

_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1
{MKFS} $drive
mount -t rfs -o compact=OPTION $drive /mnt
cat >/tmp/appends.py <<'END'
import os, time
fd = os.open("/mnt/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
times = []
for _ in range({APPENDS} + 1):
    begin = time.monotonic_ns()
    os.write(fd, bytes(4096))
    os.fsync(fd)
    times.append(time.monotonic_ns() - begin)
# the first one writes the name, too
print(sorted(times[1:])[{APPENDS} // 2])
END
cat >/tmp/files.py <<'END'
import os, sys
for number in range({FILES}):
    fd = os.open(f"/mnt/{{sys.argv[1]}}-{{number}}", os.O_CREAT | os.O_WRONLY)
    os.write(fd, bytes([number]) * {BYTES})
    if sys.argv[1] == "alone":
        os.fsync(fd)
    os.close(fd)
END
pages() {{ rsdctl show --json $drive >/out/$1.json; }}
for how in alone together; do
	sync
	sleep 60
	pages $how-before
	python3 /tmp/files.py $how
	sync -f /mnt
	pages $how-after
done
python3 /tmp/appends.py >/out/append
cd /mnt
now() {{ date +%s%N; }}
for how in write randwrite; do
	sync
	begin=$(now)
	amount={SEQUENTIAL_MIB}m
	test $how = write || amount={RANDOM_MIB}m
	fio --name=$how --filename=file --rw=$how --bs=4k --size={SEQUENTIAL_MIB}m \\
		--io_size=$amount --norandommap --randseed=3 --end_fsync=1 --eta=never >/dev/null
	echo $(($(now) - begin)) >/out/$how
done
cd /
umount /mnt
fsck.rfs $drive
"""


@dataclass(frozen=True)
class _Run:
    alone: int  # pages that were programmed
    together: int
    append: float  # us
    sequential: float  # MB/s
    random: float


def _programs(out: Path, name: str) -> int:
    before, after = (
        int(read_json(out / f"{name}-{when}.json")["counters"]["nand_programs"]["value"])
        for when in ("before", "after")
    )
    return after - before


def _run(context: Context, option: str) -> _Run:
    with (
        context.progress.step(f"RFS, compact={option}"),
        context.cache.scratch("out") as out,
    ):
        job = GuestJob("rsd", _SCRIPT.replace("OPTION", option), out_dir=out)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-compact")
        ns = {name: int((out / name).read_text()) for name in ("append", "write", "randwrite")}
        return _Run(
            _programs(out, "alone"),
            _programs(out, "together"),
            ns["append"] / 1e3,
            SEQUENTIAL_MIB * (1 << 20) * 1e3 / ns["write"],
            RANDOM_MIB * (1 << 20) * 1e3 / ns["randwrite"],
        )


def _cost(what: str, on: float, off: float, unit: str, *, fast: bool = False) -> Row:
    """A figure that the option must not make worse; `fast`: more is better."""
    change = on / off - 1
    limit = f"{WORSE:.0%} {'less' if fast else 'more'} than with compact=off"
    return Row(
        f"{what}, compact=on",
        f"at most {limit}",
        f"{change:+.1%}: {on:,.1f} for {off:,.1f} {unit}",
        on,
        unit,
        "virtual",
        (-change if fast else change) <= WORSE,
    )


def _pages(what: str, on: int, off: int, most: int) -> Row:
    return Row(
        f"pages programmed by {what}, compact=on",
        f"at most {most}",
        f"{on}, with compact=off {off}",
        on,
        "pages",
        "count",
        on <= most,
    )


def rfs_compact(context: Context) -> list[Row]:
    """Pages that small files take, then what must not change."""
    on, off = (_run(context, option) for option in OPTIONS)
    files = f"{FILES} new files of {BYTES} bytes"
    rows = [
        _pages(f"{files}, an fsync each", on.alone, off.alone, _with_summaries(FILES * ALONE)),
        _pages(f"{files}, one syncfs", on.together, off.together, TOGETHER),
        _cost("append of 4 KiB with fsync, median", on.append, off.append, "us"),
        _cost("write of 4 KiB, in order", on.sequential, off.sequential, "MB/s", fast=True),
        _cost("overwrite of 4 KiB, at random", on.random, off.random, "MB/s", fast=True),
    ]
    costs = [
        instructions(
            context,
            f"RFS, compact={option}",
            Volume("rsd", MKFS, f"mount -t rfs -o compact={option}"),
        )
        for option in OPTIONS
    ]
    for name, load in LOADS.items():
        with_it, without = (found[name] for found in costs)
        rows.append(_cost(f"guest instructions, {load.what}", with_it, without, "instructions"))
    return rows


def _with_summaries(pages: int) -> int:
    """And one page after each 63 that says what they are."""
    return pages + pages // 63
