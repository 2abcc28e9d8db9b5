# SPDX-License-Identifier: GPL-2.0-or-later
"""Zones and blocks that fail under a mounted volume: what is gone is said, the rest goes on."""

import re
from collections.abc import Mapping

import pytest
from mounted import SMALL, Run, Volume, script

from rsd.machine import Outcome

pytestmark = pytest.mark.guest

# open STREAM: the zone that it writes; block FILE PAGE: where that is; spoil: it cannot be read.
HELPERS = """
anew() { mkfs.rfs -q -f $drive; start; }
open() { sync; dump.rfs $drive zones | awk -v s=$1 '$2 == "open" && $3 == s { print $1 }'; }
zone_fails() { rsdctl fail --$1 $(($2 * 256)) $drive; }
inode() { stat -c %i $1; }
block() { sync; dump.rfs $drive map $(inode $1) | awk -v b=$2 '$1 == b { print $2 }'; }
forget() { echo 3 >/proc/sys/vm/drop_caches; }
spoil() { test "$1"; rsdctl fail --unreadable $1 $drive; forget; }
fill() { head -c $2 /dev/zero | tr '\\0' $3 >$1; }
holds() { test $(stat -c %s $1) -eq $2; test -z "$(tr -d $3 <$1 | head -c 1)"; }
page() { dd if=$1 bs=4k skip=$2 count=1 status=none; }

# A zone fails between what is written before and after.
while_written() {
    fill /mnt/before 200000 b
    chmod 600 /mnt/before
    sync /mnt/before  # the log has a zone
    zone=$(open $1)
    test "$zone"
    python3 /in/files.py write & writer=$!
    while ! test -e /mnt/dir10; do sleep 0.01; done
    zone_fails $2 $zone
    wait $writer
    fill /mnt/after 200000 a
    sync
}
all_there() {
    holds /mnt/before 200000 b
    holds /mnt/after 200000 a
    python3 /in/files.py
}
"""

# files.py write: files and directories, each file durable; files.py [N]: at least N (all) of the
# files are what they were, the others are errors, and the directories are there.
FILES = """
import os, sys
names = [(f"/mnt/file{i}", f"/mnt/dir{i}", b"f" * (i * 3000)) for i in range(1, 41)]
good = 0
for name, directory, content in names:
    if sys.argv[1:] == ["write"]:
        with open(name, "wb", buffering=0) as stream:
            stream.write(content)
            os.fsync(stream.fileno())
        os.mkdir(directory)
        if len(content) % 8 == 0:
            os.sync()
        continue
    assert os.path.isdir(directory)
    try:
        with open(name, "rb") as stream:
            assert stream.read() == content, name
        good += 1
    except OSError as error:
        print(name, error)
assert sys.argv[1:] == ["write"] or good >= int(sys.argv[1] if sys.argv[1:] else len(names)), good
"""


def run_small(
    run: Run,
    volume: Volume,
    body: str,
    namespace: Mapping[str, str] | None = None,
    **options: object,
) -> str:
    """Run `body` on a small drive; gives what was printed, the kernel's console too."""
    result = run(
        script(volume, HELPERS + body, make=False),
        system=volume.system,
        namespace={**volume.namespace, **SMALL, **(namespace or {})},
        inputs={"files.py": FILES},
        **options,
    )
    return result.output + result.console


def test_zones_become_read_only(run: Run, volume: Volume) -> None:
    """Whatever is written there: nothing is lost, nobody is told an error."""
    run_small(
        run,
        volume,
        """
        for stream in data log meta imap; do
            anew
            while_written $stream read-only
            all_there
            again
            all_there
            touch /mnt/more
            end
        done
        """,
    )


def test_zones_go_offline(run: Run, volume: Volume) -> None:
    """What was in one of data is EIO, all else is there; the log is made needless by a sync."""
    run_small(
        run,
        volume,
        """
        anew
        while_written log offline
        all_there
        again
        all_there
        end

        anew
        while_written data offline
        forget
        for turn in 1 2; do
            fails 1 page /mnt/before 3 >/tmp/none
            holds /mnt/after 200000 a
            python3 /in/files.py 15
            cd /; umount /mnt
            start
        done
        # written anew it is whole again
        fill /mnt/before 200000 c
        sync
        forget
        holds /mnt/before 200000 c
        rm /mnt/file*
        end
        """,
    )


def test_metadata_zones_go_offline(run: Run, volume: Volume) -> None:
    """What needs them is an error, which errors= is for; no fault, no hang."""
    run_small(
        run,
        volume,
        """
        for stream in meta imap; do
            anew
            mkdir /mnt/d
            for i in $(seq 50); do echo ffff >/mnt/d/file$i; done
            zone=$(open $stream)
            zone_fails offline $zone
            forget
            find /mnt -type f -exec cat {} + >/tmp/got || true
            test -z "$(tr -d 'f\\n' </tmp/got | head -c 1)"
            echo more >/mnt/more || true
            sync || true
            cd /; umount /mnt
            status=0; fsck.rfs $drive || status=$?
            case $status in 0|1|4|8) ;; *) exit 9;; esac
            status=0; start || status=$?
            case $status in 0) ls -lR /mnt >/tmp/list || true; umount /mnt;; 32) ;; *) exit 9;; esac
        done
        """,
    )


@pytest.mark.parametrize(("zone", "how"), [(0, "read-only"), (1, "offline")])
def test_checkpoint_zone_fails(run: Run, volume: Volume, zone: int, how: str) -> None:
    """One of the three: nothing happens, now and at the next mounts."""
    run_small(
        run,
        volume,
        f"""
        anew
        fill /mnt/before 50000 b
        sync
        zone_fails {how} {zone}
        for i in $(seq 6); do fill /mnt/file$i 5000 f; sync; done
        again
        for i in $(seq 6); do holds /mnt/file$i 5000 f; done
        fill /mnt/before 60000 c
        again
        holds /mnt/before 60000 c
        end
        # another volume, though the superblock of the first may stay
        anew
        test ! -e /mnt/before
        fill /mnt/other 5000 o
        again
        holds /mnt/other 5000 o
        end
        """,
    )


def test_zones_fail_while_cleaned(run: Run, volume: Volume) -> None:
    """Under a load that has them cleaned: read-only ones are read, offline ones left alone."""
    run_small(
        run,
        volume,
        """
        load() {
            fio --minimal --name=hot --directory=/mnt --rw=randwrite --bs=4k --size=12m --loops=3 \
                --randseed=5 --verify=crc32c --fsync=100 --norandommap "$@"
        }
        for how in read-only offline; do
            anew
            load --do_verify=0 & writer=$!
            for i in 1 2 3; do
                sleep 0.2
                zone=$(dump.rfs $drive zones |
                       awk 'NF == 8 && $2 == "used" && $3 == "data" && $6 > 100 { print $1; exit }')
                test -z "$zone" || zone_fails $how $zone
            done
            wait $writer
            test $how = offline || load --verify_only=1
            echo more >/mnt/more; sync /mnt/more
            cd /; umount /mnt
            start; test $(cat /mnt/more) = more; umount /mnt
        done
        resets=$(rsdctl show $drive | awk '/zone resets/ { print $3 }')
        test $resets -gt 20
        """,
        # each zone that fails takes from what users may have
        namespace={"blocks": "31"},
        virtual_limit_s=0,
    )


# The block of a directory of a volume mounted with some errors=
METADATA = """
    anew; end; start $errors
    mkdir /mnt/d /mnt/other
    for i in 1 2 3; do echo $i >/mnt/d/file$i; done
    echo there >/mnt/other/file
    end; start $errors
    spoil $(block /mnt/d 0)
    fails 2 ls /mnt/d
"""


def test_blocks_cannot_be_read(run: Run, volume: Volume) -> None:
    """Data: EIO for that page, mapped SIGBUS, until it is written. Metadata: errors= decides."""
    printed = run_small(
        run,
        volume,
        """
        anew
        fill /mnt/file 100000 x
        spoil $(block /mnt/file 7)
        for turn in 1 2; do
            for p in 0 6 8 24; do
                page /mnt/file $p >/tmp/page
                test -z "$(tr -d x </tmp/page | head -c 1)"
            done
            fails 1 page /mnt/file 7
            # a write of a part of it needs the rest; the volume goes on
            fails 1 dd if=/dev/zero of=/mnt/file bs=1 seek=30000 count=5 conv=notrunc
            fails 135 python3 -c '
import mmap
with open("/mnt/file", "rb") as f: mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[7 * 4096]'
            touch /mnt/other$turn
            cd /; umount /mnt
            # without page metadata it does not read data; else its neighbours are no faults
            fsck.rfs $drive >/tmp/said || test "$(tail -n 1 /tmp/said)" = "$drive: 1 faults"
            start
        done
        head -c 4096 /dev/zero | tr '\\0' x | dd of=/mnt/file bs=4k seek=7 conv=notrunc
        sync
        forget
        holds /mnt/file 100000 x
        end

        errors='-o errors=remount-ro'
        """
        + METADATA
        + """
        fails 1 touch /mnt/new
        grep -q ' /mnt rfs ro' /proc/mounts
        test $(cat /mnt/other/file) = there
        fails 32 mount -o remount,rw /mnt
        cd /; umount /mnt
        start
        test $(cat /mnt/other/file) = there
        touch /mnt/new
        cd /; umount /mnt

        errors='-o errors=continue'
        """
        + METADATA
        + """
        touch /mnt/new /mnt/other/new
        fails 2 ls /mnt/d
        cd /; umount /mnt
        start
        test -e /mnt/other/new
        cd /; umount /mnt
        dmesg | grep 'rfs: nvme0n1: error'
        """,
    )
    assert "error -5, read-only" in printed


def test_errors_panic(run: Run, volume: Volume) -> None:
    printed = run_small(
        run, volume, "errors='-o errors=panic'" + METADATA, outcome=Outcome.PANIC, faulty=True
    )
    assert "Kernel panic - not syncing: rfs: nvme0n1: error -5" in printed


# A page of /mnt/file that a direct read of another device has pinned gets its content from that
# when it is neither dirty nor reserved, and when what says where its block is cannot be read.
BEHIND = """
import mmap, os, threading, time
file = open("/mnt/file", "r+b")
page = mmap.mmap(file.fileno(), 4096)
page[0] = 1
other = os.open("/dev/mapper/late", os.O_RDONLY | os.O_DIRECT)
reader = threading.Thread(target=os.preadv, args=(other, [page], 0))
reader.start()
time.sleep(0.5)
os.fsync(file.fileno())
os.sync()
open("/tmp/pinned", "w").close()
reader.join()
try:
    os.fsync(file.fileno())
except OSError as error:
    print("fsync says", error.errno)
"""


def test_error_of_a_page_dirtied_behind_the_file_system(run: Run, volume: Volume) -> None:
    """A page that gets its place at writeback: fsync has the error that this has."""
    printed = run_small(
        run,
        volume,
        f"""
        anew
        cat >/tmp/behind.py <<'END'
{BEHIND}END
        # with holes between them its blocks are no runs, so the leaf is written
        for p in 0 2 4 6 8 10; do echo $p | dd of=/mnt/file bs=4k seek=$p conv=notrunc; done
        dmsetup create late --table "0 8 zero"
        dmsetup mknodes
        dmsetup suspend late
        python3 /tmp/behind.py & reader=$!
        while ! test -e /tmp/pinned; do sleep 0.1; done
        for zone in $(dump.rfs $drive zones | awk '$3 == "meta" {{ print $1 }}'); do
            for at in $(dump.rfs $drive blocks $zone | awk '$2 == "index" {{ print $1 }}'); do
                spoil $((zone * 256 + at))
            done
        done
        dmsetup resume late
        wait $reader
        dmsetup remove late
        cd /; umount /mnt
        """,
    )
    assert "fsync says 5" in printed


def test_log_says_how_much_room_lacks(run: Run, volume: Volume) -> None:
    """More zones fail than the volume can do without: who overwrites waits in vain."""
    printed = run_small(
        run,
        volume,
        """
        anew
        fails 1 dd if=/dev/urandom of=/mnt/all bs=64k
        sync
        for zone in $(dump.rfs $drive zones | awk '$2 == "free" { print $1 }'); do
            zone_fails read-only $zone
        done
        dd if=/dev/zero of=/mnt/all bs=4k count=4000 conv=notrunc,fsync || echo refused
        dmesg | grep rfs:
        shut_down 2
        cd /; umount /mnt
        """,
    )
    found = re.search(
        r"no room is to be had for who waits: \d+ blocks are dirty, with what is kept for others "
        r"they need room for (\d+) and have it for (\d+), (\d+) lack; "
        r"(\d+) zones are free of (\d+), (\d+) lack",
        printed,
    )
    assert found
    needs, room, lack, free, zones, zones_lack = map(int, found.groups())
    assert lack == max(needs - room, 0)
    assert zones_lack == zones - free > 0
