# SPDX-License-Identifier: GPL-2.0-or-later
"""Small writes of a volume that may have pieces of blocks."""

import re
from pathlib import Path

import pytest
from mounted import SMALL, VOLUMES, Run, script

from programs import oftl_programs
from rsd.cache import Cache
from rsd.crash.guest import VISITING

pytestmark = pytest.mark.guest

COMPACT = VOLUMES["rfs-compact"]
VOLATILE = {"write-buffer": "1048576", "ack": "buffer", "plp": "off"}

# A new file of 500 bytes, written and synchronized, 20 times; what the module has written since.
NEW_FILES = """
start $OPTIONS
sync
written() { cat /sys/fs/rfs/nvme0n1/written_$1; }
data=$(written data) log=$(written log)
cat >/tmp/small.py <<'END'
import os
for number in range(20):
    fd = os.open(f"/mnt/{number}", os.O_WRONLY | os.O_CREAT)
    os.write(fd, bytes([65 + number]) * 500)
    os.fsync(fd)
    os.close(fd)
END
python3 /tmp/small.py
echo data $(($(written data) - data)) log $(($(written log) - log))
shut_down 2
end
start
python3 -c 'for n in range(20): assert open(f"/mnt/{n}", "rb").read() == bytes([65 + n]) * 500'
end
"""


@pytest.mark.parametrize(("option", "data", "log"), [("on", 0, 20), ("off", 20, 20)])
def test_a_new_file_is_one_page(run: Run, option: str, data: int, log: int) -> None:
    """The log has its name and its bytes; after a power cut they are there."""
    body = NEW_FILES.replace("$OPTIONS", f"-o compact={option}")
    output = run(script(COMPACT, body), system=COMPACT.system).output
    assert re.findall(r"^data (\d+) log (\d+)$", output, re.M) == [(str(data), str(log))]


# 100 files that one syncfs makes durable; all that was written, and check-points, since.
SYNCED = """
start
sync
total() { cat /sys/fs/rfs/nvme0n1/written_* | awk '{ sum += $1 } END { print sum }'; }
checkpoints() { cat /sys/fs/rfs/nvme0n1/checkpoints; }
cat >/tmp/many.py <<'END'
for number in range(100):
    with open(f"/mnt/{number}", "wb") as stream:
        stream.write(bytes([number]) * 500)
END
before=$(total) had=$(checkpoints)
python3 /tmp/many.py
sync -f /mnt
echo written $(($(total) - before)) checkpoints $(($(checkpoints) - had))
stat -c '%s %Y %Z' /mnt/* >/tmp/before
shut_down 2
end
start
stat -c '%s %Y %Z' /mnt/* | cmp - /tmp/before
python3 -c 'for n in range(100): assert open(f"/mnt/{n}", "rb").read() == bytes([n]) * 500'
before=$(checkpoints)
sync
# what was read has other times, which no record has
test $(checkpoints) -gt $before
end
"""


def test_one_sync_of_many_files_is_of_the_log(run: Run) -> None:
    output = run(script(COMPACT, SYNCED), system=COMPACT.system).output
    found = re.search(r"^written (\d+) checkpoints (\d+)$", output, re.M)
    assert found
    assert int(found[1]) <= 20
    assert int(found[2]) == 0


# Ten blocks of a file that is there get 100 bytes each, and nobody asks for them to be durable.
BEHIND = """
start $OPTIONS
written() { cat /sys/fs/rfs/nvme0n1/written_$1; }
cat >/tmp/behind.py <<'END'
import os, sys
fd = os.open("/mnt/f", os.O_RDWR | os.O_CREAT)
if sys.argv[1] == "make":
    os.write(fd, b"a" * 40 * 4096)
    os.fsync(fd)
elif sys.argv[1] == "change":
    for number in range(10):
        os.pwrite(fd, b"b" * 100, number * 4 * 4096 + 1000)
else:
    block = b"a" * 1000 + b"b" * 100 + b"a" * (4 * 4096 - 1100)
    assert os.pread(fd, 41 * 4096, 0) == block * 10
END
python3 /tmp/behind.py make
sleep 60
data=$(written data) pieces=$(written pieces)
python3 /tmp/behind.py change
sleep 90
echo data $(($(written data) - data)) pieces $(($(written pieces) - pieces))
shut_down 2
end
start
python3 /tmp/behind.py look
end
"""


@pytest.mark.parametrize(("option", "data", "pieces"), [("on", 0, 1), ("off", 10, 0)])
def test_what_linux_writes_by_itself_is_one_page(
    run: Run, option: str, data: int, pieces: int
) -> None:
    """The check-point that follows has the bytes of all blocks of the file in its diff node."""
    body = BEHIND.replace("$OPTIONS", f"-o compact={option}")
    output = run(script(COMPACT, body), system=COMPACT.system).output
    found = re.findall(r"^data (\d+) pieces (\d+)$", output, re.M)
    assert found == [(str(data), str(pieces))]


def test_posix(run: Run) -> None:
    """Programs see nothing of pieces: stat(2) says the same before a check-point and after."""
    run(script(COMPACT, "start; /in/posix /mnt; again; end"), system=COMPACT.system)


def test_it_is_refused_where_there_are_no_pieces(run: Run) -> None:
    body = """
    mkfs.rfs -q -f $drive
    fails 32 mount -t rfs -o compact=on $drive /mnt 2>/tmp/why
    mount -t rfs $drive /mnt
    fails 32 mount -o remount,compact=on /mnt
    umount /mnt
    grep "mkfs.rfs -c" /tmp/why
    """
    run(script(COMPACT, body), system=COMPACT.system)


# Bytes here and there, over pages and pieces, mapped, truncated, against a copy in memory.
MIXED = """
start
cat >/tmp/mixed.py <<'END'
import mmap, os, random
rng = random.Random(7)
files = {}
for number in range(8):
    files[number] = bytearray()
def verify(number):
    with open(f"/mnt/{number}", "rb") as stream:
        assert stream.read() == files[number], number
for step in range(1500):
    number = rng.randrange(8)
    want = files[number]
    fd = os.open(f"/mnt/{number}", os.O_RDWR | os.O_CREAT)
    act = rng.randrange(20)
    if act < 13:
        at = rng.randrange(len(want) + 1) if rng.randrange(3) else len(want)
        data = rng.randbytes(rng.choice([1, 10, 100, 500, 1500, 6000]))
        if at + len(data) < 60000:
            os.pwrite(fd, data, at)
            want.extend(bytes(max(0, at + len(data) - len(want))))
            want[at : at + len(data)] = data
    elif act == 13:
        size = rng.randrange(60000)
        os.ftruncate(fd, size)
        del want[size:]
        want.extend(bytes(size - len(want)))
    elif act == 14 and want:
        with mmap.mmap(fd, 0) as area:
            at = rng.randrange(len(want))
            area[at] = want[at] = rng.randrange(256)
    elif act == 15:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    elif act == 16:
        os.posix_fallocate(fd, 0, max(1, len(want)))
    if rng.randrange(2):
        os.fsync(fd)
    if rng.randrange(300) == 0:
        os.sync()
    os.close(fd)
    if step % 50 == 0:
        with open("/proc/sys/vm/drop_caches", "w") as stream:
            stream.write("1")
        verify(number)
with open("/tmp/want", "wb") as stream:
    for number in range(8):
        verify(number)
        fd = os.open(f"/mnt/{number}", os.O_RDWR | os.O_CREAT)
        os.fsync(fd)
        stream.write(files[number])
END
python3 /tmp/mixed.py
cat /mnt/0 /mnt/1 /mnt/2 /mnt/3 /mnt/4 /mnt/5 /mnt/6 /mnt/7 | cmp - /tmp/want
echo pieces $(cat /sys/fs/rfs/nvme0n1/pieces) merges $(cat /sys/fs/rfs/nvme0n1/piece_merges)
shut_down 2
end
start
cat /mnt/0 /mnt/1 /mnt/2 /mnt/3 /mnt/4 /mnt/5 /mnt/6 /mnt/7 | cmp - /tmp/want
again
cat /mnt/0 /mnt/1 /mnt/2 /mnt/3 /mnt/4 /mnt/5 /mnt/6 /mnt/7 | cmp - /tmp/want
mkdir /mnt/other
end
mount -t rfs $drive /mnt
cat /mnt/0 /mnt/1 /mnt/2 /mnt/3 /mnt/4 /mnt/5 /mnt/6 /mnt/7 | cmp - /tmp/want
end
"""


def test_bytes_here_and_there(run: Run) -> None:
    output = run(script(COMPACT, MIXED), system=COMPACT.system).output
    found = re.search(r"^pieces (\d+) merges (\d+)$", output, re.M)
    assert found
    assert int(found[1]) > 200
    assert int(found[2]) > 50


# Bytes over the border of two blocks, or more; what the module has written since.
ENDS = """
start $OPTIONS
written() { cat /sys/fs/rfs/nvme0n1/written_$1; }
cat >/tmp/ends.py <<'END'
import os, sys
fd = os.open("/mnt/f", os.O_RDWR | os.O_CREAT)
blocks = int(sys.argv[2])
if sys.argv[1] == "make":
    os.write(fd, b"a" * 300 * 4096)
    os.fsync(fd)
elif sys.argv[1] == "change":
    for number in range(3):
        at = number * 80 * 4096 + 4000
        done = os.pwritev(fd, [b"b" * (96 + blocks * 4096 + 300)], at, $FLAGS | os.RWF_DSYNC)
        assert done == 96 + blocks * 4096 + 300
else:
    for number in range(3):
        at = number * 80 * 4096 + 4000
        data = os.pread(fd, 96 + blocks * 4096 + 302, at - 1)
        assert data == b"a" + b"b" * (96 + blocks * 4096 + 300) + b"a"
END
python3 /tmp/ends.py make $BLOCKS
sync
data=$(written data) log=$(written log) pieces=$(cat /sys/fs/rfs/nvme0n1/pieces)
python3 /tmp/ends.py change $BLOCKS
echo data $(($(written data) - data)) log $(($(written log) - log)) pieces \
    $(($(cat /sys/fs/rfs/nvme0n1/pieces) - pieces))
python3 /tmp/ends.py look $BLOCKS
shut_down 2
end
start
python3 /tmp/ends.py look $BLOCKS
again
python3 /tmp/ends.py look $BLOCKS
end
"""


@pytest.mark.parametrize("flags", ["0x40", "0"], ids=["atomic", "plain"])
@pytest.mark.parametrize(
    ("option", "blocks", "wrote"),
    [
        ("on", 0, (0, 3, 6)),
        ("on", 70, (3 * 70, 3, 6)),
        ("off", 0, (3 * 2, 0, 0)),
        ("off", 70, (3 * 72, 0, 0)),
    ],
)
def test_ends_of_a_write(
    run: Run, flags: str, option: str, blocks: int, wrote: tuple[int, int, int]
) -> None:
    """They are pieces, of which one block of the log has both; of an atomic one all is one."""
    body = ENDS.replace("$OPTIONS", f"-o compact={option}").replace("$BLOCKS", str(blocks))
    body = body.replace("$FLAGS", flags)
    output = run(script(COMPACT, body), system=COMPACT.system).output
    found = re.search(r"^data (\d+) log (\d+) pieces (\d+)$", output, re.M)
    assert found
    assert tuple(map(int, found.groups())) == wrote


# After a write whose parts are all in the log, of a file nothing else is new; then a page is sent.
SETTLED = """
start
cat >/tmp/settled.py <<'END'
import json, os, subprocess
def flushes():
    said = subprocess.run(["rsdctl", "show", "--json", "/dev/nvme0n1"], capture_output=True)
    return json.loads(said.stdout)["counters"]["flush_cmds"]["value"]
fd = os.open("/mnt/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"a" * 20 * 4096)
os.fsync(fd)
for blocks in (0, 1):
    os.sync()
    assert os.pwritev(fd, [b"b" * (96 + blocks * 4096 + 300)], 4000, 0x40) == 396 + blocks * 4096
    before = flushes()
    os.pwrite(fd, b"c" * 3500, (10 + blocks) * 4096 + 100)
    os.fsync(fd)
    print("flushes", flushes() - before)
END
python3 /tmp/settled.py
end
"""


def test_pieces_alone_are_flushed_with_the_log(run: Run) -> None:
    """A page that comes later waits for the log's flush, and for another one only after pages."""
    namespace = {**SMALL, **VOLATILE}
    output = run(script(COMPACT, SETTLED), system=COMPACT.system, namespace=namespace).output
    assert re.findall(r"^flushes (\d+)$", output, re.M) == ["2", "2"]


# 300 calls on objects of up to 2,500 bytes at any byte; each byte of what is left is looked at.
CUTS = """
ops() { rsdctl oplog $drive | sed -n 's/^operations 0 to \\([0-9]*\\),.*/\\1/p'; }
start -o commit=5
first=$(ops)
/in/objects /mnt run seed=%(seed)d,2500,300 drive=$drive >/tmp/promised
last=$(ops)
echo pieces $(cat /sys/fs/rfs/nvme0n1/pieces) atomic $(cat /sys/fs/rfs/nvme0n1/atomic_writes)
end
python3 /in/points.py $drive rfs compact=on %(points)d %(seed)d,2500,300 $first $last \\
    /tmp/promised /in/objects fsck.rfs $drive
"""


@pytest.mark.parametrize(
    ("seed", "points"),
    [(1, 20), (2, 20)]
    + [pytest.param(seed, 200, marks=pytest.mark.long) for seed in range(11, 21)],
)
def test_power_cuts_of_small_writes(
    run: Run, rsd_cache: Cache, tmp_path: Path, seed: int, points: int
) -> None:
    """With --long, 2,000 of ten workloads; half of the drives have a volatile buffer."""
    result = run(
        script(COMPACT, CUTS % {"seed": seed, "points": points}),
        system=COMPACT.system,
        namespace={
            **SMALL,
            **(VOLATILE if seed % 2 else {}),
            "op-log": str(tmp_path / "operations"),
        },
        inputs={
            "points.py": Path(__file__).with_name("points.py"),
            "objects": oftl_programs(rsd_cache) / "objects",
            **VISITING,
        },
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    found = re.search(r"^pieces (\d+) atomic (\d+)$", result.output, re.M)
    assert found
    print(found[0])
    assert int(found[1]) > 10
    assert int(found[2]) > 10
    assert f"{points} points of" in result.output
    print(f"{points} points: QEMU ran for {result.qemu_cpu_s:.0f} s")
