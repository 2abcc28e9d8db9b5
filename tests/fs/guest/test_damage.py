# SPDX-License-Identifier: GPL-2.0-or-later
"""Volumes with damaged metadata: an error or a repair, never a fault of the kernel."""

import os
import random
import re
import shutil
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

from programs import fs_programs
from rsd.cache import Cache

pytestmark = pytest.mark.guest

# How a block of RFS's metadata begins (RFS_BLOCK_MAGIC).
MAGIC = b"RFSB"
BLOCK = 4096
HOUR = 3600

POPULATE = """
start
mkdir -p /mnt/a/b
for i in $(seq 40); do head -c $((i * 1500)) /dev/zero | tr '\\0' x >/mnt/a/file$i; done
ln -s file1 /mnt/a/link
mv /mnt/a/file9 /mnt/a/b/moved
end
"""

# Whatever is answered, it is an answer: fsck(8)'s statuses and mount(8)'s.
# What is used of a damaged volume may fail (true); a fault of the kernel fails the guest.
USE = """
status=0
fsck.rfs $drive || status=$?
case $status in 0|1|4|8) ;; *) exit 9;; esac
status=0
start || status=$?
case $status in 0|32) ;; *) exit 9;; esac
if [ $status -eq 0 ]; then
    find /mnt -ls >/tmp/names || true
    find /mnt -type f -exec cat {} + >/tmp/content || true
    # the data were not touched: what is read is what was written
    test -z "$(tr -d x </tmp/content | head -c 1)"
    echo new >/mnt/new || true
    rm -rf /mnt/a/b || true
    sync
    umount /mnt
fi
"""


def metadata(media: Path) -> list[int]:
    """Where the blocks of metadata are in a media file. Holes are skipped."""
    found = []
    with media.open("rb") as stream:
        size, at = media.stat().st_size, 0
        while at < size:
            try:
                at = os.lseek(stream.fileno(), at, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:
                break
            end = os.lseek(stream.fileno(), at, os.SEEK_HOLE)
            for block in range(at, end, BLOCK):
                if os.pread(stream.fileno(), len(MAGIC), block) == MAGIC:
                    found.append(block)
            at = end
    return found


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.long)])
def test_damaged_metadata(run: Run, volume: Volume, tmp_path: Path, rounds: int) -> None:
    """Bytes of one to four blocks are changed while the volume is not mounted."""
    media = tmp_path / "media"
    options = {"system": volume.system, "namespace": {**volume.namespace, **SMALL}}
    run(script(volume, POPULATE), media=media, **options)
    blocks = metadata(media)
    assert len(blocks) > 10
    for seed in range(rounds):
        chance = random.Random(seed)
        damaged = tmp_path / "damaged"
        shutil.copyfile(media, damaged)
        with damaged.open("r+b") as stream:
            for block in chance.sample(blocks, 1 + seed % 4):
                at = block + chance.randrange(4, 200)
                byte = os.pread(stream.fileno(), 1, at)[0]
                os.pwrite(stream.fileno(), bytes([byte ^ (1 << chance.randrange(8))]), at)
        run(script(volume, USE, make=False), media=damaged, **options)


@pytest.fixture(scope="session")
def fuzz_drive(rsd_cache: Cache) -> Path:
    """The program that puts the fuzzer's volumes on a drive."""
    return fs_programs(rsd_cache) / "fuzz_drive"


# Of a volume with names, files and an updating window up to 8 blocks are changed, with checksums
# made right again in most of them. Every status and every error is an answer.
FUZZED = """
mounted=0 made=0 end=$(($(date +%%s) + %d))
for seed in $(seq %d %d); do
    test $(date +%%s) -lt $end || break
    made=$((made + 1))
    /in/fuzz_drive $drive $seed
    status=0; fsck.rfs $drive >/dev/null 2>&1 || status=$?
    case $status in 0|1|4|8) ;; *) echo "seed $seed: fsck $status"; exit 9;; esac
    options=; test $((seed %% 3)) -ne 0 || options='-o ro'
    start $options 2>/dev/null || continue
    mounted=$((mounted + 1))
    ls -lR /mnt >/dev/null 2>&1 || true
    head -q -c 100000 /mnt/later-* /mnt/dir/*0 >/dev/null 2>&1 || true
    (echo new >/mnt/new; rm /mnt/later-3; mv /mnt/later-4 /mnt/later-5) 2>/dev/null || true
    sync || true
    umount /mnt
done
echo "mounted $mounted of $made"
"""
# More than there is time for
ALL = 100_000


def fuzzed(
    run: Run, volume: Volume, program: Path, first: int, last: int, seconds: int
) -> tuple[int, int]:
    """How many of the fuzzer's volumes were mounted, and how many were made in so many seconds."""
    result = run(
        script(volume, FUZZED % (seconds, first, last), make=False),
        system=volume.system,
        namespace={**volume.namespace, **SMALL, "blocks": "28", "pages": "16"},
        inputs={"fuzz_drive": program},
        virtual_limit_s=0,
        wall_limit_s=None,
    )
    mounted, made = re.findall(r"^mounted (\d+) of (\d+)\r?$", result.output, re.M)[-1]
    return int(mounted), int(made)


@pytest.mark.parametrize("volumes", [6, pytest.param(1000, marks=pytest.mark.long)])
def test_fuzzed_volumes(run: Run, volume: Volume, fuzz_drive: Path, volumes: int) -> None:
    """What the fuzzer of tests/fs makes, under the kernel."""
    mounted, made = fuzzed(run, volume, fuzz_drive, 1, volumes, ALL)
    assert volumes // 4 < mounted <= made == volumes


@pytest.mark.long
def test_fuzzed_volumes_for_an_hour(run: Run, volume: Volume, fuzz_drive: Path) -> None:
    """Other volumes, by the guest's clock; RSD_FUZZ_S is the number of seconds, if it is set."""
    seconds = int(os.environ.get("RSD_FUZZ_S", HOUR))
    mounted, made = fuzzed(run, volume, fuzz_drive, 5001, 5000 + ALL, seconds)
    print(f"fuzzed volumes, {seconds} s: {mounted:,} of {made:,} mounted, nothing found")
    assert made // 4 < mounted <= made
