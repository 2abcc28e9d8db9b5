# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of databases share: one is at work, and the drive is rewound to points of that."""

from collections.abc import Mapping
from pathlib import Path

from mounted import SMALL, Run, Volume, script

from rsd.crash.guest import VISITING

HERE = Path(__file__).parent
PROGRAMS = ("points.py", "innodb.py", "sqlite.py", "postgres.py")
IN_THE_GUEST = {**{name: HERE / name for name in PROGRAMS}, **VISITING}
DRIVE = {**SMALL, "blocks": "192"}

OPS = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start -o commit=1
cd /mnt
"""

CUT = """
last=$(ops)
test $(cat /sys/fs/rfs/*/atomic_writes) -gt %(least)d
end
python3 /in/points.py $drive rfs '' %(points)d 1 $first $last /tmp/promised /in/%(program)s \\
    fsck.rfs $drive
"""


def cut(run: Run, volume: Volume, body: str, inputs: Mapping[str, Path], log: Path) -> None:
    """The body on a drive whose operations are logged."""
    result = run(
        script(volume, body),
        namespace={**volume.namespace, **DRIVE, "op-log": str(log)},
        inputs={**IN_THE_GUEST, **inputs},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    print(result.output.splitlines()[-1])
    assert " points of" in result.output
