# SPDX-License-Identifier: GPL-2.0-or-later
"""Rewinding a drive under Linux, with I/O before and after each."""

import re
from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome

pytestmark = pytest.mark.guest

# Each write is acknowledged before the next: after N of them, zone 0 has N blocks. Then the
# zone is reset (operation 65), and 16 blocks of another content are written.
RECORD = r"""
dev=/dev/nvme0n1
rsdctl oplog --restart
seq 100000 | head -c 262144 > /tmp/one
seq 200000 300000 | head -c 65536 > /tmp/two
dd if=/tmp/one of=$dev bs=4k oflag=direct status=none
blkzone reset -c 1 $dev
dd if=/tmp/two of=$dev bs=4k oflag=direct status=none
rsdctl oplog
"""
# What a cut after operation N left must be the first blocks of what was being written.
REWINDS = r"""
rewinds=0
check() {
    rsdctl rewind --op $1 --outcomes $2
    rewinds=$((rewinds + 1))
    wp=$(blkzone report -c 1 $dev | sed -n 's/.*wptr 0x\([0-9a-f]*\).*/\1/p')
    blocks=$((0x$wp / 8))
    test $blocks -ge $3
    test $blocks -le $4
    if [ $3 -gt 0 ]; then
        dd if=$dev bs=4k count=$3 iflag=direct status=none | cmp -n $(($3 * 4096)) - $5
    fi
    # and it goes on there, both ways that Linux knows
    dd if=/tmp/two of=$dev bs=4k seek=$blocks count=2 oflag=direct status=none
    dd if=$dev bs=4k skip=$blocks count=2 iflag=direct status=none | cmp -n 8192 - /tmp/two
}
for round in 1 2; do
    for n in 64 1 40 7 63 22 33 50 13 28; do
        check $n a $n $n /tmp/one
        check $n c $n $((n + 1)) /tmp/one
        check $n $round$n $n $((n + 1)) /tmp/one
    done
    for n in 66 73 80; do
        check $n $n $((n - 65)) $((n - 64)) /tmp/two
    done
    check 65 a 0 0 /tmp/two
done
echo "$rewinds rewinds"
# what is in use is left alone
mkdir -p /tmp/mnt
exec 9< $dev
! rsdctl rewind --op 3 2> /tmp/said
grep 'has it open' /tmp/said
exec 9<&-
rsdctl rewind --op 3 --outcomes a
test $((0x$(blkzone report -c 1 $dev | sed -n 's/.*wptr 0x\([0-9a-f]*\).*/\1/p') / 8)) = 3
# a cut, and the drive is back
rsdctl cut
dd if=$dev bs=4k count=3 iflag=direct status=none | cmp -n 12288 - /tmp/one
"""


def test_rewinding_under_linux(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    job = GuestJob(
        system="rsd",
        script="set -ex\n" + RECORD + "set +x\n" + REWINDS,
        out_dir=tmp_path / "out",
        wall_limit_s=3600,
        namespace={"op-log": str(tmp_path / "log"), "idle-erase": "0"},
    )
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output + result.console[-3000:]
    found = re.search(r"(\d+) rewinds", result.output)
    assert found and int(found[1]) == 68, result.output
