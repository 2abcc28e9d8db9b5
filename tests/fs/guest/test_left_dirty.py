# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks that background cleaning finds dirty in the page cache, and leaves to be written."""

import re

import pytest
from mounted import SMALL, VOLUMES, Run, script

pytestmark = pytest.mark.guest

# Two files have most of the drive. A few bytes, or a block, are written here and there in both of
# them, always to a file of its own and to its copy in memory; some stay dirty for a while.
OVERWRITTEN = """
echo 3000000 >/proc/sys/vm/dirty_bytes
start
cat >/tmp/overwrite.py <<'END'
import os, random
chance = random.Random(1)
size = 15 << 20
files = {name: os.open(f"/mnt/{name}", os.O_RDWR | os.O_CREAT) for name in "ab"}
copies = {name: bytearray(chance.randbytes(size)) for name in "ab"}
for name, file in files.items():
    os.pwrite(file, copies[name], 0)
os.sync()
for number in range(40000):
    name = chance.choice("ab")
    # a few blocks are written most: they are dirty when a zone that has them is cleaned
    block = int(size // 4096 * chance.random() ** 3)
    length = 4096 if number % 3 else chance.randrange(1, 100)
    at = block * 4096 + chance.randrange(4097 - length)
    data = chance.randbytes(length)
    os.pwrite(files[name], data, at)
    copies[name][at : at + length] = data
for name, copy in copies.items():
    open(f"/tmp/{name}", "wb").write(copy)
END
python3 /tmp/overwrite.py
sync
echo left $(cat /sys/fs/rfs/nvme0n1/clean_left) of $(cat /sys/fs/rfs/nvme0n1/cleaned_zones) zones
cmp /mnt/a /tmp/a && cmp /mnt/b /tmp/b
again
cmp /mnt/a /tmp/a && cmp /mnt/b /tmp/b
rm /mnt/a /mnt/b
end
"""


@pytest.mark.parametrize("name", ["rfs", "rfs-compact"])
def test_blocks_that_are_left_are_written(run: Run, name: str) -> None:
    """Of two files, by turns; as pages where small writes are pieces, too."""
    volume = VOLUMES[name]
    output = run(script(volume, OVERWRITTEN), system=volume.system, namespace=SMALL).output
    found = re.search(r"^left (\d+) of (\d+) zones$", output, re.M)
    assert found
    assert int(found[1]) > 5
