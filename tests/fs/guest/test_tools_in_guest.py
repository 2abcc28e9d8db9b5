# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.rfs, fsck.rfs and dump.rfs on drives, in a guest."""

import pytest
from mounted import Run

pytestmark = pytest.mark.guest


def test_a_volume_on_a_drive(run: Run) -> None:
    result = run(
        """
        mkfs.rfs -L disk /dev/nvme0n1
        fsck.rfs -v /dev/nvme0n1
        fsck -t rfs /dev/nvme0n1
        fails 1 mkfs.rfs /dev/nvme0n1
        dump.rfs /dev/nvme0n1
        """
    )
    assert "label disk\n" in result.output
    assert 'holds an RFS labelled "disk"; -f overwrites it' in result.output
    assert "zones 128 of 4096 blocks" in result.output


def test_a_mounted_volume_is_said_to_be(run: Run) -> None:
    """fsck.rfs -n looks at it all the same, and warns; nothing else is allowed."""
    result = run(
        """
        mkfs.rfs -q /dev/nvme0n1
        fsck.rfs -n /dev/nvme0n1 > /run/unmounted
        fails 1 grep mounted /run/unmounted
        mount -t rfs /dev/nvme0n1 /mnt
        fsck.rfs -n /dev/nvme0n1
        fails 8 fsck.rfs -p /dev/nvme0n1
        fails 1 mkfs.rfs -f /dev/nvme0n1
        umount /mnt
        """
    )
    assert "/dev/nvme0n1: it is mounted or otherwise in use" in result.output


def test_each_metadata_size(run: Run) -> None:
    """There are four formats: without, 16, 64 and 128 bytes."""
    run(
        """
        for lbaf in 0 1 3; do
            # It exits with 1, since Linux looks for no partitions on a drive with zones.
            nvme format /dev/nvme0n1 --lbaf=$lbaf --force >said 2>&1 ||
                grep "failed to re-read partition table" said
            sleep 1
            mkfs.rfs /dev/nvme0n1
            fsck.rfs /dev/nvme0n1
        done
        """
    )


def test_a_drive_without_zones(run: Run) -> None:
    run(
        """
        mkfs.ext4 -q /dev/nvme0n1
        for tool in mkfs.rfs dump.rfs; do
            fails 1 $tool /dev/nvme0n1
        done
        fails 1 mkfs.rfs -f /dev/nvme0n1
        fails 8 fsck.rfs /dev/nvme0n1
        e2fsck -fn /dev/nvme0n1
        """,
        system="page-ftl",
    )


def test_another_file_system(run: Run) -> None:
    """Is not taken for ours, and is overwritten with -f only, and only if it is not mounted."""
    run(
        """
        mkfs.btrfs -q -O zoned -d single -m single /dev/nvme0n1
        fails 8 fsck.rfs /dev/nvme0n1
        fails 1 dump.rfs /dev/nvme0n1
        fails 1 mkfs.rfs /dev/nvme0n1
        mount -t btrfs /dev/nvme0n1 /mnt
        fails 1 mkfs.rfs -f /dev/nvme0n1
        touch /mnt/there
        umount /mnt
        btrfs check /dev/nvme0n1
        mkfs.rfs -f /dev/nvme0n1
        fsck.rfs /dev/nvme0n1
        """,
        namespace={"oob": "0"},
    )
