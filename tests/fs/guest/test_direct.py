# SPDX-License-Identifier: GPL-2.0-or-later
"""Direct reads: past the page cache, and as right as those through it."""

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
