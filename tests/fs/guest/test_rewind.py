# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts in the kernel: the drive is rewound to a point of its past, mounted and checked."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

from rsd.crash.guest import VISITING
from rsd.machine import GuestResult

pytestmark = pytest.mark.guest

POINTS = Path(__file__).with_name("points.py")
STORM = Path(__file__).with_name("storm.py")

# One workload is recorded, with how far the drive's log of operations was at each promise. What
# fills the volume before is in units of 64 KiB.
RECORD = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
%(trace)s
start %(mount)s
test %(fill)d -eq 0 || dd if=/dev/zero of=/mnt/fill bs=64k count=%(fill)d
sync
first=$(ops)
/in/promise /mnt run 0 %(steps)d seed=%(seed)d drive=$drive >/tmp/promised
last=$(ops)
end
test ! -e $events || cp $events/trace /out/trace
for op in $(seq $first 100 $last); do rsdctl oplog --list $op $drive; done >/out/operations
python3 /in/points.py $drive %(kind)s '%(options)s' %(points)d %(seed)d $first $last /tmp/promised \
    /in/promise %(check)s
"""

# When zones were cleaned and check-points written, by the clock of the drive's log: in virtual
# time the TSC shows the same nanoseconds.
TRACE = """
events=/sys/kernel/tracing
modprobe rfs
mountpoint -q $events || mount -t tracefs none $events
echo x86-tsc >$events/trace_clock
echo 1 >$events/events/rfs/rfs_victim/enable
echo 1 >$events/events/rfs/rfs_checkpoint/enable
"""


def in_mid_air(result: GuestResult) -> tuple[int, int]:
    """How many points are while a zone is cleaned, up to its check-point; in a check-point."""
    text = (result.out_dir / "operations").read_text()
    times = {int(op): int(time) for op, time in re.findall(r"^ *(\d+) +(\d+) ns", text, re.M)}
    points = [times[int(op)] for op in (result.out_dir / "points").read_text().split()]
    cleaning: list[tuple[int, int]] = []
    writing: list[tuple[int, int]] = []
    began = None
    for line in (result.out_dir / "trace").read_text().splitlines():
        if found := re.search(r" (\d+): rfs_victim:", line):
            began = began or int(found[1])
        elif found := re.search(r" (\d+): rfs_checkpoint:.* ns (\d+)", line):
            end = int(found[1])
            writing.append((end - int(found[2]), end))
            if began:
                cleaning.append((began, end))
            began = None
    within = [
        sum(any(a < t < b for a, b in spans) for t in points) for spans in (cleaning, writing)
    ]
    return within[0], within[1]


# A drive of which little is left: 31 zones of 256 KiB
TINY = {**SMALL, "blocks": "31", "pages": "16"}


def many(points: int, options: str) -> object:
    """With --long only."""
    values = (points, options, 700, 18, TINY)
    return pytest.param(*values, marks=pytest.mark.long, id=f"{points}-{options}".rstrip("-"))


@pytest.mark.parametrize(
    ("points", "options", "steps", "fill", "drive"),
    [
        pytest.param(100, "", 250, 0, SMALL, id="100"),
        pytest.param(100, "", 400, 24, TINY, id="100-cleaned"),
        many(2000, ""),
        many(1667, "gc=greedy"),
        many(1667, "gc=cost-benefit,groups=2"),
        many(1667, "gc=cost-hotness,groups=6,quantize=equi-height"),
    ],
)
def test_crash_points(
    run: Run,
    volume: Volume,
    flavour: str,
    checkers: dict[str, Path],
    tmp_path: Path,
    points: int,
    options: str,
    steps: int,
    fill: int,
    drive: Mapping[str, str],
) -> None:
    """At each: mount, check, write on, unmount; at each fourth fsck before and after."""
    if options and volume.system != "rsd":
        pytest.skip("options of RFS")
    values = {
        "steps": steps,
        "seed": 12 if steps > 300 else 11,
        "fill": fill,
        "points": points,
        "kind": volume.kind,
        "options": ",".join([*volume.options, *filter(None, [options])]),
        "mount": f"-o {options}" if options else "",
        "check": volume.check,
        "trace": TRACE if volume.system == "rsd" else "events=/none",
    }
    result = run(
        script(volume, RECORD % values),
        system=volume.system,
        namespace={**volume.namespace, **drive, "op-log": str(tmp_path / "operations")},
        inputs={**checkers, POINTS.name: POINTS, **VISITING},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    print(result.output.splitlines()[-1])
    assert f"{points} points of" in result.output
    if volume.system == "rsd" and flavour == "release":
        cleaning, writing = in_mid_air(result)
        print(f"{cleaning} while zones were cleaned, {writing} within check-points")
        assert writing > points // 20
        assert cleaning > points // 50 or drive is SMALL
    seconds = result.qemu_cpu_s
    print(f"{points} points: {points / seconds:.1f} a CPU second, QEMU ran for {seconds:.0f} s")


@pytest.mark.parametrize("points", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_renames_at_once(run: Run, volume: Volume, tmp_path: Path, points: int) -> None:
    """Renames and exchanges of processes that go on at once: at each point all have one name."""
    if volume.system != "rsd":
        pytest.skip("checks with fsck.rfs")
    result = run(
        script(volume, f"start -o commit=1\npython3 /in/storm.py $drive {points} 5"),
        namespace={**SMALL, "op-log": str(tmp_path / "operations")},
        inputs={STORM.name: STORM, **VISITING},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    assert (said := re.search(rf"^{points} points of .*", result.output, re.M))
    print(f"{said[0]}, QEMU ran for {result.qemu_cpu_s:.0f} s")
