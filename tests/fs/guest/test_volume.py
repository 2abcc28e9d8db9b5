# SPDX-License-Identifier: GPL-2.0-or-later
"""A mounted volume: what programs may expect of it, and what it has to endure."""

import json
import re

import pytest
from mounted import SMALL, VOLUMES, Run, Volume, script

pytestmark = pytest.mark.guest


# In real time several processors are in the module at once.
VCPUS = pytest.mark.parametrize("vcpus", [1, 2, pytest.param(4, marks=pytest.mark.long)])


def check(run: Run, volume: Volume, body: str, **options: object) -> str:
    """Run `body` on a new volume; gives its output."""
    return run(script(volume, body), system=volume.system, **options).output


@VCPUS
def test_posix(run: Run, volume: Volume, vcpus: int) -> None:
    check(run, volume, "start; /in/posix /mnt; again; ls -lR /mnt | wc -l; end", vcpus=vcpus)


def test_attributes(run: Run, volume: Volume) -> None:
    """Extended attributes, ACLs and flags: set, obeyed, there after a remount."""
    check(
        run,
        volume,
        """
        start
        /in/attributes /mnt
        all() {
            cd /mnt
            (getfattr -hRd -m - . | sort; getfacl -R .; lsattr -R . | sort) > $1 2> /dev/null
            cd /
        }
        all /tmp/before
        grep user.attribute-59= /tmp/before
        grep user:1000:rwx /tmp/before
        again
        all /tmp/after
        diff /tmp/before /tmp/after
        setfattr -n user.new -v new /mnt/values/f
        again
        test "$(getfattr --only-values -n user.new /mnt/values/f)" = new
        end
        """,
    )


def test_chmod_with_acl(run: Run, volume: Volume) -> None:
    """The permissions and the ACL's mask are one record: a power cut is not between them."""
    if volume.system != "rsd":
        pytest.skip("looks into RFS")
    check(
        run,
        volume,
        """
        start
        touch /mnt/file
        setfacl -m u:1000:rwx /mnt/file
        sync
        chmod 651 /mnt/file
        sync /mnt/file
        shut_down 2
        umount /mnt
        start
        test $(cat /sys/fs/rfs/nvme0n1/recovery_records) -eq 1
        test $(stat -c %a /mnt/file) = 651
        getfacl /mnt/file | grep mask::r-x
        end
        """,
    )


def test_times_of_reads_with_lazytime(run: Run, volume: Volume) -> None:
    """Durable by fsync, and after the inode has left memory by what flushes the log."""
    if volume.system != "rsd":
        pytest.skip("counts records of RFS")
    check(
        run,
        volume,
        """
        stamps() { stat -c '%x %y %z' /mnt/file; }
        cut() {
            shut_down $1
            umount /mnt
            start
            mount -o remount,lazytime,strictatime /mnt
        }
        start
        echo x > /mnt/file
        sync
        mount -o remount,lazytime,strictatime /mnt
        sleep 0.1
        cat /mnt/file
        read=$(stamps)
        sync /mnt/file
        cut 2
        test $(cat /sys/fs/rfs/nvme0n1/recovery_records) -eq 1
        test "$(stamps)" = "$read"
        sync /mnt/file
        cut 2
        # nothing was read: nothing to say
        test $(cat /sys/fs/rfs/nvme0n1/recovery_records) -eq 0
        sleep 0.1
        cat /mnt/file
        read=$(stamps)
        # that makes the inode dirty; then it is written
        echo 3 > /proc/sys/vm/drop_caches
        echo 1 > /proc/sys/vm/dirty_expire_centisecs
        echo 1 > /proc/sys/vm/dirty_writeback_centisecs
        sleep 1
        cut 1
        test "$(stamps)" = "$read"
        end
        """,
    )


def test_linux(run: Run, volume: Volume) -> None:
    """Preallocation, extents, file handles; times under relatime and lazytime; trim; no swap."""
    result = check(
        run,
        volume,
        """
        start
        /in/linux /mnt
        # relatime: a read is noted if it is the first since the last write
        echo x > /mnt/file
        sleep 0.1
        cat /mnt/file
        first=$(stat -c %x /mnt/file)
        test "$first" != "$(stat -c %y /mnt/file)"
        sleep 0.1
        cat /mnt/file
        test "$(stat -c %x /mnt/file)" = "$first"
        again
        test "$(stat -c %x /mnt/file)" = "$first"
        mount -o remount,lazytime,strictatime /mnt
        grep lazytime /proc/mounts
        sleep 0.1
        cat /mnt/file
        lazy=$(stat -c %x /mnt/file)
        test "$lazy" != "$first"
        again
        test "$(stat -c %x /mnt/file)" = "$lazy"
        dd if=/dev/zero of=/mnt/large bs=1M count=100
        sync
        rm /mnt/large
        fstrim -v /mnt
        fails 1 fstrim -o 1000G /mnt
        dd if=/dev/zero of=/mnt/swap bs=1M count=2
        chmod 600 /mnt/swap
        mkswap /mnt/swap
        swapon /mnt/swap || echo swapon failed
        swapoff /mnt/swap || true
        end
        """,
    )
    trimmed = re.search(r"\((\d+) bytes\) trimmed", result)
    assert trimmed
    assert int(trimmed[1]) >= 48 << 20
    if volume.system == "rsd":
        assert "swapon failed" in result


def test_trimmed_ranges(run: Run, volume: Volume) -> None:
    """A range counts in whole zones; where it has none, nothing is done."""
    if volume.system != "rsd":
        pytest.skip("other file systems do not count in zones")
    check(
        run,
        volume,
        """
        start
        bytes=$(df --output=size -B1 /mnt | tail -n 1)
        trimmed=$(fstrim -v /mnt | sed 's/.*(//; s/ bytes.*//')
        test $trimmed -gt $((bytes / 2)) -a $trimmed -le $bytes
        head -c 8M /dev/zero >/mnt/large
        sync
        full='$2 == "used" && $3 == "data" && $6 > 200 { print $1; exit }'
        zone=$(($(dump.rfs $drive zones | awk "$full") << 20))
        test $zone -gt 0
        trims() {
            want=$1; shift
            fstrim -v "$@" /mnt | grep "($want bytes) trimmed"
        }
        trims 0 -o $zone -l 1M
        rm /mnt/large
        points() { cat /sys/fs/rfs/nvme0n1/checkpoints; }
        before=$(points)
        trims 0 -o $((zone + 4096)) -l 1M
        trims 0 -o $zone -l $((1048576 - 4096))
        trims 0 -o $((zone + 4096)) -l $((2097152 - 8192))
        fails 1 fstrim -o $zone -l 4095 /mnt
        fails 1 fstrim -o $zone -l 1M -m $((1048576 + 1)) /mnt
        test $(points) -eq $before
        trims 1048576 -o $((zone - 4096)) -l $((1048576 + 8192)) -m 1M
        test $(points) -eq $((before + 1))
        trims 1048576 -o $zone -l 1M
        end
        """,
        namespace=SMALL,
    )


def test_times_of_a_full_volume(run: Run, volume: Volume) -> None:
    """All files of a full volume are read, so all inodes are written: it goes on."""
    check(
        run,
        volume,
        """
        start
        i=0
        while echo x > /mnt/$i; do i=$((i + 1)); done
        test $i -gt 5000
        mount -o remount,strictatime /mnt
        for round in 1 2; do
            cat /mnt/* > /dev/null
            sync
        done
        rm /mnt/1*
        sync
        echo y > /mnt/again
        again
        test $(cat /mnt/again) = y
        end
        """,
        namespace={**volume.namespace, **SMALL},
    )


# Files of one block, until there is no room
FILL_UP = """
fill_up() {
    python3 -c 'import errno, itertools
for i in itertools.count():
    try:
        with open(f"/mnt/{i}", "xb", buffering=0) as file:
            file.write(b"x" * 4096)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        break
print("files:", i)
assert i > 90000'
}
"""


@pytest.mark.long
def test_times_of_a_full_large_volume(run: Run, volume: Volume) -> None:
    """The same at the size of REDO's drive: a hundred thousand files of one block."""
    if volume.system != "rsd":
        pytest.skip("a drive for RFS")
    run(
        script(
            volume,
            FILL_UP
            + """
            start
            fill_up
            sync
            mount -o remount,strictatime /mnt
            for round in 1 2; do
                find /mnt -type f -exec cat {} + > /dev/null
                sync
            done
            find /mnt -name '*7' -delete
            truncate -s 0 /mnt/1*1
            sync
            echo y > /mnt/again
            again
            test $(cat /mnt/again) = y
            umount /mnt
            fsck.rfs -n $drive
            """,
        ),
        system="rsd-redo",
    )


def test_reserved_on_full_volume(run: Run, volume: Volume) -> None:
    """What was preallocated can be written when nothing else can, also after a remount."""
    check(
        run,
        volume,
        """
        start
        fallocate -l 8M /mnt/promised
        fails 1 dd if=/dev/zero of=/mnt/fill bs=64k
        fails 1 dd if=/dev/zero of=/mnt/more bs=4k conv=fsync
        again
        fails 1 dd if=/dev/zero of=/mnt/still-more bs=4k count=200 conv=fsync
        head -c 8388608 /dev/urandom > /tmp/data
        dd if=/tmp/data of=/mnt/promised bs=4k conv=notrunc,fsync
        dd if=/tmp/data of=/mnt/promised bs=12k conv=notrunc,fsync
        again
        cmp /tmp/data /mnt/promised
        rm /mnt/promised
        head -c 4000000 /dev/zero > /mnt/again
        end
        """,
        namespace={**volume.namespace, **SMALL},
    )


def test_overlay(run: Run, volume: Volume) -> None:
    """The upper layer of an overlay needs whiteouts, trusted attributes and O_TMPFILE."""
    check(
        run,
        volume,
        """
        mkdir /tmp/lower /tmp/all
        echo low > /tmp/lower/file
        mkdir /tmp/lower/dir
        start
        mkdir /mnt/upper /mnt/work
        over() {
            mount -t overlay overlay /tmp/all \
                -o lowerdir=/tmp/lower,upperdir=/mnt/upper,workdir=/mnt/work
        }
        over
        ! dmesg | grep 'overlayfs: upper fs'
        echo high >> /tmp/all/file
        mv /tmp/all/file /tmp/all/moved
        rmdir /tmp/all/dir
        mkdir /tmp/all/dir
        umount /tmp/all
        again
        over
        test "$(cat /tmp/all/moved)" = "$(printf 'low\nhigh')"
        test "$(ls /tmp/all | tr '\n' ' ')" = "dir moved "
        umount /tmp/all
        end
        """,
    )


@VCPUS
@pytest.mark.parametrize(
    ("rounds", "ops"), [(2, 1500), pytest.param(10, 100000, marks=pytest.mark.long)]
)
def test_random_operations(run: Run, volume: Volume, rounds: int, ops: int, vcpus: int) -> None:
    """fsx on four files at once, with mappings and direct I/O, and remounts between."""
    said = check(
        run,
        volume,
        f"""
        start
        for round in $(seq {rounds}); do
            for file in 1 2 3 4; do
                /in/fsx /mnt/$file ops={ops} seed=$round$file size=$((file * 150000)) \
                    keep=/tmp/model$file &
                pids="$pids $!"
            done
            for pid in $pids; do wait $pid; done
            pids=
            again
        done
        end
        """,
        virtual_limit_s=0,
        vcpus=vcpus,
    )
    assert f": {ops} operations" in said
    # what fsx leaves out it says, and RFS has all of it
    assert volume.kind != "rfs" or " operations, no" not in said


FIO = "fio --minimal --directory=/mnt --verify=crc32c --verify_fatal=1 --randseed=7 --bs=4k-64k"


def test_fio_verifies(run: Run, volume: Volume) -> None:
    """Written buffered, mapped, directly and by AIO, at once; read back after a remount."""
    jobs = {
        "buffered": "--ioengine=psync --fsync=50",
        "mapped": "--ioengine=mmap",
        "aio": "--ioengine=libaio --iodepth=8",
        "uring": "--ioengine=io_uring --iodepth=8 $direct",
    }
    words = " ".join(f"--name={name} --rw=randwrite --size=8m {jobs[name]}" for name in jobs)
    check(
        run,
        volume,
        f"""
        start
        direct=
        ! dd if=/dev/zero of=/mnt/probe bs=4k count=1 oflag=direct || direct=--direct=1
        {FIO} --do_verify=1 {words}
        again
        {FIO} --verify_only=1 {words}
        end
        """,
    )


@VCPUS
def test_everything_at_once(run: Run, volume: Volume, vcpus: int) -> None:
    """stress-ng, fsmark and postmark, side by side."""
    check(
        run,
        volume,
        """
        start
        mkdir /mnt/stress /mnt/marks /mnt/postmark
        stress-ng --seed 1 --verify --temp-path /mnt/stress --hdd 1 --hdd-bytes 2m --hdd-ops 50 \
            --dir 1 --dir-ops 25 --link 1 --link-ops 3 --rename 2 --rename-ops 200 \
            --symlink 1 --symlink-ops 3 --dentry 1 --dentry-ops 50 --seek 1 --seek-ops 50 & a=$!
        fs_mark -d /mnt/marks -n 60 -s 10000 -t 2 -S 1 & b=$!
        (cd /mnt/postmark
         printf 'set number 200\nset transactions 300\nset seed 3\nrun\n' | postmark) & c=$!
        for job in $a $b $c; do wait $job; done
        again
        end
        """,
        vcpus=vcpus,
    )


@VCPUS
def test_full(run: Run, volume: Volume, vcpus: int) -> None:
    """Full is said when it is; overwriting goes on, deleting gives everything back."""
    check(
        run,
        volume,
        """
        start
        avail() { sync; stat -f -c %a /mnt; }
        head -c 4000000 /dev/urandom > /mnt/kept
        md5sum /mnt/kept > /tmp/sum
        before=$(avail)
        for round in 1 2 3; do
            fails 1 dd if=/dev/zero of=/mnt/fill bs=64k
            fails 1 dd if=/dev/zero of=/mnt/more bs=4k conv=fsync
            test $(avail) -lt 64
            dd if=/mnt/kept of=/mnt/fill bs=4k count=500 seek=100 conv=notrunc,fsync
            md5sum -c /tmp/sum
            rm -f /mnt/fill /mnt/more  # which may not have been made
            test $(avail) -ge $((before - 64))
        done
        again
        md5sum -c /tmp/sum
        end
        """,
        namespace={**volume.namespace, **SMALL},
        vcpus=vcpus,
    )


def test_df_keeps_its_word(run: Run, volume: Volume) -> None:
    """As much as df says is there for fallocate, index nodes included."""
    check(
        run,
        volume,
        """
        start
        avail() { sync; stat -f -c %a /mnt; }
        for used in 1 1000 4000; do
            head -c ${used}k /dev/urandom > /mnt/used
            blocks=$(avail)
            test $blocks -gt 4000
            fallocate -l $((blocks * 4096)) /mnt/all
            test $(avail) -lt $((blocks / 100))
            rm /mnt/all
        done
        end
        """,
        namespace={**volume.namespace, **SMALL},
    )


def test_size_of_a_file_whose_end_is_punched(run: Run, volume: Volume) -> None:
    """It stays though what has grown was never written, after an unmount and a power cut."""
    check(
        run,
        volume,
        """
        start
        grow() {
            head -c 40960 /dev/urandom > /mnt/$1
            sync
            head -c 40900 /dev/urandom >> /mnt/$1
            fallocate -$2 -o $3 -l $4 /mnt/$1
        }
        sizes() { stat -c '%n %s' /mnt/*; md5sum /mnt/*; }
        work() {
            grow $1-all p 40960 40960
            grow $1-half p 50000 200000
            grow $1-from-the-first p 0 81860
            grow $1-before p 40960 20480
            grow $1-zeroed z 40960 40900
            head -c 5000 /dev/urandom > /mnt/$1-new
            fallocate -p -o 0 -l 8192 /mnt/$1-new
            : > /mnt/$1-empty
            fallocate -p -o 0 -l 8192 /mnt/$1-empty
        }
        work unmounted
        sizes > /tmp/before
        again
        sizes | cmp - /tmp/before
        work cut
        sizes > /tmp/before
        for file in /mnt/cut*; do sync $file; done
        shut_down 2
        umount /mnt
        start
        sizes | cmp - /tmp/before
        end
        """,
    )


def test_times_after_a_power_cut(run: Run, volume: Volume) -> None:
    """Times of a file that was fsynced are there again, whatever has set them last."""
    check(
        run,
        volume,
        """
        start
        show() { stat -c '%n %y %z' /mnt/*; }
        for name in reserved punched zeroed linked renamed set owned; do
            head -c 100000 /dev/urandom > /mnt/$name
        done
        sync
        for name in reserved punched zeroed linked renamed set owned; do
            head -c 50000 /dev/urandom | dd of=/mnt/$name conv=notrunc,fsync
        done
        sleep 1
        fallocate -n -o 1M -l 1M /mnt/reserved
        fallocate -p -o 0 -l 64k /mnt/punched
        fallocate -z -o 0 -l 64k /mnt/zeroed
        ln /mnt/linked /mnt/linked-too
        mv /mnt/renamed /mnt/named
        setfattr -n user.a -v b /mnt/set
        chown 7 /mnt/owned
        for file in /mnt/*; do sync $file; done
        show > /tmp/before
        shut_down 2
        umount /mnt
        start
        show > /tmp/after
        diff /tmp/before /tmp/after
        end
        """,
        namespace=volume.namespace,
    )


@pytest.mark.parametrize("files", [5000, pytest.param(1000000, marks=pytest.mark.long)])
def test_many_files(run: Run, volume: Volume, files: int) -> None:
    """In one directory, found and listed again after a remount, half of them removed."""
    check(
        run,
        volume,
        f"""
        start
        mkdir /mnt/d
        python3 -c '
import os
os.chdir("/mnt/d")
for i in range({files}): os.close(os.open(f"file number {{i}}", os.O_CREAT | os.O_WRONLY))
'
        again
        python3 -c '
import os
os.chdir("/mnt/d")
assert sorted(os.listdir()) == sorted(f"file number {{i}}" for i in range({files}))
for i in range(0, {files}, 7): os.stat(f"file number {{i}}")
for i in range(0, {files}, 2): os.unlink(f"file number {{i}}")
'
        again
        python3 -c '
import os
os.chdir("/mnt/d")
assert len(os.listdir()) == {files // 2}
for i in range(1, {files}, 2): os.unlink(f"file number {{i}}")
'
        rmdir /mnt/d
        end
        """,
        virtual_limit_s=0,
    )


COLD = """
start
cd /mnt
mkdir d0 d1 d2 d3
seq 1500 | sed 's,.*,d0/&\\nd1/&\\nd2/&\\nd3/&,' | xargs touch
cat >/tmp/sparse.py <<'END'
import os, random, sys
random.seed(1)
fd = os.open("/mnt/large", os.O_CREAT | os.O_RDWR)
for i in range(600):
    # each block has an index node of its own
    at = 252 * 4096 * (i if sys.argv[1] == "make" else random.randrange(600))
    if sys.argv[1] == "read":
        assert os.pread(fd, 1, at)
    else:
        os.pwrite(fd, b"x", at)
END
python3 /tmp/sparse.py make
cp -a large other
again
waited() { cat /sys/fs/rfs/nvme0n1/waited_reads; }
before=$(waited)
cd /mnt
find . -type f -name '*7*' | xargs stat >/dev/null
python3 /tmp/sparse.py read
python3 /tmp/sparse.py write
sync
seq 300 | sed 's,^,d1/new,' | xargs touch
for i in $(seq 40); do mv d1/$i d2/moved$i; done
seq 1 3 1500 | sed 's,^,d3/,' | xargs rm
truncate -s 1m other
fallocate -p -o 4m -l 400m large
rm large
sync
echo waited $(($(waited) - before))
end
"""


def test_metadata_is_read_without_the_volume(run: Run) -> None:
    """What is not in memory is read while others are at work, but for some blocks."""
    result = run(script(VOLUMES["rfs"], COLD))
    found = re.search(r"^waited (\d+)", result.output, re.M)
    assert found, result.output
    # Were each read under the lock, it would be 1,616.
    assert int(found[1]) <= 20


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.long)])
def test_overwritten_many_times(run: Run, volume: Volume, times: int) -> None:
    """A file of half the drive, so that zones are cleaned under the load."""
    result = run(
        script(
            volume,
            f"""
            start
            head -c 3000000 /dev/urandom > /mnt/cold
            md5sum /mnt/cold > /tmp/sum
            fio --minimal --name=hot --directory=/mnt --rw=randwrite --bs=4k --size=16m \
                --loops={times} --randseed=5 --verify=crc32c --verify_fatal=1 --fsync=200 \
                --norandommap
            again
            md5sum -c /tmp/sum
            rsdctl show --json $drive > /out/counters.json
            end
            """,
        ),
        system=volume.system,
        namespace={**volume.namespace, **SMALL},
        virtual_limit_s=0,
    )
    counters = json.loads((result.out_dir / "counters.json").read_text())["counters"]
    assert volume.system != "rsd" or counters["zone_resets"]["value"] > 5


# Pages of a mapping are the buffer of direct reads of the drive, while they are written.
PINNED = """
import mmap, os, threading
SPAN = 64 * 4096
file = open("/mnt/file", "w+b")
file.truncate(SPAN)
mapped = mmap.mmap(file.fileno(), SPAN)
raw = os.open("/dev/nvme0n1", os.O_RDONLY | os.O_DIRECT)
over = threading.Event()
def write():
    while not over.is_set():
        os.fsync(file.fileno())
writer = threading.Thread(target=write)
writer.start()
for i in range(300):
    at = i % 4 * 16 * 4096
    os.preadv(raw, [memoryview(mapped)[at : at + 16 * 4096]], i % 8 * 4096)
over.set()
writer.join()
os.fsync(file.fileno())
want = mapped[:]
assert any(want)
open("/proc/sys/vm/drop_caches", "w").write("3")
os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
assert os.pread(file.fileno(), SPAN, 0) == want
"""


# A thread that fails ends the program: the others would go on for ever.
CROWDED = """
import os, random, sys, threading, traceback
def fail(kind, value, trace):
    traceback.print_exception(kind, value, trace)
    sys.stderr.flush()
    os._exit(1)
sys.excepthook = fail
threading.excepthook = lambda args: fail(args.exc_type, args.exc_value, args.exc_traceback)
filler = open("/mnt/filler", "w+b")
page = os.urandom(4096)
try:
    while os.statvfs("/mnt").f_bavail > 300:
        filler.write(page * 64)
except OSError:
    pass
os.fsync(filler.fileno())
pages = os.fstat(filler.fileno()).st_size // 4096
over = threading.Event()
def crowd():
    random.seed(1)
    while not over.is_set():
        for i in range(64):
            os.pwrite(filler.fileno(), page, random.randrange(pages) * 4096)
        os.fsync(filler.fileno())
crowded = threading.Thread(target=crowd)
"""


def test_pinned_pages_of_a_crowded_volume(run: Run, volume: Volume) -> None:
    """Pages that somebody had pinned need room when it has to be made: fsync waits for it."""
    pinned = PINNED.replace("writer.start()", "writer.start(); crowded.start()").replace(
        "over.set()", "over.set(); crowded.join()"
    )
    pinned = pinned.replace("over = threading.Event()\n", "")
    pinned = pinned.replace(
        "def write():\n",
        "failed = []\ndef write():\n    try:\n        write_all()\n"
        "    except OSError as error:\n        failed.append(error)\ndef write_all():\n",
    )
    check(
        run,
        volume,
        f"start\ncat >/tmp/pinned.py <<'END'\n{CROWDED}{pinned}assert not failed, failed\nEND\n"
        "python3 /tmp/pinned.py\nend",
        namespace=SMALL,
    )


def test_pinned_pages(run: Run, volume: Volume) -> None:
    """They change while they are written: their checksums have to be right all the same."""
    check(
        run, volume, f"start\ncat >/tmp/pinned.py <<'END'\n{PINNED}END\npython3 /tmp/pinned.py\nend"
    )
