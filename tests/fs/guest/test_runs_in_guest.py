# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaves of the index that are runs in the node map, in the module."""

import re

import pytest
from mounted import VOLUMES, Run, script

pytestmark = pytest.mark.guest

IN_ORDER = """
counter() { cat /sys/fs/rfs/nvme0n1/$1; }
start
head -c 40000000 /dev/urandom >/tmp/content
cp /tmp/content /mnt/f
sync
echo leaves $(counter written_index) folded $(counter folded_leaves) blocks $(stat -c %b /mnt/f)
again
cmp /tmp/content /mnt/f
# here and there: these leaves are written, and the others are not
for at in 3 2000 2001 5000; do
    dd if=/dev/urandom of=/tmp/content bs=4k count=1 seek=$at conv=notrunc status=none
    dd if=/tmp/content of=/mnt/f bs=4k count=1 seek=$at skip=$at conv=notrunc status=none
done
truncate -s 30000001 /mnt/f /tmp/content
fallocate -p -o 4096 -l 40960 /mnt/f
fallocate -p -o 4096 -l 40960 /tmp/content
before=$(counter written_index)
sync
echo rewritten $(($(counter written_index) - before))
again
cmp /tmp/content /mnt/f
rm /mnt/f
end
"""


def test_a_file_in_order(run: Run) -> None:
    """Its leaves are not written, and what it is read, changed and cut by is as ever."""
    result = run(script(VOLUMES["rfs"], IN_ORDER))
    found = re.search(r"^leaves (\d+) folded (\d+) blocks (\d+)", result.output, re.M)
    assert found, result.output
    leaves, folded, sectors = map(int, found.groups())
    # 9,766 blocks have 39 leaves, and one node above them.
    assert leaves <= 1 + 4
    assert folded >= 39 - 4
    assert sectors == 8 * (9766 + 39 + 1)
    found = re.search(r"^rewritten (\d+)", result.output, re.M)
    assert found, result.output
    assert 4 <= int(found[1]) <= 6
