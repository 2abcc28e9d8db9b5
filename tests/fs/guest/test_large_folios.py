# SPDX-License-Identifier: GPL-2.0-or-later
"""Folios of many pages, read ahead or written: whatever then changes one of them."""

import pytest
from mounted import SMALL, VOLUMES, Run, Volume, script

pytestmark = pytest.mark.guest

COMPACT = VOLUMES["rfs-compact"]


@pytest.fixture(params=["as asked", "rfs-compact"])
def volume(request: pytest.FixtureRequest, volume: Volume) -> Volume:
    """The file system under test, and if that is RFS, with compact=on too."""
    if request.param == "as asked":
        return volume
    if volume is not VOLUMES["rfs"]:
        pytest.skip("of RFS only")
    return COMPACT


# Each change is made to a file that was just read in order, and to a copy in memory.
CHANGES = """
import ctypes, mmap, os, struct, sys
PAGE, SIZE = 4096, 1000 * 4096 + 123
rfs = sys.argv[1] == "rsd"
compact = "compact=on" in open("/proc/mounts").read()
model = bytearray(os.urandom(SIZE))
file = os.open("/mnt/file", os.O_RDWR | os.O_CREAT)
os.write(file, model)
libc = ctypes.CDLL(None, use_errno=True)

def forget():
    os.fsync(file)
    open("/proc/sys/vm/drop_caches", "w").write("3")
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

def content():
    os.lseek(file, 0, os.SEEK_SET)
    return b"".join(iter(lambda: os.read(file, PAGE), b""))

def compounds(pages):
    # How many of these pages of the file are parts of larger folios: kernel, pagemap.rst
    mapped = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    found = 0
    address = address_of(mapped)
    pagemap = os.open("/proc/self/pagemap", os.O_RDONLY)
    flags = os.open("/proc/kpageflags", os.O_RDONLY)
    for page in pages:
        mapped[page * PAGE]
        entry = os.pread(pagemap, 8, (address // PAGE + page) * 8)
        frame = struct.unpack("Q", entry)[0] & (1 << 55) - 1
        found += bool(struct.unpack("Q", os.pread(flags, 8, frame * 8))[0] & (1 << 15 | 1 << 16))
    os.close(pagemap)
    os.close(flags)
    mapped.close()
    return found

def address_of(mapped):
    for line in open("/proc/self/maps"):
        if line.rstrip().endswith("/mnt/file"):
            return int(line.split("-")[0], 16)

def write(at, data):
    os.pwrite(file, data, at)
    model[at : at + len(data)] = data

def map_and_write(at, data):
    with mmap.mmap(file, 0) as mapped:
        mapped[at]
        mapped[at : at + len(data)] = data
    model[at : at + len(data)] = data

def write_directly(at, data):
    with mmap.mmap(-1, len(data)) as memory:
        memory[:] = data
        other = os.open("/mnt/file", os.O_RDWR | os.O_DIRECT)
        os.pwritev(other, [memory], at)
        os.close(other)
    model[at : at + len(data)] = data

def punch(at, length):
    assert libc.fallocate(file, 3, ctypes.c_long(at), ctypes.c_long(length)) == 0
    model[at : at + length] = bytes(length)

def cut(size):
    old = len(model)
    os.ftruncate(file, size)
    os.ftruncate(file, old)
    model[size:] = bytes(old - size)

changes = {
    "a page": lambda: write(300 * PAGE, os.urandom(PAGE)),
    "a part of a page": lambda: write(301 * PAGE + 17, os.urandom(99)),
    "many pages": lambda: write(310 * PAGE + 5, os.urandom(70 * PAGE)),
    "the end": lambda: write(len(model), os.urandom(5000)),
    "a mapping": lambda: map_and_write(400 * PAGE + 7, os.urandom(2 * PAGE)),
    "directly": lambda: write_directly(500 * PAGE, os.urandom(3 * PAGE)),
    "punched": lambda: punch(600 * PAGE + 50, 5 * PAGE),
    "cut": lambda: cut(900 * PAGE + 50),
}
for name, change in changes.items():
    forget()
    assert content() == model, name
    # that they are large is what this is about
    large = compounds(range(256, 288))
    assert not rfs or large == 32, (name, large)
    change()
    assert content() == model, name
    forget()
    assert content() == model, name
# who writes in order leaves pages where they are; one who does not, and a mapping, has
# them apart
write(256 * PAGE, os.urandom(32 * PAGE))
write(288 * PAGE, b"x")
assert not rfs or compounds([256, 288]) == 2
write(300 * PAGE, b"y")  # of a folio that is dirty already
assert not rfs or compounds([300]) == 1
map_and_write(300 * PAGE, b"z")
assert not rfs or compounds([300, 301]) == 0
write(400 * PAGE, b"x")
assert not rfs or compounds([400, 401]) == 0
assert content() == model
"""

# As above, to a file that was just written, in order and not to the drive
DIRTY = (
    CHANGES[: CHANGES.index("changes = {")]
    + """
def append(data):
    write(len(model), data)

def prepare(step):
    del model[:]
    os.ftruncate(file, 0)
    while len(model) < SIZE:
        append(os.urandom(min(step, SIZE - len(model))))

def half_sent():
    # some blocks of a folio are on their way, or there, and others are dirty
    for page in range(288, 320, 2):
        write(page * PAGE, os.urandom(PAGE))
    os.sync_file_range(file, 288 * PAGE, 16 * PAGE, 2)
    for page in range(289, 320, 3):
        write(page * PAGE + 7, os.urandom(PAGE))

def beyond_the_end(size):
    cut_to(size)
    append(os.urandom(3 * PAGE + 11))
    os.ftruncate(file, len(model) + 40 * PAGE)
    model.extend(bytes(40 * PAGE))
    write(len(model) - 20 * PAGE + 3, os.urandom(99))

def cut_to(size):
    os.ftruncate(file, size)
    del model[size:]

def blocks():
    return os.fstat(file).st_blocks // 8

os.sync_file_range = lambda fd, at, n, flags: libc.sync_file_range(
    fd, ctypes.c_long(at), ctypes.c_long(n), flags
)
changes = {
    "nothing": lambda: None,
    "a part of a page": lambda: write(301 * PAGE + 17, os.urandom(99)),
    "many pages": lambda: write(310 * PAGE + 5, os.urandom(70 * PAGE)),
    "the end": lambda: append(os.urandom(5000)),
    "a mapping": lambda: map_and_write(400 * PAGE + 7, os.urandom(2 * PAGE)),
    "directly": lambda: write_directly(500 * PAGE, os.urandom(3 * PAGE)),
    "punched": lambda: punch(600 * PAGE + 50, 5 * PAGE),
    "a folio punched": lambda: punch(608 * PAGE, 32 * PAGE),
    "cut": lambda: cut(900 * PAGE + 50),
    "half sent": half_sent,
    "beyond the end": lambda: beyond_the_end(900 * PAGE + 50),
    "beyond the end of a page": lambda: beyond_the_end(900 * PAGE),
}
for step in (PAGE, 9 * PAGE, 1 << 20, 5000):
    for name, change in changes.items():
        prepare(step)
        # that they are large is what this is about
        large = compounds(range(256, 288))
        assert not rfs or large == 32, (step, name, large)
        change()
        assert content() == model, (step, name)
        dirty = blocks()
        forget()
        assert content() == model, (step, name)
        # and pieces have a block of their own
        more = blocks() - dirty
        assert not rfs or more == 0 or (compact and more == 1), (step, name, dirty, more)
"""
)

# Blocks of a large folio of which a part is new, and others that are new as a whole
PARTS = (
    CHANGES[: CHANGES.index("changes = {")]
    + """
def counters():
    names = ("written_data", "pieces", "piece_bytes")
    return [int(open("/sys/fs/rfs/nvme0n1/" + name).read()) for name in names]

def durable():
    # What an fsync of the file adds to the counters
    before = counters()
    os.fsync(file)
    return [now - then for now, then in zip(counters(), before)]

forget()
content()
write(256 * PAGE, os.urandom(32 * PAGE))
write(288 * PAGE, os.urandom(2 * PAGE + 100))  # in order: the folio stays
write(300 * PAGE + 200, os.urandom(50))
write(300 * PAGE + 17, os.urandom(99))
write(301 * PAGE + 4000, os.urandom(200))
write(303 * PAGE + 1, os.urandom(PAGE - 1))  # all of it, in two parts
write(303 * PAGE, b"x")
write(305 * PAGE, os.urandom(PAGE))
write(305 * PAGE + 50, b"y")
assert compounds(range(256, 320)) == 64
parts = 100 + 233 + 96 + 104
assert content() == model
found = durable()
assert found == [32 + 2 + 1 + 1, 4, parts] if compact else found[0] == 40, found
# what was new then is not new again
write(320 * PAGE, os.urandom(32 * PAGE))
write(352 * PAGE, os.urandom(PAGE))
write(360 * PAGE + 500, os.urandom(7))
write(362 * PAGE + 500, os.urandom(7))
write(364 * PAGE + 500, os.urandom(7))
assert compounds(range(352, 384)) == 32
found = durable()
assert found == [33, 3, 21] if compact else found[0] == 36, found
# records in a row are whole blocks, but for the last one
os.ftruncate(file, 900 * PAGE)
del model[900 * PAGE :]
os.fsync(file)
for record in range(100):
    write(len(model), os.urandom(1000))
assert compounds([915]) == 1
assert content() == model
found = durable()
assert found[0] == 25 and found[1:] == [0, 0], found
assert content() == model
open("/tmp/want", "wb").write(model)
"""
)

# The places that a write of 1 MiB does not have are none for a page either.
FULL = """
import errno, os
MIB = 1 << 20

def piece(number, size=MIB):
    return number.to_bytes(8, "little") * (size // 8)

def fill(name, size):
    # What went into a new file of that name until the volume was full
    file = os.open("/mnt/" + name, os.O_RDWR | os.O_CREAT)
    written = 0
    while True:
        try:
            written += os.write(file, piece(len(name), size))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            return file, written

file, written = fill("large", MIB)
assert written > 16 * MIB and written % 4096 == 0, written
more, pages = fill("p", 4096)
assert pages <= 4 * 4096, pages
os.fsync(file)
os.fsync(more)
# it has its room already
for at in range(0, written, MIB):
    data = piece(at, min(MIB, written - at))
    assert os.pwrite(file, data, at) == len(data), at
os.fsync(file)
open("/proc/sys/vm/drop_caches", "w").write("3")
for at in range(0, written, MIB):
    data = piece(at, min(MIB, written - at))
    assert os.pread(file, len(data), at) == data, at
"""

# Two change pages of a file, each its own, while others read it in order again and again
RACES = """
import mmap, os, threading
PAGE, PAGES, ROUNDS = 4096, 512, 12
def page(number, round):
    return (number << 32 | round).to_bytes(8, "little") * (PAGE // 8)
file = os.open("/mnt/file", os.O_RDWR | os.O_CREAT)
for number in range(PAGES):
    os.write(file, page(number, 0))
os.fsync(file)
done = [0] * PAGES
failed = []
over = threading.Event()

def guarded(work):
    def run():
        try:
            work()
        except BaseException as error:
            failed.append(error)
            over.set()
    return threading.Thread(target=run)

def read():
    while not over.is_set():
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        mine = os.open("/mnt/file", os.O_RDONLY)
        for number in range(PAGES):
            least = done[number]
            data = os.read(mine, PAGE)
            found = int.from_bytes(data[:8], "little")
            assert found >> 32 == number, (number, found)
            assert found & 0xffffffff >= least, (number, found, least)
        os.close(mine)

def write():
    for round in range(1, ROUNDS):
        for number in range(0, PAGES, 2):
            os.pwrite(file, page(number, round), number * PAGE)
            done[number] = round
        os.fdatasync(file)

def write_mapped():
    with mmap.mmap(file, 0) as mapped:
        for round in range(1, ROUNDS):
            for number in range(1, PAGES, 2):
                mapped[number * PAGE : (number + 1) * PAGE] = page(number, round)
                done[number] = round
            os.fdatasync(file)
            mapped.madvise(mmap.MADV_DONTNEED)

readers = [guarded(read) for _ in range(2)]
writers = [guarded(write), guarded(write_mapped)]
for thread in readers + writers:
    thread.start()
for thread in writers:
    thread.join()
over.set()
for thread in readers:
    thread.join()
assert not failed, failed
for drop in (False, True):
    if drop:
        os.fsync(file)
        open("/proc/sys/vm/drop_caches", "w").write("3")
    for number in range(PAGES):
        assert os.pread(file, PAGE, number * PAGE) == page(number, ROUNDS - 1), number
"""


def test_each_change(run: Run, volume: Volume) -> None:
    """It is there, and nothing beside it is different, in memory and on the drive."""
    body = (
        f"start\ncat >/tmp/changes.py <<'END'\n{CHANGES}END\n"
        f"python3 /tmp/changes.py {volume.system}\nend"
    )
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


def test_each_change_of_what_is_dirty(run: Run, volume: Volume) -> None:
    """The same, and what was reserved is what the drive has in the end."""
    body = (
        f"start\ncat >/tmp/dirty.py <<'END'\n{DIRTY}END\npython3 /tmp/dirty.py {volume.system}\nend"
    )
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


@pytest.mark.parametrize("option", ["on", "off"])
def test_parts_of_blocks(run: Run, option: str) -> None:
    """Of a block of which a part is new, only that is in the log, and is there after a crash."""
    body = (
        f"start -o compact={option}\n"
        f"cat >/tmp/parts.py <<'END'\n{PARTS}END\n"
        "python3 /tmp/parts.py rsd\nshut_down 2\nend\nstart\ncmp /mnt/file /tmp/want\nend"
    )
    run(script(COMPACT, body), system=COMPACT.system)


def test_full_by_large_writes(run: Run, volume: Volume) -> None:
    """What has no room for all of a write has it for a part; overwriting needs none."""
    body = f"start\ncat >/tmp/full.py <<'END'\n{FULL}END\npython3 /tmp/full.py\nend"
    namespace = {**volume.namespace, **SMALL}
    run(script(volume, body), system=volume.system, namespace=namespace)


@pytest.mark.parametrize("vcpus", [1, 2])
def test_changes_at_once(run: Run, volume: Volume, vcpus: int) -> None:
    """Nobody reads what is older than a write that was over."""
    body = f"start\ncat >/tmp/races.py <<'END'\n{RACES}END\npython3 /tmp/races.py\nend"
    run(
        script(volume, body),
        system=volume.system,
        namespace=volume.namespace,
        vcpus=vcpus,
        virtual_limit_s=0,
    )
