# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that waits for room can be killed, also while the drive answers nothing."""

import pytest
from mounted import Run, Volume, script

pytestmark = pytest.mark.guest

DRIVE = {"channels": "2", "ways": "2", "blocks": "128", "oob": "0"}

# It makes pages dirty until the volume has room for no more of them, and sends none itself.
WAITER = """
import mmap, os
file = os.open("/mnt/file", os.O_RDWR | os.O_CREAT)
os.truncate(file, 1 << 32)
pages = mmap.mmap(file, 1 << 32)
for at in range(0, 1 << 32, 4096): pages[at] = 1
"""


def test_waiter_is_killed(run: Run, volume: Volume) -> None:
    if volume.system != "rsd":
        pytest.skip("others wait elsewhere")
    run(
        script(
            volume,
            f"""
            # The kernel's own bound for dirty pages is not to be the first.
            echo 90 >/proc/sys/vm/dirty_ratio
            echo 80 >/proc/sys/vm/dirty_background_ratio
            sectors=$(blockdev --getsz $drive)
            dmsetup create late --table "0 $sectors linear $drive 0"
            dmsetup mknodes
            mount -t rfs /dev/mapper/late /mnt
            dmsetup suspend --nolockfs --noflush late
            trap "dmsetup resume late" EXIT
            python3 -c '{WAITER}' & waiter=$!
            for second in $(seq 60); do
                sleep 1
                if grep rfsm_wait_room /proc/$waiter/wchan; then break; fi
            done
            grep rfsm_wait_room /proc/$waiter/wchan
            kill -9 $waiter
            sleep 1
            if grep -E "^State:\\s*[RSD]" /proc/$waiter/status; then exit 98; fi
            dmsetup resume late
            fails 137 wait $waiter
            rm /mnt/file
            cd /; umount /mnt
            dmsetup remove late
            trap "" EXIT
            {volume.check}
            """,
        ),
        system=volume.system,
        namespace=DRIVE,
    )
