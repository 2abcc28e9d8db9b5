# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts in the kernel: the drive is rewound to a point of its past, mounted and checked."""

import re
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

POINTS = Path(__file__).with_name("points.py")

# One workload is recorded, with how far the drive's log of operations was at each promise. What
# fills the volume before is in units of 64 KiB.
RECORD = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start %(mount)s
test %(fill)d -eq 0 || dd if=/dev/zero of=/mnt/fill bs=64k count=%(fill)d
sync
first=$(ops)
/in/promise /mnt run 0 %(steps)d seed=%(seed)d note="rsdctl oplog $drive >>/tmp/ops" >/tmp/promised
last=$(ops)
test ! -e /sys/fs/rfs || cat /sys/fs/rfs/nvme0n1/cleaned_zones /sys/fs/rfs/nvme0n1/checkpoints
end
cut -d' ' -f2 /tmp/promised >/tmp/steps
sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p' /tmp/ops | paste -d' ' /tmp/steps - >/tmp/points
python3 /in/points.py $drive %(kind)s '%(options)s' %(points)d %(seed)d $first $last /tmp/points \
    %(check)s
"""


def long(points: int, options: str) -> object:
    """More steps, on a volume that is nearly full."""
    return pytest.param(points, options, 600, 448, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("points", "options", "steps", "fill"),
    [
        (200, "", 250, 0),
        long(2000, ""),
        long(1667, "gc=greedy"),
        long(1667, "gc=cost-benefit,groups=2"),
        long(1667, "gc=cost-hotness,groups=6,quantize=equi-height"),
    ],
)
def test_crash_points(
    run: Run,
    volume: Volume,
    checkers: dict[str, Path],
    tmp_path: Path,
    points: int,
    options: str,
    steps: int,
    fill: int,
) -> None:
    """At each: mount, check, write on, unmount; at each fourth fsck before and after."""
    if options and volume.system != "rsd":
        pytest.skip("options of RFS")
    values = {
        "steps": steps,
        "seed": 11,
        "fill": fill,
        "points": points,
        "kind": volume.mount.split()[-1],
        "options": options,
        "mount": f"-o {options}" if options else "",
        "check": volume.check,
    }
    result = run(
        script(volume, RECORD % values),
        system=volume.system,
        namespace={**volume.namespace, **SMALL, "op-log": str(tmp_path / "operations")},
        inputs={**checkers, POINTS.name: POINTS},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    print(result.output.splitlines()[-1])
    assert f"{points} points of" in result.output
    if volume.system == "rsd":
        cleaned, checkpoints = map(int, re.findall(r"^(\d+)\r?$", result.output, re.M)[-2:])
        print(f"{cleaned} zones were cleaned, {checkpoints} check-points")
    seconds = result.qemu_cpu_s
    print(f"{points} points: {points / result.wall_s:.1f} a second, QEMU ran for {seconds:.0f} s")
