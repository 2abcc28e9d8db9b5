# SPDX-License-Identifier: GPL-2.0-or-later
"""Direct I/O: reads past the page cache, as right as those through it; writes that overlap."""

from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

# Ends with 0 if the page cache has no page of the file
NOT_CACHED = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for at in range(0, os.fstat(file).st_size, 4096):
    try:
        os.preadv(file, [bytearray(4096)], at, os.RWF_NOWAIT)
        sys.exit(f"page {at // 4096} is cached")
    except BlockingIOError:
        pass
"""

WORKERS = """
fio --minimal --directory=/mnt --direct=1 --bs=4k --size=3m --rw=randrw --verify=crc32c \\
    --verify_fatal=1 --group_reporting \\
    --name=uring --ioengine=io_uring --iodepth=32 \\
    --name=aio --ioengine=libaio --iodepth=32 \\
    --name=threads --ioengine=psync --numjobs=4 --thread >/tmp/fio
"""


@pytest.mark.parametrize("vcpus", [1, 2])
def test_beside_others(run: Run, volume: Volume, vcpus: int) -> None:
    """Who writes, truncates, or writes into the memory that is read to; any number at a time."""
    body = f"start; /in/direct /mnt/file; {WORKERS} again; end"
    run(script(volume, body), system=volume.system, namespace=volume.namespace, vcpus=vcpus)


@pytest.mark.parametrize("engine", ["io_uring", "libaio"])
def test_many_writes_at_a_time(run: Run, volume: Volume, engine: str) -> None:
    """They overlap: 32 at a time take a quarter at most of what as many take one by one."""
    result = run(
        script(
            volume,
            f"""
            start
            head -c 16M /dev/zero >/mnt/file
            sync
            for depth in 1 32; do
                fio --minimal --name=x --filename=/mnt/file --size=16m --direct=1 --bs=4k \\
                    --ioengine={engine} --iodepth=$depth --rw=randwrite --number_ios=2000 \\
                    --norandommap | cut -d';' -f50 >/out/$depth
            done
            fails 1 grep -v '^[0-9]*$' /out/1 /out/32
            end
            """,
        ),
        system=volume.system,
        namespace=volume.namespace,
    )
    one, many = (int((result.out_dir / depth).read_text()) for depth in ("1", "32"))
    assert 0 < 4 * many <= one


# Linux's own calls for libaio: 64 writes of 1 MiB, and a shutdown while they are on their way. With
# "check", after a mount: what was said to be written is there, and no write is there in part.
ON_THEIR_WAY = """
import ctypes, fcntl, json, mmap, os, struct, sys, threading, time
MIB, WRITES = 1 << 20, 64
IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
if sys.argv[1] == "check":
    results = json.load(open("/tmp/results"))
    file = open("/mnt/file", "rb")
    for i, result in enumerate(results):
        found = set(file.read(MIB))
        assert found == {i + 1} or (result < 0 and found == {0}), (i, result, found)
    sys.exit()
call = ctypes.CDLL(None, use_errno=True).syscall
file = os.open("/mnt/file", os.O_RDWR | os.O_DIRECT)
root = os.open("/mnt", os.O_RDONLY)
memory = mmap.mmap(-1, WRITES * MIB)
for i in range(WRITES):
    memory[i * MIB : (i + 1) * MIB] = bytes([i + 1]) * MIB
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
context = ctypes.c_ulong()
assert call(IO_SETUP, WRITES, ctypes.byref(context)) == 0
def shut_down():
    time.sleep(0.05)
    # _IOR('X', 125, __u32): 2 is without writing anything
    fcntl.ioctl(root, 0x8004587D, struct.pack("I", 2))
thread = threading.Thread(target=shut_down)
thread.start()
sent, results = 0, [-1] * WRITES
for i in range(WRITES):
    block = ctypes.create_string_buffer(
        struct.pack("QIIHhIQQqQII", i, 0, 0, 1, 0, file, at + i * MIB, MIB, i * MIB, 0, 0, 0)
    )
    pointer = ctypes.c_void_p(ctypes.addressof(block))
    sent += call(IO_SUBMIT, context, 1, ctypes.byref(pointer)) == 1
events = ctypes.create_string_buffer(32 * WRITES)
assert call(IO_GETEVENTS, context, sent, WRITES, events, None) == sent
for number, _, result, _ in struct.iter_unpack("QQqq", events.raw[: 32 * sent]):
    results[number] = result
thread.join()
print(results)
assert MIB in results and any(result < 0 for result in results)
json.dump(results, open("/tmp/results", "w"))
"""


def test_writes_on_their_way_fail(run: Run, volume: Volume) -> None:
    """When the volume is shut down each is told so, or is there; nothing keeps it mounted."""
    if volume.system != "rsd":
        pytest.skip("a write may be there in part")
    run(
        script(
            volume,
            f"""
            start
            head -c 64M /dev/zero >/mnt/file
            sync
            cat >/tmp/on_their_way.py <<'END'
{ON_THEIR_WAY}
END
            python3 /tmp/on_their_way.py write
            umount /mnt
            start
            python3 /tmp/on_their_way.py check
            end
            """,
        ),
        system=volume.system,
        namespace=volume.namespace,
    )


def test_past_the_page_cache(run: Run, volume: Volume) -> None:
    """What is read directly is not in memory afterwards; what is there already is read from it."""
    body = f"""
    start
    cat >/tmp/not_cached.py <<'END'
{NOT_CACHED}
END
    not_cached() {{ python3 /tmp/not_cached.py $1; }}
    head -c 4M /dev/urandom >/mnt/file
    sync
    echo 1 >/proc/sys/vm/drop_caches
    dd if=/mnt/file iflag=direct bs=64k status=none | md5sum >/tmp/direct
    not_cached /mnt/file
    md5sum </mnt/file >/tmp/cached
    fails 1 not_cached /mnt/file
    cmp /tmp/direct /tmp/cached
    # of what was written and is not on the drive yet
    dd if=/dev/zero of=/mnt/file bs=4k seek=3 count=1 conv=notrunc status=none
    dd if=/mnt/file iflag=direct bs=64k status=none | md5sum >/tmp/direct
    md5sum </mnt/file >/tmp/cached
    cmp /tmp/direct /tmp/cached
    end
    """
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


def test_where_a_part_of_the_index_is_not_in_memory(run: Run, volume: Volume) -> None:
    """Who does not wait for it is told so before anything is sent: then io_uring begins anew."""
    body = """
    start
    head -c 16M /dev/urandom >/mnt/file
    again
    # the next megabyte begins in an index block that is in memory, and ends in one that is not
    dd if=/mnt/file of=/dev/null bs=1M count=4 iflag=direct
    fio --minimal --name=x --filename=/mnt/file --offset=4m --size=12m --bs=1m --rw=read \\
        --direct=1 --ioengine=io_uring --iodepth=8 >/tmp/fio
    end
    """
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


# Linux's own calls for io_uring: a read of 4 MiB into memory of which there is no page yet
INTO_NEW_MEMORY = """
import ctypes, mmap, os, struct
SETUP, ENTER, READ, SIZE = 425, 426, 22, 4 << 20
call = ctypes.CDLL(None, use_errno=True).syscall
params = ctypes.create_string_buffer(120)
ring = call(SETUP, 1, params)
assert ring >= 0, ctypes.get_errno()
words = struct.unpack("30I", params.raw)
submit, complete = words[10:20], words[20:30]
both = mmap.mmap(ring, 4096, mmap.MAP_SHARED, offset=0)
entries = mmap.mmap(ring, 4096, mmap.MAP_SHARED, offset=0x10000000)
memory = mmap.mmap(-1, SIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
file = os.open("/mnt/file", os.O_RDONLY | os.O_DIRECT)
struct.pack_into("=BBHiQQIIQ", entries, 0, READ, 0, 0, file, 0, address, SIZE, 0, 7)
struct.pack_into("I", both, submit[6], 0)
struct.pack_into("I", both, submit[1], 1)
assert call(ENTER, ring, 1, 1, 1, None, 0) == 1, ctypes.get_errno()
result = struct.unpack_from("QiI", both, complete[5])[1]
assert result == SIZE, result
assert memory[:] == open("/mnt/file", "rb").read(SIZE)
os._exit(0)
"""


def test_into_memory_that_is_not_there_yet(run: Run, volume: Volume) -> None:
    """By io_uring, the first time who asks does not wait: nevertheless no read is a short one."""
    body = f"""
    start
    head -c 8M /dev/urandom >/mnt/file
    again
    dd if=/mnt/file of=/dev/null bs=1M iflag=direct
    python3 - <<'END'
{INTO_NEW_MEMORY}
END
    end
    """
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


def test_memory_that_ends_within_a_block_of_a_hole(run: Run, volume: Volume) -> None:
    """Zeroes are written as far as there is memory, which says nothing bad of the volume."""
    body = """
    start
    truncate -s 1M /mnt/file
    python3 -c 'import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
source = os.open("/mnt/file", os.O_RDONLY | os.O_DIRECT)
for there in True, False:
    target = mmap.mmap(-1, 12288)
    target[0:8192] = b"x" * 8192    # and the third page is not there yet, or never
    start = ctypes.addressof(ctypes.c_char.from_buffer(target))
    if not there:
        libc.munmap(ctypes.c_void_p(start + 8192), 4096)
    read = libc.pread(source, ctypes.c_void_p(start + 512), 8192, 0)
    assert read == 8192 if there else 4096 <= read < 8192, (read, ctypes.get_errno())
    assert ctypes.string_at(start + 512, read) == bytes(read)
os._exit(0)
'
    touch /mnt/still-writable
    end
    """
    run(script(volume, body), system=volume.system, namespace=volume.namespace)


def test_a_block_that_is_not_what_it_should_be(run: Run, volume: Volume, tmp_path: Path) -> None:
    """A byte of it differs on the medium: an error, and the blocks beside it are read."""
    if volume.system != "rsd":
        pytest.skip("only RFS has checksums of files' blocks")
    media = tmp_path / "media"
    options = {"system": volume.system, "namespace": {**volume.namespace, **SMALL}, "media": media}
    wanted = b"what the page holds"
    body = """
    start
    printf '%4096d' 1 >/tmp/page
    (cat /tmp/page; printf 'what the page holds%4077d' 2; cat /tmp/page) >/mnt/file
    end
    """
    run(script(volume, body), **options)
    content = media.read_bytes()
    assert content.count(wanted) == 1
    with media.open("r+b") as stream:
        stream.seek(content.index(wanted) + 100)
        stream.write(b"?")
    body = """
    start
    printf '%4096d' 1 >/tmp/page
    read_page() { dd if=/mnt/file iflag=$2 bs=4k skip=$1 count=1 status=none >/tmp/read; }
    for how in direct fullblock; do
        read_page 0 $how
        cmp /tmp/page /tmp/read
        fails 1 read_page 1 $how
        read_page 2 $how
        cmp /tmp/page /tmp/read
    done
    dmesg | grep -q "inode .* block 1: not what is at address"
    umount /mnt
    fails 4 fsck.rfs $drive
    """
    run(script(volume, body, make=False), **options)
