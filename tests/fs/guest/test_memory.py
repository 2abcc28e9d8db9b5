# SPDX-License-Identifier: GPL-2.0-or-later
"""Little memory, and memory that is refused."""

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

# Of failslab and fail_page_alloc: all kinds, and nothing in the log for each that is made to fail.
# Not those of kmemleak, which come with each other one: what calls it is all in one place.
FAILING = """
cd /sys/kernel/debug
# up to what comes after the last of these; they are sorted by address
range=$(grep -E -A 1 ' kmemleak_(alloc|alloc_percpu|vmalloc|free)$' /proc/kallsyms)
for way in failslab fail_page_alloc; do
    echo N >$way/ignore-gfp-wait
    echo 0 >$way/verbose
    echo 0x$(echo "$range" | head -n 1 | cut -d' ' -f1) >$way/reject-start
    echo 0x$(echo "$range" | tail -n 1 | cut -d' ' -f1) >$way/reject-end
done
echo N >fail_page_alloc/ignore-gfp-highmem
echo 0 >fail_page_alloc/min-order
cd /
"""


@pytest.mark.usefixtures("debug_kernel")
def test_each_allocation_fails(run: Run, volume: Volume) -> None:
    """In each operation, one after the other: an error, or it is done."""
    run(
        script(volume, f"{FAILING}\nstart\n/in/failing $drive /mnt\nend"),
        system=volume.system,
        refused=True,
        namespace={**volume.namespace, **SMALL},
        virtual_limit_s=0,
    )


# Of blocks of metadata, of the log and of summaries, to who does not wait for them
NOT_WAITED_FOR = """
cd /sys/kernel/debug/failslab
echo Y >ignore-gfp-wait
echo Y >cache-filter
echo 1 >/sys/kernel/slab/rfs_buf/failslab
echo 0 >verbose
echo 1 >interval
echo 1000000 >times
echo 100 >probability
cd /
"""


@pytest.mark.usefixtures("debug_kernel")
def test_what_has_begun_takes_what_is_kept(run: Run, volume: Volume) -> None:
    """No block is had without a wait, and nobody waits with the volume locked.

    Linux warns if what is kept is not enough.
    """
    run(
        script(
            volume,
            f"""
            start -o commit=1
            {NOT_WAITED_FOR}
            mkdir /mnt/names
            for i in $(seq 300); do
                echo $i >/mnt/names/$i
            done
            fio --minimal --name=hot --directory=/mnt --rw=randwrite --bs=4k --size=12m --loops=2 \\
                --randseed=5 --verify=crc32c --verify_fatal=1 --norandommap --fsync=32
            echo 2 >/proc/sys/vm/drop_caches
            rm -r /mnt/names
            test $(cat /sys/kernel/debug/failslab/times) -lt 999900
            echo 0 >/sys/kernel/debug/failslab/probability
            again
            end
            """,
        ),
        system=volume.system,
        refused=True,
        namespace={**volume.namespace, **SMALL},
        virtual_limit_s=0,
    )


@pytest.mark.usefixtures("debug_kernel")
@pytest.mark.parametrize("interval", [2, 7])
def test_allocations_of_threads_fail(run: Run, volume: Volume, interval: int) -> None:
    """Each so many-th of the volume's thread and of those that write back and complete."""
    check = f"/in/promise /mnt/promise check $last seed={interval}"
    run(
        script(
            volume,
            f"""
            {FAILING}
            start -o commit=1
            for way in failslab fail_page_alloc; do
                cd /sys/kernel/debug/$way
                echo Y >task-filter
                echo {interval} >interval
                echo 1000000 >times
                echo 100 >probability
            done
            cd /
            for thread in $(pgrep rfs/) $(pgrep kworker) $(pgrep kswapd); do
                echo 1 >/proc/$thread/make-it-fail || true
            done
            mkdir /mnt/promise
            /in/promise /mnt/promise run 0 300 seed={interval} >/tmp/promised
            last=$(tail -1 /tmp/promised | cut -d" " -f2)
            fio --minimal --name=hot --directory=/mnt --rw=randwrite --bs=4k --size=12m --loops=2 \\
                --randseed=5 --verify=crc32c --verify_fatal=1 --norandommap
            for way in failslab fail_page_alloc; do
                echo 0 >/sys/kernel/debug/$way/probability
                test $(cat /sys/kernel/debug/$way/times) -lt 1000000
            done
            {check}
            again
            {check}
            end
            """,
        ),
        system=volume.system,
        refused=True,
        namespace={**volume.namespace, **SMALL},
        virtual_limit_s=0,
    )


# The debug kernel does not boot with so little: most of what it has is taken away from it.
MEMORY_MIB = {"release": 128, "debug": 1024}


def test_little_memory(run: Run, volume: Volume, flavour: str) -> None:
    """Much more is written than there is memory, buffered, mapped, and in many files."""
    run(
        script(
            volume,
            """
            free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
            if test $free -gt 120; then
                mkdir /tmp/taken
                mount -t tmpfs -o size=100% none /tmp/taken
                head -c $((free - 120))M /dev/zero >/tmp/taken/memory
            fi
            start
            jobs="--name=mapped --ioengine=mmap --rw=randwrite --size=48m --bs=4k"
            jobs="$jobs --name=buffered --ioengine=psync --rw=write --size=96m --bs=64k"
            jobs="$jobs --name=here-and-there --ioengine=psync --rw=randwrite --size=32m --bs=8k"
            verify="--minimal --directory=/mnt --randseed=9 --verify=crc32c --verify_fatal=1"
            fio $verify --do_verify=0 $jobs
            echo 3 >/proc/sys/vm/drop_caches
            fio $verify --verify_only=1 $jobs
            grep -e MemTotal -e MemAvailable /proc/meminfo
            end
            """,
        ),
        system=volume.system,
        memory_mib=MEMORY_MIB[flavour],
        inputs=None,
        virtual_limit_s=0,
    )
