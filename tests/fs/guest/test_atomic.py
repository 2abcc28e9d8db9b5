# SPDX-License-Identifier: GPL-2.0-or-later
"""Atomic writes: what the calls say, and that no power cut leaves a part of one."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from mounted import SMALL, VOLUMES, Run, Volume, script

from programs import oftl_programs
from rsd.cache import Cache
from rsd.crash.guest import VISITING

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
IN_THE_GUEST = {"points.py": HERE / "points.py", **VISITING}

# Without page metadata a transaction is listed in the summaries of its appends. In a volatile
# buffer any of its pages may be lost that no flush has made safe.
DRIVES = {
    "metadata": SMALL,
    "summaries": {**SMALL, "oob": "0"},
    "volatile": {**SMALL, "write-buffer": "1048576", "ack": "buffer", "plp": "off"},
}

# How many writes were one transaction, the file system says.
RECORD = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start -o commit=1
first=$(ops)
/in/whole /mnt run 0 %(steps)d seed=%(seed)d drive=$drive >/tmp/promised
last=$(ops)
test $(cat /sys/fs/rfs/*/atomic_writes) -gt $((%(steps)d / 2))
end
python3 /in/points.py $drive rfs '' %(points)d %(seed)d $first $last /tmp/promised \\
    /in/whole %(check)s
"""


@pytest.fixture(autouse=True)
def only_rfs(volume: Volume) -> None:
    """ext4 and F2FS write atomically only on drives that do."""
    if volume.system != "rsd":
        pytest.skip("only RFS writes atomically on a drive that does not")


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
@pytest.mark.parametrize("vcpus", [1, 2])
def test_calls(run: Run, volume: Volume, drive: Mapping[str, str], vcpus: int) -> None:
    """Sizes, errors, and that nothing was written where there was one."""
    body = "start; /in/atomic /mnt; end"
    run(script(volume, body), namespace={**volume.namespace, **drive}, vcpus=vcpus)


def seeds(count: int) -> list[object]:
    """A few, and the others with --long."""
    return [*range(2), *(pytest.param(n, marks=pytest.mark.long) for n in range(2, count))]


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
@pytest.mark.parametrize("seed", seeds(100))
def test_power_cuts(
    run: Run,
    volume: Volume,
    checkers: Mapping[str, Path],
    tmp_path: Path,
    drive: Mapping[str, str],
    seed: int,
) -> None:
    """At each point: each write is there as a whole or not at all, and what was promised is."""
    points = 60
    values = {"steps": 60, "seed": seed, "points": points, "check": volume.check}
    result = run(
        script(volume, RECORD % values),
        namespace={**volume.namespace, **drive, "op-log": str(tmp_path / "operations")},
        inputs={**checkers, **IN_THE_GUEST},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    print(result.output.splitlines()[-1])
    assert f"{points} points of" in result.output


# 60 atomic writes, each followed by a small write into it, none flushed: the flush between the two
# is RFS's.
PARTLY = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start -o commit=3600
first=$(ops)
/in/partly /mnt run 60
last=$(ops)
end
: >/tmp/promised
python3 /in/points.py $drive rfs '' %(points)d %(seed)d $first $last /tmp/promised \\
    /in/partly %(check)s
"""


@pytest.mark.parametrize("seed", seeds(20))
def test_small_writes_into_atomic_ones(
    run: Run, volume: Volume, checkers: Mapping[str, Path], tmp_path: Path, seed: int
) -> None:
    """The volatile buffer may lose an atomic write, and keep a later page with bytes of it."""
    points = 60
    result = run(
        script(volume, PARTLY % {"seed": seed, "points": points, "check": volume.check}),
        namespace={
            **volume.namespace,
            **DRIVES["volatile"],
            "op-log": str(tmp_path / "operations"),
        },
        inputs={**checkers, **IN_THE_GUEST},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert f"{points} points of" in result.output


# A few writes of any bytes, which objects.c makes with RWF_ATOMIC, beside what else happens to its
# files; a volume for each seed. With `compact=on` their ends may be pieces.
EVERY = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
total=0
for seed in $(seq %(from_)d %(to)d); do
    mkfs.rfs -q -f -c $drive
    rsdctl oplog --restart $drive
    start -o commit=1
    story=$seed,%(most)d,%(steps)d
    first=$(ops)
    /in/objects /mnt run seed=$story drive=$drive >/tmp/promised
    end
    last=$(ops)
    python3 /in/points.py $drive rfs compact=on $((last - first + 1)) $story $first $last \\
        /tmp/promised /in/objects fsck.rfs $drive
    total=$((total + last - first + 1))
done
echo all $total
"""


# The first seed, and how many: with --long, 210 on three drives
FEW = [(1000, 1), *(pytest.param(n, 10, marks=pytest.mark.long) for n in range(2000, 2070, 10))]


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize(("first", "seeds"), FEW)
def test_every_operation(
    run: Run, rsd_cache: Cache, tmp_path: Path, drive: str, first: int, seeds: int
) -> None:
    """Cut after each operation of the drive: no write is there in part."""
    first += 100 * list(DRIVES).index(drive)
    values = {"from_": first, "to": first + seeds - 1, "most": 20000, "steps": 20}
    result = run(
        script(VOLUMES["rfs-compact"], EVERY % values, make=False),
        namespace={**DRIVES[drive], "op-log": str(tmp_path / "operations")},
        inputs={
            "objects": oftl_programs(rsd_cache) / "objects",
            "points.py": HERE / "points.py",
            **VISITING,
        },
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert (found := re.search(r"^all (\d+)$", result.output, re.M))
    assert int(found[1]) > 10 * seeds
    print(f"{found[1]} points: QEMU ran for {result.qemu_cpu_s:.0f} s")
