# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS on what Linux puts on a drive: device mapper's linear and flakey targets."""

import pytest
from mounted import Run, Volume, script

pytestmark = pytest.mark.guest

DRIVE = {"channels": "2", "ways": "2", "blocks": "128"}
TARGETS = """
        sectors=$(cat /sys/block/nvme0n1/queue/chunk_sectors)
        zones=$(cat /sys/block/nvme0n1/queue/nr_zones)
        map() {
            dmsetup create $1 --table "$2"
            dmsetup mknodes
        }
        swap() {
            dmsetup suspend --nolockfs $1
            dmsetup load $1 --table "$2"
            dmsetup resume $1
        }
        used() { blkzone report $drive | grep -v "(em)" | wc -l; }
"""


def check(run: Run, volume: Volume, body: str, **options: object) -> str:
    if volume.system != "rsd":
        pytest.skip("zones are RFS's")
    return run(script(volume, TARGETS + body), system=volume.system, **options).output


def test_halves_of_a_drive(run: Run, volume: Volume) -> None:
    """Two volumes on one drive: commands to the drive would miss the zones of the second."""
    check(
        run,
        volume,
        """
        half=$((zones / 2 * sectors))
        for zone in $(seq 0 $((zones - 1))); do
            blkzone reset -o $((zone * sectors)) -l $sectors $drive
        done
        map low "0 $half linear $drive 0"
        map high "0 $half linear $drive $half"
        mkfs.rfs -q /dev/mapper/high
        before=$(used)
        test $before -gt 0
        test $(blkzone report -l $half $drive | grep -v "(em)" | wc -l) -eq 0
        mkfs.rfs -q /dev/mapper/low
        mkdir -p /run/low /run/high
        mount -t rfs /dev/mapper/low /run/low
        mount -t rfs /dev/mapper/high /run/high
        head -c 20M /dev/urandom > /run/low/file
        tac /run/low/file > /run/high/file
        tac /run/low/file > /run/sum
        umount /run/low /run/high
        fsck.rfs /dev/mapper/low
        fsck.rfs /dev/mapper/high
        mount -t rfs /dev/mapper/high /run/high
        cmp /run/high/file /run/sum
        umount /run/high
        """,
        namespace=DRIVE | {"oob": "0"},
    )


def test_dropped_writes(run: Run, volume: Volume) -> None:
    """What is written while the device drops writes is gone; what was there before is not."""
    check(
        run,
        volume,
        """
        all=$((zones * sectors))
        map flakey "0 $all flakey $drive 0 180 0"
        mkfs.rfs -q -f /dev/mapper/flakey
        mount -t rfs /dev/mapper/flakey /mnt
        head -c 5M /dev/urandom > /run/sum
        cp /run/sum /mnt/kept
        sync
        echo synced > /mnt/synced
        sync /mnt/synced
        swap flakey "0 $all flakey $drive 0 0 180 1 drop_writes"
        echo lost > /mnt/lost
        rm /mnt/kept
        cp /run/sum /mnt/lost2
        # it says so, or the volume is read-only by then
        sync || true
        umount /mnt
        swap flakey "0 $all flakey $drive 0 180 0"
        fsck.rfs /dev/mapper/flakey
        mount -t rfs /dev/mapper/flakey /mnt
        cmp /mnt/kept /run/sum
        grep synced /mnt/synced
        test "$(ls /mnt | tr '\\n' ' ')" = "kept synced "
        rm /mnt/kept
        umount /mnt
        fsck.rfs /dev/mapper/flakey
        """,
        namespace=DRIVE | {"oob": "0"},
    )


def test_page_metadata_through_linear_targets(run: Run, volume: Volume) -> None:
    """The tools send their commands to the namespace below, with its addresses."""
    check(
        run,
        volume,
        """
        third=$((zones / 3 * sectors))
        for zone in $(seq 0 $((zones - 1))); do
            blkzone reset -o $((zone * sectors)) -l $sectors $drive
        done
        # the second third and then the first, and the last
        map low "0 $third linear $drive $third
$third $third linear $drive 0"
        map high "0 $third linear $drive $((2 * third))"
        mkfs.rfs -q /dev/mapper/high
        test $(blkzone report -l $((2 * third)) $drive | grep -v "(em)" | wc -l) -eq 0
        mkfs.rfs -q /dev/mapper/low
        fails 1 mkfs.rfs /dev/mapper/low
        mkdir -p /run/low /run/high
        mount -t rfs /dev/mapper/low /run/low
        mount -t rfs /dev/mapper/high /run/high
        head -c 40M /dev/urandom > /run/low/file
        tac /run/low/file > /run/sum
        cp /run/sum /run/high/file
        umount /run/low /run/high
        fsck.rfs /dev/mapper/low
        fsck.rfs -p /dev/mapper/high
        dump.rfs /dev/mapper/high | grep "page metadata"
        mount -t rfs /dev/mapper/high /run/high
        cmp /run/high/file /run/sum
        umount /run/high
        """,
        namespace=DRIVE | {"oob": "64"},
    )
