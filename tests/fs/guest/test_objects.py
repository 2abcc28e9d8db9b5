# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects (host/tools/oftl) on a zoned drive and on a mounted volume."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

from programs import oftl_programs
from rsd.cache import Cache
from rsd.crash.guest import VISITING

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
IN_THE_GUEST = {"points.py": HERE / "points.py", **VISITING}

# An object that the mounted volume has is there when it is unmounted, and so on.
CALLS = """
/in/objects $drive calls
start
/in/objects /mnt calls
test "$(ls -A /mnt)" = .objects && test -z "$(ls -A /mnt/.objects)"
mkdir /mnt/below
fails 1 /in/objects /mnt/below calls
fails 1 /in/objects /tmp calls
fails 1 /in/objects $drive calls
/in/objects /mnt run seed=5
end
/in/objects $drive check 59 seed=5
start
/in/objects /mnt check 59 seed=5
end
"""

# As test_atomic.py: the power is cut while objects of a mounted volume are written.
CUTS = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start -o commit=1
first=$(ops)
/in/objects /mnt run seed=%(seed)d drive=$drive >/tmp/promised 2>/tmp/several
last=$(ops)
# Whatever writeback does, the file system says of each that it was one transaction.
grep -E '^[1-9][0-9]* of several blocks' /tmp/several
test $(cat /sys/fs/rfs/*/atomic_writes) -eq $(cut -d ' ' -f 1 /tmp/several)
end
python3 /in/points.py $drive rfs '' %(points)d %(seed)d $first $last /tmp/promised \\
    /in/objects %(check)s
"""

DRIVES = {
    "metadata": SMALL,
    "volatile": {**SMALL, "write-buffer": "1048576", "ack": "buffer", "plp": "off"},
}


@pytest.fixture(autouse=True)
def only_rfs(volume: Volume) -> None:
    if volume.system != "rsd":
        pytest.skip("objects are RFS's")


@pytest.fixture
def inputs(rsd_cache: Cache) -> dict[str, Path]:
    return {**IN_THE_GUEST, "objects": oftl_programs(rsd_cache) / "objects"}


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
def test_calls(
    run: Run, volume: Volume, inputs: Mapping[str, Path], drive: Mapping[str, str]
) -> None:
    result = run(
        script(volume, CALLS), namespace={**volume.namespace, **drive}, inputs=dict(inputs)
    )
    for said in (
        "/dev/nvme0n1: Device or resource busy; it is mounted, or another process has it",
        "/mnt: another process has the objects of this volume, and must end or close them first",
        "/mnt/below: it must be the directory where the RFS is mounted, and is one below",
        "/tmp: a directory of another file system; it must be where an RFS is mounted",
    ):
        assert said in result.output


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 100))]
)
def test_power_cuts(
    run: Run,
    volume: Volume,
    inputs: Mapping[str, Path],
    tmp_path: Path,
    drive: Mapping[str, str],
    seed: int,
) -> None:
    """At each point: no part of a write is there without the rest, and what was flushed is."""
    points = 24
    values = {"seed": seed, "points": points, "check": volume.check}
    result = run(
        script(volume, CUTS % values),
        namespace={**volume.namespace, **drive, "op-log": str(tmp_path / "operations")},
        inputs=dict(inputs),
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert f"{points} points of" in result.output
