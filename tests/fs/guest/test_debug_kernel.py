# SPDX-License-Identifier: GPL-2.0-or-later
"""What takes the debug kernel: does it report, is a report seen; suspending; swap files."""

import re

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("debug_kernel")]

# Faults of lkdtm, and what it is that reports them.
REPORTS = {
    "WARNING": "WARNING: CPU",
    "WRITE_AFTER_FREE": "BUG: KASAN",
    "ARRAY_BOUNDS": "UBSAN: array-index-out-of-bounds",
    "SPINLOCKUP": "lock held when returning to user space",
}


@pytest.mark.parametrize(("fault", "report"), REPORTS.items())
def test_report_fails_the_guest(run: Run, fault: str, report: str) -> None:
    """What these tests rest on: a kernel that reports a fault ends in a failed test."""
    with pytest.raises(AssertionError, match=report):
        run(f"echo {fault} >/sys/kernel/debug/provoke-crash/DIRECT || true")


def test_suspended(run: Run, volume: Volume) -> None:
    """Suspending stops the thread of the volume, with a writer at work, and it goes on after.

    What suspends keeps a CPU busy meanwhile: with another the thread could go on.
    """
    result = run(
        script(
            volume,
            """
            events=/sys/kernel/tracing
            mountpoint -q $events || mount -t tracefs tracefs $events
            modprobe rfs
            for event in rfs/rfs_victim rfs/rfs_checkpoint power/suspend_resume; do
                echo 1 >$events/events/$event/enable
            done
            start -o commit=1
            head -c 12000000 /dev/urandom >/mnt/cold
            md5sum /mnt/cold >/tmp/sum
            fio --minimal --name=hot --directory=/mnt --rw=randwrite --bs=4k --size=16m \
                --time_based --runtime=1000 --randseed=5 >/dev/null & writer=$!
            echo freezer >/sys/power/pm_test
            echo 2 >/sys/module/suspend/parameters/pm_test_delay
            for round in 1 2 3; do
                sleep 3
                echo freeze >/sys/power/state
                test "$(cat /sys/power/suspend_stats/success)" -eq $round
            done
            sleep 3
            kill $writer
            wait $writer || true
            cat $events/trace >/out/trace
            again
            md5sum -c /tmp/sum
            end
            """,
        ),
        system=volume.system,
        namespace={**volume.namespace, **SMALL},
        virtual_limit_s=0,
        deterministic=True,
        guest_speed=0,
        vcpus=2,
    )
    awake, victims = True, {True: 0, False: 0}
    for line in (result.out_dir / "trace").read_text().splitlines():
        if found := re.search(r"suspend_resume: (freeze|thaw)_processes\[\d+\] (begin|end)", line):
            awake = found.groups() != ("freeze", "end")
        elif "rfs_victim:" in line or "rfs_checkpoint:" in line:
            victims[awake] += 1
    assert victims[True] > 20
    assert victims[False] == 0


def test_no_swap_files(run: Run, volume: Volume) -> None:
    """Blocks move when they are written: nothing can be swapped to them."""
    run(
        script(
            volume,
            """
            start
            head -c 4000000 /dev/zero >/mnt/swap
            chmod 600 /mnt/swap
            mkswap /mnt/swap
            status=0
            swapon /mnt/swap 2>/tmp/said || status=$?
            cat /tmp/said
            test $status -ne 0
            grep "Invalid argument" /tmp/said
            end
            """,
        ),
        system=volume.system,
    )
