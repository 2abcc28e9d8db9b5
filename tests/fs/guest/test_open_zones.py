# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives that allow few zones to be open, or partly filled, at a time."""

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest


@pytest.mark.parametrize(("most_open", "most_active"), [(3, 4), (5, 6)])
def test_few_open_zones(run: Run, volume: Volume, most_open: int, most_active: int) -> None:
    """Several writers at once, a file of half the drive overwritten, cleaning, remounts."""
    result = run(
        script(
            volume,
            f"""
            start
            head -c 3000000 /dev/urandom > /mnt/cold
            md5sum /mnt/cold > /tmp/sum
            for job in 1 2; do
                fio --minimal --name=job$job --directory=/mnt --rw=randwrite --bs=4k-32k \
                    --size=7m --loops=2 --randseed=$job --verify=crc32c --verify_fatal=1 \
                    --fsync=$((job * 40)) --norandommap & pids="$pids $!"
            done
            for i in $(seq 100); do echo $i >/mnt/name$i; mv /mnt/name$i /mnt/named$i; done
            for pid in $pids; do wait $pid; done
            again
            md5sum -c /tmp/sum
            test $(cat /mnt/named*[0-9] | wc -l) -eq 100
            end
            active=$(nvme zns report-zones $drive | grep -cE 'State: 0x[234]0') || true
            test $active -le {most_active}
            """,
        ),
        system=volume.system,
        namespace={
            **volume.namespace,
            **SMALL,
            "zoned.max_open": str(most_open),
            "zoned.max_active": str(most_active),
        },
    )
    # the kernel tells of each command that a drive refuses
    assert "I/O Cmd" not in result.console


def test_too_few(run: Run) -> None:
    """mkfs.rfs says how many there must be, and the drive is not touched; nor is it mounted."""
    result = run(
        """
        fails 1 mkfs.rfs /dev/nvme0n1
        fails 32 mount -t rfs /dev/nvme0n1 /mnt
        """,
        namespace={**SMALL, "zoned.max_open": "2", "zoned.max_active": "3"},
    )
    assert "2 zones may be open and 3 active" in result.output
    assert "3 and 4 are the least" in result.output
