# SPDX-License-Identifier: GPL-2.0-or-later
"""The controller is reset, or removed and found again, while commands are in flight.

Linux sends again what a reset has ended, though the drive may have done it: an append may be on
the flash twice then, the first time at a place that nobody was told.
"""

import re

import pytest
from mounted import SMALL, Run, Volume, script
from test_scenarios_in_guest import WORK

pytestmark = pytest.mark.guest

RESETS = """
resets=0
while kill -0 $worker 2>/dev/null; do
    sleep 0.0$((resets % 7 + 1))
    echo 1 > /sys/class/nvme/nvme0/reset_controller
    resets=$((resets + 1))
done
wait $worker
echo resets: $resets
test $resets -ge 5
"""


# What the drive was given, and, of RFS, what it has sent.
WRITTEN = """
sync
rsdctl show --json | python3 -c 'import json, sys
print("given:", json.load(sys.stdin)["counters"]["host_write_pages"]["value"])'
sent=0
for pages in $(cat /sys/fs/rfs/nvme0n1/written_* 2>/dev/null); do sent=$((sent + pages)); done
echo sent: $sent
"""


def test_resets_under_writers(run: Run, volume: Volume) -> None:
    """Nobody sees an error, and all files are right, also after another mount."""
    result = run(
        script(
            volume,
            f"""
            start
            {WRITTEN}
            python3 /in/work.py write & worker=$!
            {RESETS}
            {WRITTEN}
            again
            python3 /in/work.py read
            end
            """,
        ),
        system=volume.system,
        namespace={**volume.namespace, **SMALL},
        inputs={"work.py": WORK},
    )
    assert "calls failed: 0" in result.output, result.output
    assert "files: 60 right, 0 wrong, 0 errors" in result.output, result.output
    given, sent = (
        [int(pages) for pages in re.findall(rf"^{what}: (\d+)\r?$", result.output, re.M)]
        for what in ("given", "sent")
    )
    twice = given[1] - given[0] - (sent[1] - sent[0])
    assert twice > 0 or volume.kind != "rfs", "no command was sent twice"


def test_resets_under_promises(run: Run, volume: Volume) -> None:
    """What each fsync, rename and attribute has promised holds, whatever was sent twice."""
    run(
        script(
            volume,
            f"""
            start
            /in/promise /mnt run 0 2000 seed=5 >/tmp/promises & worker=$!
            {RESETS}
            last=$(grep ^promised /tmp/promises | tail -n 1 | cut -d' ' -f2)
            /in/promise /mnt check $last seed=5
            again
            /in/promise /mnt check $last seed=5
            end
            """,
        ),
        system=volume.system,
        namespace={**volume.namespace, **SMALL},
    )


@pytest.mark.parametrize("after", ["0.05", "0.31", "0.77"])
def test_removed_and_found_again(run: Run, volume: Volume, after: str) -> None:
    """Pulled out under a writer: he gets an error; plugged in again, what was durable is there."""
    run(
        script(
            volume,
            f"""
            slot=$(readlink -f /sys/class/nvme/nvme0/device)
            start
            /in/promise /mnt run 0 100000 seed=6 >/tmp/promises & worker=$!
            sleep {after}
            echo 1 > $slot/remove
            wait $worker && exit 1
            cd /; umount /mnt
            echo 1 > /sys/bus/pci/rescan
            for i in $(seq 100); do test -b $drive && break; sleep 0.05; done
            last=$(grep ^promised /tmp/promises | tail -n 1 | cut -d' ' -f2)
            start
            /in/promise /mnt check $last seed=6
            rm -rf /mnt/d?
            /in/promise /mnt run 0 100 seed=7
            end
            """,
        ),
        system=volume.system,
        namespace={**volume.namespace, **SMALL},
    )
