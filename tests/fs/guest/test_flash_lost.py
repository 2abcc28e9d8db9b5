# SPDX-License-Identifier: GPL-2.0-or-later
"""Hybrid volumes with a replica of their metadata: flash is lost, and made anew from the disk."""

import re

import pytest
from mounted import SMALL, Run, script
from test_compact import VOLATILE
from test_hybrid import DISK, HELPERS, HYBRID, hybrid

from rsd.machine import Beside

pytestmark = pytest.mark.guest


def test_flash_is_lost(run: Run) -> None:
    """What was home is there on an empty drive, and what was not is named."""
    output = hybrid(
        run,
        """
        mkfs.rfs -q -f --slow $slow --replica $drive
        start -o commit=2
        mkdir -p /mnt/a/b
        for i in $(seq 60); do head -c 50000 /dev/urandom >/mnt/a/b/$i; done
        head -c 70M /dev/urandom >/mnt/large
        ln /mnt/large /mnt/a/link
        ln -s b/1 /mnt/a/symlink
        setfattr -n user.what -v kept /mnt/large
        sync
        # it is made while the volume is in use, and when nobody is at work all goes home
        for i in $(seq 20); do sleep 1; done
        test $(counter replicas) -ge 1
        test $(counter replica_blocks) -gt 10
        test $(counter replicas_dropped) -eq 0
        fsck.rfs -n --replica --slow $slow $drive || test $? = 4
        (cd /mnt; find . -type f | sort | xargs md5sum) >/tmp/sums
        end
        dump.rfs --slow $slow $drive | grep 'replica of the metadata of check-point'
        fails 4 fsck.rfs -n --replica --slow $slow $drive >/tmp/lost
        cat /tmp/lost
        fails 8 fsck.rfs -y --replica --slow $slow $drive
        blkzone reset $drive
        fails 8 fsck.rfs -n --slow $slow $drive
        fails 1 fsck.rfs -y --replica --slow $slow $drive >/tmp/anew
        grep "$drive: made anew" /tmp/anew
        grep lost /tmp/anew | cmp - /tmp/lost
        fsck.rfs -n --slow $slow $drive
        start
        test "$(readlink /mnt/a/symlink)" = b/1
        test "$(getfattr --only-values --absolute-names -n user.what /mnt/a/link)" = kept
        (cd /mnt; md5sum -c /tmp/sums 2>/dev/null | sed -n 's/^\\.\\(.*\\): FAILED$/\\1/p') \\
            | sort >/tmp/differ
        sed -n 's/: bytes.*are lost$//p' /tmp/lost | sort -u >/tmp/named
        # a file with two names is named once
        sed -i 's,^/a/link$,/large,' /tmp/differ /tmp/named
        sort -u /tmp/differ >/tmp/differ-once
        sort -u /tmp/named | diff /tmp/differ-once -
        head -c 60M /dev/urandom >/mnt/more
        md5sum /mnt/more >/tmp/more
        again
        md5sum -c /tmp/more
        end
        """,
    )
    found = re.search(r"(\d+) files are whole, (\d+) have lost (\d+) blocks, 0 files", output)
    assert found
    assert int(found[1]) + int(found[2]) == 61


def test_replica_that_fails(run: Run) -> None:
    """Flushes and writes of the replica fail: the volume is written, and it is made again later."""
    output = hybrid(
        run,
        """
        sectors=$(blockdev --getsz $slow)
        last=$((sectors - 8))
        good="0 $last linear $slow 0"
        dmsetup create slow --table "$good"
        dmsetup mknodes
        swap() {
            dmsetup suspend --nolockfs slow; dmsetup load slow --table "$1"; dmsetup resume slow
        }
        others() {
            for i in 1 2 3; do mkdir /mnt/d; sync; rmdir /mnt/d; sleep 2; done
        }
        disk=$slow
        slow=/dev/mapper/slow
        mkfs.rfs -q -f --slow $slow --replica $drive
        start -o commit=1
        head -c 5M /dev/urandom >/mnt/file
        md5sum /mnt/file >/tmp/sum
        # all of it goes home, so that later check-points flush for the replica alone
        for i in $(seq 20); do sleep 1; done
        sync
        test $(counter replicas) -ge 1
        test $(counter replicas_failed) -eq 0
        # flushes fail, and no write: the volume does not have the last sectors
        swap "$(printf '%s\n' "$good" "$last 8 flakey $disk $last 0 180 1 error_writes")"
        others
        said "flush: error"
        test $(counter replicas_failed) -ge 2
        flushes=$(counter replicas_failed)
        # writes fail where the replica is
        blocks=$((last / 8))
        first=$(((blocks - blocks / 32) * 8))
        swap "$(printf '%s\n' "0 $first linear $disk 0" "$first $((last - first)) error")"
        others
        test $(counter replicas_failed) -ge $((flushes + 2))
        test $(counter home_errors) -gt 0
        # that is said once, and the volume goes on
        test $(said "no replica of the metadata could be made" | wc -l) -eq 1
        fails 1 said ", read-only"
        mkdir /mnt/kept
        md5sum -c /tmp/sum
        # its states of blocks change, and then flash is lost: the volume was newer
        head -c 100k /dev/urandom | dd of=/mnt/file bs=100k conv=notrunc,fsync
        sync
        md5sum /mnt/file >/tmp/sum
        end
        swap "$good"
        fsck.rfs -n --replica --slow $slow $drive || test $? = 4
        mount -t rfs -o slow=$slow,commit=1 $drive /mnt
        md5sum -c /tmp/sum
        others
        test $(counter replicas_failed) -eq 0
        test -d /mnt/kept
        swap "$(printf '%s\n' "0 $first linear $disk 0" "$first $((last - first)) error")"
        others
        swap "$good"
        for i in $(seq 10); do sleep 1; done
        others
        said "a replica of the metadata was made again"
        end
        echo now current
        fsck.rfs -n --replica --slow $slow $drive || test $? = 4
        """,
    )
    before, after = re.split(r"^now current$", output, flags=re.M)
    newer = "the volume was newer: check-point"
    assert re.search(rf"^{newer} \d+ was begun after this replica", before, re.M)
    assert re.search(r"^replica of check-point", after, re.M)
    assert newer not in after


def test_large_files_bypass(run: Run) -> None:
    """With bypass=8, what files of 8 MiB write goes to the slow device, other files as ever."""
    hybrid(
        run,
        """
        start -o bypass=8
        grep 'bypass=8' /proc/mounts
        dd if=/dev/urandom of=/mnt/small bs=1M count=7 conv=fsync
        test $(counter home_bypassed) -eq 0
        written=$(counter written_data)
        dd if=/dev/urandom of=/mnt/large bs=1M count=60 conv=fsync
        bypassed=$(counter home_bypassed)
        # what was written back before it was so large went to flash
        test $bypassed -gt 10000
        test $((bypassed + $(counter written_data) - written)) -eq 15360
        # a check-point is what makes it durable, also when it was cut since, and left memory
        before=$(counter checkpoints_sync)
        dd if=/dev/urandom of=/mnt/large bs=4k seek=70 count=1 conv=notrunc,fsync
        test $(counter checkpoints_sync) -eq $((before + 1))
        dd if=/dev/urandom of=/mnt/large bs=4k seek=71 count=1 conv=notrunc
        sync -f /mnt/small
        dd if=/dev/urandom of=/mnt/large bs=4k seek=72 count=1 oflag=direct conv=notrunc
        truncate -s 1M /mnt/large
        forget
        dd if=/dev/null of=/mnt/large conv=notrunc,fsync oflag=append
        test $(counter checkpoints_sync) -eq $((before + 3))
        md5sum /mnt/small /mnt/large >/tmp/sums
        # none do any more
        mount -o remount,bypass=0 /mnt
        fails 1 grep bypass= /proc/mounts
        bypassed=$(counter home_bypassed)
        dd if=/dev/urandom of=/mnt/other bs=1M count=20 conv=fsync
        test $(counter home_bypassed) -eq $bypassed
        again
        md5sum -c /tmp/sums
        end
        # a volume without a slow device
        mkfs.rfs -q -f $drive
        fails 32 mount -t rfs -o bypass=8 $drive /mnt
        """,
    )


# An atomic write that may be lost, then bytes beside it go home: not before it is durable
SETTLED = """
start
mkdir /mnt/bulk
setfattr -n rfs.section -v slow /mnt/bulk
cat >/tmp/settled.py <<'END'
import json, os, subprocess, time
def flushes():
    said = subprocess.run(["rsdctl", "show", "--json", "/dev/nvme0n1"], capture_output=True)
    return json.loads(said.stdout)["counters"]["flush_cmds"]["value"]
def bypassed():
    return int(open("/sys/fs/rfs/nvme0n1/home_bypassed").read())
fd = os.open("/mnt/bulk/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"a" * 20 * 4096)
os.fsync(fd)
for atomic in (0, 1):
    os.sync()
    if atomic:
        assert os.pwritev(fd, [b"b" * 8192], 4096, 0x40) == 8192
    before, homes = flushes(), bypassed()
    os.pwrite(fd, b"c" * 100, 4096 + 50)
    # which has it written back, and waits for nothing
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for _ in range(100):
        if bypassed() > homes:
            break
        time.sleep(0.01)
    print("homes", bypassed() - homes, "flushes", flushes() - before)
END
python3 /tmp/settled.py
end
"""


def test_atomic_writes_are_settled_before_bytes_go_home(run: Run) -> None:
    """What goes home may come back as a fill, which must not have bytes of a write that is lost."""
    beside = Beside("barracuda-320", None, DISK)
    output = run(
        HELPERS + script(HYBRID, SETTLED), namespace={**SMALL, **VOLATILE}, beside=beside
    ).output
    assert re.findall(r"^homes (\d+) flushes (\d+)$", output, re.M) == [("1", "0"), ("1", "1")]
