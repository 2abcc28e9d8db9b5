# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts in the kernel: the drive is rewound to a point of its past, mounted and checked."""

from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

STEPS = 250

# One workload is recorded, with how far the drive's log of operations was at each promise. Then
# points of it in even distance, each with outcomes of its own for what was in flight.
LOOP = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start
sync
first=$(ops)
/in/promise /mnt run 0 %(steps)d seed=%(seed)d note="rsdctl oplog $drive >>/tmp/ops" >/tmp/promised
last=$(ops)
end
cut -d' ' -f2 /tmp/promised >/tmp/steps
sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p' /tmp/ops | paste -d' ' /tmp/steps - >/tmp/points
set +x
point() {
    rsdctl rewind --op $op --outcomes $number $drive &&
    if thorough; then fsck.rfs $drive; fi &&
    start &&
    /in/promise /mnt check $step seed=%(seed)d &&
    echo $op >/mnt/after &&
    mv /mnt/after /mnt/written &&
    sync &&
    umount /mnt &&
    if thorough; then
        fsck.rfs $drive && start && [ "$(cat /mnt/written)" = $op ] && umount /mnt
    fi
}
thorough() { [ $((number %% 4)) -eq 0 ]; }
for number in $(seq 0 %(last)d); do
    op=$((first + (last - first) * number / %(last)d))
    step=$(awk -v op=$op 'BEGIN { s = -1 } $2 <= op { s = $1 } END { print s }' /tmp/points)
    if ! point >/tmp/said 2>&1; then
        cat /tmp/said
        echo "FAILED: operation $op, outcomes $number, step $step promised"
        exit 1
    fi
done
echo "%(points)d points of $((last - first)) operations"
"""


@pytest.mark.parametrize("points", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_crash_points(run: Run, volume: Volume, tmp_path: Path, points: int) -> None:
    """At each: mount, check, write on, unmount; at each fourth fsck before and after."""
    values = {"steps": STEPS, "seed": 11, "last": points - 1, "points": points}
    result = run(
        script(volume, LOOP % values),
        system=volume.system,
        namespace={**volume.namespace, **SMALL, "op-log": str(tmp_path / "operations")},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert f"{points} points of" in result.output
