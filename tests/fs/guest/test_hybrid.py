# SPDX-License-Identifier: GPL-2.0-or-later
"""Hybrid volumes: a small drive and a disk ten times as large, of which the volume has the room."""

import re
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script
from test_other_formats import INCOMPAT, change_supers
from test_power_loss import CUT, promised

from rsd.crash.guest import VISITING
from rsd.machine import Beside, Outcome

pytestmark = pytest.mark.guest

TWO_DRIVES = [Path(__file__).with_name(name) for name in ("two_drives.py", "points.py")]
# 443 MiB; the drive has 48.
DISK = {"blocks": "100"}
HYBRID = Volume(
    "rsd",
    "mkfs.rfs -q -f --slow $slow $drive",
    "mount -t rfs -o slow=$slow",
    "fsck.rfs -n --slow $slow $drive",
)
HELPERS = """
slow=/dev/nvme1n1
counter() { cat /sys/fs/rfs/nvme0n1/$1; }
forget() { echo 3 >/proc/sys/vm/drop_caches; }
said() { dmesg | grep -F "$1"; }
"""


def hybrid(run: Run, body: str, **options: object) -> str:
    """`body` on a volume of both devices; returns what it prints."""
    make = bool(options.pop("make", True))
    media = options.pop("slow_media", None)
    beside = Beside("barracuda-320", Path(str(media)) if media else None, DISK)
    text = HELPERS + script(HYBRID, body, make=make)
    return run(text, namespace=SMALL, beside=beside, **options).output


def test_fills_the_disk(run: Run) -> None:
    """ENOSPC comes with the disk's last block, and all of it can be read, there and on flash."""
    output = hybrid(
        run,
        """
        start
        rooms=$(stat -f -c '%b %f %a' /mnt)
        fails 1 dd if=/dev/urandom of=/mnt/all bs=1M 2>/tmp/said
        grep 'No space left' /tmp/said
        sync
        echo room $rooms now $(stat -f -c '%f %a' /mnt) size $(stat -c %s /mnt/all)
        test $(counter home_evictions) -gt 90000
        test $(counter written_copies) -eq 0
        md5sum /mnt/all >/tmp/sum
        # what is there can be written again, names be made
        dd if=/mnt/all of=/mnt/all bs=64k count=200 skip=1000 seek=1000 conv=notrunc,fsync
        mkdir /mnt/d
        fails 1 dd if=/dev/zero of=/mnt/d/more bs=4k count=1
        rm /mnt/d/more
        again
        forget
        md5sum -c /tmp/sum
        test $(counter home_reads) -gt 90000
        test $(counter flash_reads) -gt 5000
        test $(counter home_errors) -eq 0
        # the same without the page cache
        forget
        before=$(counter home_reads)
        dd if=/mnt/all bs=1M iflag=direct | md5sum | cut -c1-32 >/tmp/direct
        grep -f /tmp/direct /tmp/sum
        test $(counter home_reads) -gt $((before + 90000))
        # and what is given up is there for others after a check-point
        truncate -s 100M /mnt/all
        sync
        head -c 100M /mnt/all | md5sum >/tmp/head
        dd if=/dev/urandom of=/mnt/other bs=1M count=200
        sync
        md5sum /mnt/other >/tmp/sum
        again
        md5sum -c /tmp/sum
        head -c 100M /mnt/all | md5sum | cmp - /tmp/head
        end
        """,
    )
    found = re.search(r"room (\d+) (\d+) (\d+) now (\d+) (\d+) size (\d+)", output)
    assert found
    blocks, free, available, left, available_then, size = map(int, found.groups())
    assert blocks == free == available > 110000
    assert left == available_then == 0
    assert size == blocks * 4096


def test_what_goes_home_meanwhile(run: Run) -> None:
    """Others change, cut, delete and read files while blocks of these leave flash."""
    hybrid(
        run,
        """
        start
        fill() {
            while test -e /mnt/go; do
                head -c 30M /dev/urandom >/mnt/cold
                sync /mnt/cold
            done
        }
        touch /mnt/go
        fill & filler=$!
        for round in 1 2 3; do
            for file in 1 2 3; do
                /in/fsx /mnt/f$file ops=700 seed=$round$file size=$((file * 3000000)) \
                    keep=/tmp/model$file
            done
            forget
        done
        rm /mnt/go
        wait $filler
        # flash is full, and the disk is not
        /in/posix /mnt
        test $(counter home_writes) -gt 3000
        test $(counter home_reads) -gt 0
        again
        for file in 1 2 3; do
            /in/fsx /mnt/f$file ops=100 seed=9 size=$((file * 3000000)) keep=/tmp/model$file
        done
        # in idle time, what flash has goes home and stays
        rm /mnt/cold
        sync
        sleep 5
        writes=$(counter home_writes)
        head -c 8M /dev/urandom >/mnt/warm
        sync
        sleep 20
        test $(counter home_writes) -gt $((writes + 1000))
        reads=$(counter home_reads)
        forget
        cat /mnt/warm >/dev/null
        test $(counter home_reads) -eq $reads
        end
        """,
    )


# Blocks are at home alone, on both devices, and on flash alone; all of it is durable.
SPREAD = """
        start
        head -c 80M /dev/urandom >/mnt/cold
        sync
        head -c 4M /dev/urandom >/mnt/hot
        sync
        md5sum /mnt/hot >/tmp/hot
        md5sum /mnt/cold >/tmp/cold
        forget
"""


def test_fills(run: Run) -> None:
    """What is read at random comes to flash; what is read in order or directly does not."""
    hybrid(
        run,
        f"""
        {SPREAD}
        some() {{
            fio --name=some --filename=/mnt/cold --rw=randread --bs=4k --size=40m \
                --number_ios=600 --randseed=3 $* >/dev/null
            sleep 2     # not long enough to be idle
        }}
        cat /mnt/cold >/dev/null
        forget
        some --direct=1
        test $(counter home_fills) -eq 0
        reads=$(counter home_reads)
        some
        first=$(($(counter home_reads) - reads))
        fills=$(counter home_fills)
        test $first -ge 500
        test $fills -ge $((first * 9 / 10))
        forget
        reads=$(counter home_reads)
        some
        test $(counter home_reads) -le $((reads + first - fills))
        # a check-point, or the updating window, leads to them
        again
        md5sum -c /tmp/cold
        forget
        some
        dd if=/dev/urandom of=/mnt/cold bs=4k count=500 seek=3 conv=notrunc
        truncate -s 30000001 /mnt/cold
        md5sum /mnt/cold >/tmp/cold
        again
        md5sum -c /tmp/cold
        end
        """,
    )


def test_bypass(run: Run) -> None:
    """Files of a section go to the slow device without passing flash, and are made so anew."""
    output = hybrid(
        run,
        """
        start
        section() { getfattr --only-values --absolute-names -n rfs.section $1; echo; }
        mkdir /mnt/bulk
        test "$(section /mnt/bulk)" = log
        setfattr -n rfs.section -v slow /mnt/bulk
        for wrong in fast slowly "" slo; do
            fails 1 setfattr -n rfs.section -v "$wrong" /mnt/bulk 2>/dev/null
        done
        fails 1 setfattr -n rfs.other -v slow /mnt/bulk 2>/dev/null
        ln -s x /mnt/link
        fails 1 setfattr -h -n rfs.section -v slow /mnt/link 2>/dev/null
        mkdir /mnt/bulk/below
        touch /mnt/bulk/below/file
        chattr +d /mnt/bulk/below/file
        for made in /mnt/bulk /mnt/bulk/below /mnt/bulk/below/file; do
            test "$(section $made)" = slow
        done
        # not by others, whatever they may write
        mkdir -m 1777 /mnt/any
        touch /mnt/any/root /mnt/any/user
        chmod 666 /mnt/any/root
        chown 1000 /mnt/any/user
        as() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
        for whose in /mnt/any /mnt/any/root; do
            fails 1 as setfattr -n rfs.section -v slow $whose 2>/tmp/said
            grep 'Operation not permitted' /tmp/said
            fails 1 as setfattr -x rfs.section $whose 2>/tmp/said
            grep 'Operation not permitted' /tmp/said
            test "$(section $whose)" = log
        done
        as setfattr -n rfs.section -v slow /mnt/any/user
        test "$(section /mnt/any/user)" = slow
        sync
        # more than flash has: it is not asked for a page of data
        written=$(counter written_data)
        dd if=/dev/urandom of=/mnt/bulk/all bs=1M count=100 conv=fsync
        test $(counter written_data) -eq $written
        test $(counter home_bypassed) -eq 25600
        test $(counter home_evictions) -eq 0
        # a check-point is what makes it durable
        before=$(counter checkpoints_sync)
        dd if=/dev/urandom of=/mnt/bulk/all bs=4k seek=7 count=1 conv=notrunc,fsync
        test $(counter checkpoints_sync) -eq $((before + 1))
        dd if=/dev/urandom of=/mnt/plain bs=4k count=1 conv=fsync
        fsync() { dd if=/dev/null of=$1 conv=notrunc,fsync oflag=append; }
        fsync /mnt/bulk/all
        test $(counter checkpoints_sync) -eq $((before + 1))
        # also if nobody has the inode in memory any more
        dd if=/dev/urandom of=/mnt/bulk/all bs=4k seek=9 count=1 conv=notrunc
        sync -f /mnt/plain
        dd if=/dev/urandom of=/mnt/bulk/all bs=4k seek=9 count=1 oflag=direct conv=notrunc
        forget
        # not of the directory, which is logged
        touch /mnt/bulk/below
        fsync_dir() { python3 -c "import os; os.fsync(os.open('$1', os.O_RDONLY))"; }
        now=$(counter checkpoints_sync)
        fsync_dir /mnt/bulk/below
        test $(counter checkpoints_sync) -eq $now
        fsync /mnt/bulk/all
        echo synced $(($(counter checkpoints_sync) - before))
        md5sum /mnt/bulk/all >/tmp/sum
        again
        md5sum -c /tmp/sum
        test "$(section /mnt/bulk/below/file)" = slow
        # another section: what there is stays where it is
        setfattr -n rfs.section -v log /mnt/bulk/all
        written=$(counter written_data)
        dd if=/dev/urandom of=/mnt/bulk/all bs=4k seek=5 count=3 conv=notrunc,fsync
        test $(counter written_data) -eq $((written + 3))
        setfattr -x rfs.section /mnt/bulk/below/file
        test "$(section /mnt/bulk/below/file)" = log
        md5sum /mnt/bulk/all >/tmp/sum
        again
        md5sum -c /tmp/sum
        end
        """,
    )
    assert "synced 3" in output


def test_bypass_of_older_volume(run: Run, tmp_path: Path) -> None:
    """One without bit 32 of incompat stays one that older code can mount and recover."""
    media, slow = tmp_path / "media", tmp_path / "slow"
    shown = hybrid(run, "dump.rfs --slow $slow $drive super", media=media, slow_media=slow)
    features = re.search(r"incompat (0x[0-9a-f]+)", shown)
    assert features
    bits = int(features[1], 16)
    assert bits & 0x28 == 0x28
    change_supers(media, INCOMPAT, bits & ~0x20)
    hybrid(
        run,
        """
        start
        mkdir /mnt/bulk
        fails 1 setfattr -n rfs.section -v slow /mnt/bulk 2>/tmp/said
        grep 'Operation not supported' /tmp/said
        setfattr -n rfs.section -v log /mnt/bulk
        head -c 8M /dev/urandom >/mnt/bulk/file
        sync
        test $(counter home_bypassed) -eq 0
        again
        end
        """,
        make=False,
        media=media,
        slow_media=slow,
    )


def test_bypass_changes(run: Run) -> None:
    """Files of both sections are changed, cut, mapped and read at random, and files leave flash."""
    hybrid(
        run,
        """
        start
        mkdir /mnt/bulk
        setfattr -n rfs.section -v slow /mnt/bulk
        fill() {
            while test -e /tmp/go; do
                head -c 30M /dev/urandom >/mnt/cold
                sync /mnt/cold
            done
        }
        for round in 1 2 3; do
            touch /tmp/go
            fill & filler=$!
            for file in bulk/1 bulk/2 3; do
                /in/fsx /mnt/$file ops=700 seed=$round${file#bulk/} size=2500000 \
                    keep=/tmp/model${file#bulk/}
            done
            rm /tmp/go
            wait $filler
            # what has bypassed flash comes there when it is read, and is bypassed again
            head -c 4M /dev/urandom >/mnt/bulk/other
            sync
            forget
            fills=$(counter home_fills)
            for how in randread randwrite; do
                fio --name=some --filename=/mnt/bulk/other --rw=$how --bs=4k --size=4m \
                    --number_ios=200 --randseed=$round >/dev/null
                sleep 1
            done
            test $(counter home_fills) -gt $((fills + 50))
            md5sum /mnt/bulk/other >/tmp/other
            case $round in
            1) setfattr -n rfs.section -v log /mnt/bulk/2 ;;
            2) setfattr -n rfs.section -v slow /mnt/bulk/2 ;;
            esac
            again
            md5sum -c /tmp/other
        done
        /in/posix /mnt/bulk
        test $(counter home_bypassed) -gt 0
        again
        for file in bulk/1 bulk/2 3; do
            /in/fsx /mnt/$file ops=100 seed=9 size=2500000 keep=/tmp/model${file#bulk/}
        done
        end
        """,
    )


def test_what_is_refused(run: Run) -> None:
    """A slow device that is missing, another one, or none at all: the kernel says which."""
    hybrid(
        run,
        """
        refused() { dmesg -C; text=$1; shift; fails 32 mount -t rfs "$@" /mnt; said "$text"; }
        half=$(($(blockdev --getsz $slow) / 2))
        refused "a hybrid volume, whose files are on a slow device" $drive
        refused "slow=/dev/none: cannot be opened" -o slow=/dev/none $drive
        refused "nvme1n1: the slow device of the hybrid volume" $slow
        refused "with -o slow=/dev/nvme1n1" $slow
        refused "slow=$drive: in use" -o slow=$drive $drive
        refused "slow=none: without its slow device a hybrid volume can only be read" \
            -o slow=none $drive
        start
        echo kept >/mnt/file
        head -c 60M /dev/urandom >/mnt/large
        sync
        fails 32 mount -o remount,slow=none /mnt
        mount -o remount,commit=7 /mnt
        grep "commit=7.*slow=$slow" /proc/mounts
        # it is nobody else's
        fails 1 python3 -c "import os; os.open('$slow', os.O_RDWR | os.O_EXCL)"
        fails 1 mkfs.rfs -f -I 48x256 --slow $slow /tmp/image
        end
        # without the disk flash alone is read
        mount -t rfs -o ro,slow=none $drive /mnt
        grep kept /mnt/file
        fails 1 cat /mnt/large >/dev/null
        fails 32 mount -o remount,rw /mnt
        said "without its slow device a hybrid volume can only be read"
        umount /mnt
        # read-only, then written
        start -o ro
        grep kept /mnt/file
        md5sum /mnt/large >/tmp/sum
        mount -o remount,rw /mnt
        head -c 60M /dev/urandom >/mnt/more
        again
        md5sum -c /tmp/sum
        end
        # one that can only be read; mount(8) tries ro itself without -w
        blockdev --setro $slow
        refused "slow=$slow: can only be read: mount with ro" -w -o slow=$slow $drive
        start -o ro
        grep kept /mnt/file
        fails 32 mount -o remount,rw /mnt
        blockdev --setrw $slow
        end
        # the disk of another volume, of none, one that is too small, one that is not wanted
        dd if=$slow of=/tmp/first bs=4k count=1
        dd if=/dev/zero of=$slow bs=4k count=1 conv=fsync
        refused "no slow device of any volume; that of volume" -o slow=$slow $drive
        dd if=/tmp/first of=$slow bs=4k count=1 conv=fsync
        dmsetup create small --table "0 $half linear $slow 0"
        dmsetup mknodes
        refused "blocks; the volume's slow device has" -o slow=/dev/mapper/small $drive
        dmsetup remove small
        start; grep kept /mnt/file; end
        # the newer copy of a block of the table of states is damaged
        python3 -c "f = open('$slow', 'r+b'); f.seek(4096); t = f.read(8192); \
            n = [int.from_bytes(t[i + 32:i + 40], 'little') for i in (0, 4096)]; \
            f.seek(4096 + 4096 * (n[1] > n[0]) + 1000); f.write(b'damaged')"
        refused "damaged; run fsck.rfs --slow DEVICE" -o slow=$slow $drive
        start -o ro
        md5sum -c /tmp/sum
        fails 32 mount -o remount,rw /mnt
        said "its table of states is damaged: unmount, and run fsck.rfs -p --slow"
        umount /mnt
        fails 1 fsck.rfs -p --slow $slow $drive
        start; md5sum -c /tmp/sum; end
        mkfs.rfs -q -f --slow $slow -U 00112233-4455-6677-8899-aabbccddeeff $drive
        dd if=$slow of=/tmp/other bs=4k count=1
        mkfs.rfs -q -f --slow $slow $drive
        dd if=/tmp/other of=$slow bs=4k count=1 conv=fsync
        refused "of volume 00112233-4455-6677-8899-aabbccddeeff; that of volume" \
            -o slow=$slow $drive
        mkfs.rfs -q -f $drive
        refused "this volume has no slow device: leave the option out" -o slow=$slow $drive
        mount -t rfs $drive /mnt
        umount /mnt
        fsck.rfs $drive
        """,
    )


def test_direct_read_into_a_mapping(run: Run) -> None:
    """Of a file on the same volume: a page of it may take room, and that what the read holds."""
    hybrid(
        run,
        """
        start
        head -c 80M /dev/urandom >/mnt/cold
        truncate -s 80M /mnt/copy
        sync
        md5sum </mnt/cold >/tmp/sum
        forget
        timeout -s KILL 120 python3 -c 'import mmap, os
source = os.open("/mnt/cold", os.O_RDONLY | os.O_DIRECT)
target = mmap.mmap(os.open("/mnt/copy", os.O_RDWR), 80 << 20)
with memoryview(target) as bytes:
    for at in range(0, 80 << 20, 1 << 20):
        assert os.preadv(source, [bytes[at:at + (1 << 20)]], at) == 1 << 20
'
        sync
        md5sum </mnt/copy | cmp - /tmp/sum
        # nor does memory that is nowhere
        python3 -c 'import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
source = os.open("/mnt/cold", os.O_RDONLY | os.O_DIRECT)
hole = mmap.mmap(-1, 1 << 16)
address = ctypes.addressof(ctypes.c_char.from_buffer(hole))
libc.munmap(ctypes.c_void_p(address + (1 << 15)), 1 << 15)
read = lambda at: libc.pread(source, ctypes.c_void_p(at), 1 << 15, 0)
assert read(address + (1 << 14)) == 1 << 14
assert read(address + (1 << 15)) == -1 and ctypes.get_errno() == errno.EFAULT
os._exit(0)
'
        end
        """,
    )


def test_direct_read_into_a_mapping_beside_who_maps(run: Run) -> None:
    """A fault that waits for room keeps nobody from the memory map whom it waits for itself."""
    hybrid(
        run,
        """
        start
        head -c 80M /dev/urandom >/mnt/cold
        truncate -s 80M /mnt/copy
        sync
        forget
        timeout -s KILL 120 /in/mapping /mnt/cold /mnt/copy
        end
        """,
        vcpus=2,
    )


def test_memory_ends_within_a_block(run: Run) -> None:
    """Of a slow device with blocks of 512 bytes, a part of a block can be read, and is read again
    when there is memory for the rest."""
    hybrid(
        run,
        """
        mkdir /tmp/part
        mount -t tmpfs none /tmp/part
        truncate -s 400M /tmp/part/disk
        slow=$(losetup --find --show /tmp/part/disk)
        test $(cat /sys/block/${slow#/dev/}/queue/logical_block_size) -eq 512
        mkfs.rfs -q -f --slow $slow $drive
        start
        head -c 80M /dev/urandom >/mnt/cold
        sync
        forget
        python3 -c 'import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
source = os.open("/mnt/cold", os.O_RDONLY | os.O_DIRECT)
target = mmap.mmap(-1, 12288)
target[0] = target[4096] = 1    # the third page is not there
address = ctypes.addressof(ctypes.c_char.from_buffer(target)) + 512
assert libc.pread(source, ctypes.c_void_p(address), 8192, 0) == 8192, ctypes.get_errno()
assert target[512:8704] == os.pread(os.open("/mnt/cold", os.O_RDONLY), 8192, 0)
os._exit(0)
'
        touch /mnt/still-writable
        end
        losetup -d $slow
        umount /tmp/part
        """,
    )


def test_slow_device_fails(run: Run) -> None:
    """EIO of reads and writes there is said; what flash has is read, and nothing is lost."""
    hybrid(
        run,
        f"""
        sectors=$(blockdev --getsz $slow)
        dmsetup create slow --table "0 $sectors linear $slow 0"
        dmsetup mknodes
        swap() {{
            dmsetup suspend --nolockfs slow; dmsetup load slow --table "$1"; dmsetup resume slow
        }}
        disk=$slow
        slow=/dev/mapper/slow
        {SPREAD}
        mkdir /mnt/bulk
        setfattr -n rfs.section -v slow /mnt/bulk
        sync
        swap "0 $sectors error"
        # what was to bypass flash goes there
        head -c 13000 /dev/urandom >/tmp/bulk
        dd if=/tmp/bulk of=/mnt/bulk/file conv=fsync
        test $(counter home_bypassed) -eq 0
        md5sum -c /tmp/hot
        fails 1 md5sum -c /tmp/cold
        said "slow=/dev/mapper/slow: cannot be read there"
        test $(counter home_errors) -gt 0
        fails 1 dd if=/mnt/cold of=/dev/null bs=1M iflag=direct
        # blocks have to go home
        fails 1 dd if=/dev/zero of=/mnt/large bs=1M count=60 conv=fsync
        said "slow device dm-0: write of"
        said "read-only"
        md5sum -c /tmp/hot
        swap "0 $sectors linear $disk 0"
        cd /; umount /mnt
        start
        md5sum -c /tmp/hot
        md5sum -c /tmp/cold
        cmp /tmp/bulk /mnt/bulk/file
        end
        """,
    )


def test_slow_device_has_no_room(run: Run) -> None:
    """That of a thin device is an error of it, and not a file system that is full."""
    hybrid(
        run,
        """
        mkdir /tmp/thin
        mount -t tmpfs -o size=20M none /tmp/thin
        truncate -s 80M /tmp/thin/disk
        slow=$(losetup --find --show /tmp/thin/disk)
        mkfs.rfs -q -f --slow $slow $drive
        start
        head -c 15M /dev/urandom >/mnt/kept
        sync
        md5sum /mnt/kept >/tmp/sum
        fails 1 dd if=/dev/urandom of=/mnt/large bs=1M count=60 conv=fsync 2>/tmp/said
        grep "Input/output error" /tmp/said
        fails 1 touch /mnt/more
        said "read-only"
        md5sum -c /tmp/sum
        end
        mount -o remount,size=100M /tmp/thin
        start
        md5sum -c /tmp/sum
        dd if=/dev/urandom of=/mnt/large bs=1M count=60 conv=fsync
        md5sum -c /tmp/sum
        end
        """,
    )


def test_slow_device_goes_away(run: Run) -> None:
    hybrid(
        run,
        f"""
        {SPREAD}
        echo 1 >/sys/class/nvme/nvme1/device/remove
        test ! -e $slow
        md5sum -c /tmp/hot
        fails 1 md5sum -c /tmp/cold
        fails 1 dd if=/dev/zero of=/mnt/large bs=1M count=60 conv=fsync
        md5sum -c /tmp/hot
        cd /; umount /mnt
        mount -t rfs -o ro,slow=none $drive /mnt
        md5sum -c /tmp/hot
        umount /mnt
        """,
    )


def test_flash_that_cannot_be_read(run: Run) -> None:
    """A block that is on both devices is read from home."""
    hybrid(
        run,
        """
        start
        head -c 8M /dev/urandom >/mnt/file
        sync
        md5sum /mnt/file >/tmp/sum
        sleep 20
        inode=$(stat -c %i /mnt/file)
        sync
        at=$(dump.rfs --slow $slow $drive map $inode | awk '$1 == 700 { print $2 }')
        test "$at"
        rsdctl fail --unreadable $at $drive
        forget
        md5sum -c /tmp/sum
        test $(counter home_reads) -gt 0
        forget
        dd if=/mnt/file bs=1M iflag=direct | md5sum | cut -c1-32 >/tmp/direct
        grep -f /tmp/direct /tmp/sum
        cd /; umount /mnt
        """,
    )


@pytest.mark.parametrize("times", [3, pytest.param(40, marks=pytest.mark.long)])
def test_reset_machine(run: Run, tmp_path: Path, times: int) -> None:
    """Power is cut while blocks go home and leave flash: what was promised is there."""
    options = {"media": tmp_path / "media", "slow_media": tmp_path / "slow"}
    work = """
        start
        fill() {{
            while true; do
                head -c 30M /dev/urandom >/mnt/cold
                sync /mnt/cold
            done
        }}
        head -c 60M /dev/urandom >/mnt/cold     # from now on blocks have to leave
        fill & /in/promise /mnt run 0 {steps} seed={seed}
        grep -H . /sys/fs/rfs/nvme0n1/home_evictions
        {cut}
    """
    check = """
        {check} || test $? -le 1
        start
        /in/promise /mnt check {step} seed={seed}
        again
        /in/promise /mnt check {step} seed={seed}
        rm -rf /mnt/*
        end
    """
    text = work.format(steps=600, seed=0, cut=CUT)
    output = hybrid(run, text, outcome=Outcome.LOST, **options)
    for number in range(1, times + 1):
        evicted = re.search(r"home_evictions:(\d+)", output)
        assert evicted
        assert int(evicted[1]) > 1000
        text = check.format(check=HYBRID.check, step=promised(output), seed=number - 1)
        text += work.format(steps=500 + number * 100, seed=number, cut=CUT)
        output = hybrid(run, text, make=False, outcome=Outcome.LOST, **options)


# 7.75 MiB, less than what is written, and a disk's worth of flash whose write cache is lost
TINY = {**SMALL, "blocks": "31", "pages": "16"}
CACHED = {"write-buffer": "256K", "ack": "buffer", "plp": "off"}
RECORD = """
ops() {{ rsdctl oplog $1 | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }}
start
fill() {{
    while test -e /tmp/go; do
        head -c 4M /dev/urandom >/mnt/cold
        sync /mnt/cold
    done
}}
head -c 7M /dev/urandom >/mnt/cold
sync
setfattr -n rfs.section -v {section} /mnt       # for files that are made from now on
span="$(ops $drive)" slow_span="$(ops $slow)"
touch /tmp/go
fill & filler=$!
/in/promise /mnt run 0 {steps} seed={seed} drive=$drive >/tmp/promised
rm /tmp/go
wait $filler
span="$span $(ops $drive)" slow_span="$slow_span $(ops $slow)"
echo homed $(counter home_writes) evicted $(counter home_evictions) of $(grep -c . /tmp/promised)
echo bypassed $(counter home_bypassed)
end
python3 /in/two_drives.py $drive $slow {points} {seed} $span $slow_span /tmp/promised /in/promise \\
    fsck.rfs --slow $slow $drive
"""


@pytest.mark.parametrize("section", ["log", "slow"])
@pytest.mark.parametrize("points", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_crash_points_of_both(
    run: Run, checkers: dict[str, Path], tmp_path: Path, points: int, section: str
) -> None:
    """Both drives as one power cut leaves them, at operations of either: mount, check, write on.

    What is promised goes to flash first, or bypasses it. The slow drive is flash with a page map,
    since a disk keeps no log of operations.
    """
    slow = {**SMALL, **CACHED, "op-log": str(tmp_path / "slow-operations")}
    steps = 400 if points > 100 else 200
    body = RECORD.format(steps=steps, seed=5, points=points, section=section)
    result = run(
        HELPERS + script(HYBRID, body),
        namespace={**TINY, "op-log": str(tmp_path / "operations")},
        beside=Beside("page-ftl", None, slow),
        inputs={**checkers, **{path.name: path for path in TWO_DRIVES}, **VISITING},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    print(result.output)
    found = re.search(rf"{points} points of (\d+) and (\d+) operations", result.output)
    assert found
    assert min(map(int, found.groups())) > 500
    bypassed = re.search(r"^bypassed (\d+)$", result.output, re.M)
    assert bypassed
    assert (int(bypassed[1]) > 100) == (section == "slow")
    print(f"QEMU ran for {result.qemu_cpu_s:.0f} s")


def test_room_is_told_while_the_drive_answers_nothing(run: Run) -> None:
    """statfs takes no lock: without page metadata an append is waited for under the volume lock."""
    beside = Beside("barracuda-320", None, DISK)
    body = """
        real=$drive
        sectors=$(blockdev --getsz $real)
        dmsetup create late --table "0 $sectors linear $real 0"
        dmsetup mknodes
        drive=/dev/mapper/late
        mkfs.rfs -q -f --slow $slow $drive
        start
        before=$(stat -f -c '%b %f %a' /mnt)
        dmsetup suspend --nolockfs --noflush late
        trap "dmsetup resume late" EXIT
        dd if=/dev/zero of=/mnt/file bs=4k count=1 conv=fsync & writer=$!
        sleep 2
        timeout 10 stat -f -c '%b %f %a' /mnt >/tmp/room
        kill -0 $writer
        dmsetup resume late
        trap "" EXIT
        wait $writer
        test "$(cut -d' ' -f1 </tmp/room)" = "${before%% *}"
        umount /mnt
        dmsetup remove late
        """
    run(
        HELPERS + script(HYBRID, body, make=False),
        namespace=SMALL | {"oob": "0"},
        beside=beside,
    )
