# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts in the kernel: the drive is rewound to a point of its past, mounted and checked."""

from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

STEPS = 250
POINTS = Path(__file__).with_name("points.py")

# One workload is recorded, with how far the drive's log of operations was at each promise.
RECORD = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start
sync
first=$(ops)
/in/promise /mnt run 0 %(steps)d seed=%(seed)d note="rsdctl oplog $drive >>/tmp/ops" >/tmp/promised
last=$(ops)
end
cut -d' ' -f2 /tmp/promised >/tmp/steps
sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p' /tmp/ops | paste -d' ' /tmp/steps - >/tmp/points
python3 /in/points.py $drive %(kind)s %(points)d %(seed)d $first $last /tmp/points \
    %(check)s
"""


@pytest.mark.parametrize("points", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_crash_points(
    run: Run, volume: Volume, checkers: dict[str, Path], tmp_path: Path, points: int
) -> None:
    """At each: mount, check, write on, unmount; at each fourth fsck before and after."""
    kind = volume.mount.split()[-1]
    values = {"steps": STEPS, "seed": 11, "points": points, "kind": kind, "check": volume.check}
    result = run(
        script(volume, RECORD % values),
        system=volume.system,
        namespace={**volume.namespace, **SMALL, "op-log": str(tmp_path / "operations")},
        inputs={**checkers, POINTS.name: POINTS},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert f"{points} points of" in result.output
    seconds = result.qemu_cpu_s
    print(f"{points} points: {points / result.wall_s:.1f} a second, QEMU ran for {seconds:.0f} s")
