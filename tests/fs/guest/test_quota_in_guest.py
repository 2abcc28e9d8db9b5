# SPDX-License-Identifier: GPL-2.0-or-later
"""Quotas of users and groups on a mounted volume."""

from pathlib import Path

import pytest
from mounted import Run, Volume, script
from test_power_loss import CUT

from rsd.machine import Outcome

pytestmark = pytest.mark.guest

TESTS = "usage blocks inodes grace commands"


def made(volume: Volume) -> str:
    """What a new volume needs before its usage can be counted; and mounting it so."""
    feature = "tune2fs -O quota $drive\n" if volume.check.startswith("e2fsck") else ""
    return f"{feature}quotas() {{ start -o usrquota,grpquota; }}\n"


def test_quota(run: Run, volume: Volume) -> None:
    """quotactl(2), limits, grace; they are there after a remount, and fsck counts the same."""
    timers = "timers" if volume.system == "rsd" else ""  # others refuse those of XFS
    run(
        script(
            volume,
            f"""
            {made(volume)}
            quotas
            grep usrquota,grpquota /proc/mounts
            /in/quota /mnt {TESTS} {timers}
            mkdir /mnt/again
            end
            quotas
            mount -o remount,ro /mnt
            mount -o remount,rw /mnt
            grep usrquota,grpquota /proc/mounts
            /in/quota /mnt/again {TESTS}
            end
            """,
        ),
        system=volume.system,
    )


def test_counted_anew(run: Run, volume: Volume) -> None:
    """A volume that was used without the options; they cannot change while it is mounted."""
    if volume.system != "rsd":
        pytest.skip("others need quotacheck(8) for it")
    run(
        script(
            volume,
            f"""
            {made(volume)}
            start
            fails 1 /in/quota /mnt commands
            fails 32 mount -o remount,usrquota /mnt
            mkdir /mnt/one
            end
            quotas
            /in/quota /mnt/one before
            end
            start
            head -c 1000000 /dev/zero > /mnt/one/before/other
            end
            start -o usrquota
            mkdir /mnt/one/usr
            umount /mnt
            quotas
            /in/quota /mnt/one after
            end
            """,
        ),
        system=volume.system,
    )


def test_not_writable(run: Run, volume: Volume) -> None:
    """Frozen, mounted for reading, shut down: limits change later, not, or with an error."""
    if volume.system != "rsd":
        pytest.skip("others answer otherwise once they are shut down")
    run(
        script(
            volume,
            f"""
            {made(volume)}
            quotas
            /in/quota /mnt frozen read_only shut_down
            cd /; umount /mnt
            quotas
            /in/quota /mnt was_shut_down
            end
            """,
        ),
        system=volume.system,
    )


def test_power_cut(run: Run, volume: Volume, tmp_path: Path) -> None:
    """Usage is what the files have, a limit that was followed by an fsync is kept."""
    options = {
        "system": volume.system,
        "namespace": volume.namespace,
        "media": tmp_path / "media",
    }
    body = f"{made(volume)}quotas\n/in/quota /mnt before\n{CUT}"
    run(script(volume, body), outcome=Outcome.LOST, **options)
    body = f"""
        {made(volume).splitlines()[-1]}
        {volume.check} || test $? -le 1
        quotas
        /in/quota /mnt after
        end
    """
    run(script(volume, body, make=False), **options)
