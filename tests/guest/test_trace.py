# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace recorded while a guest works is replayed by rsdsim to the nanosecond."""

import re
import subprocess
from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome

pytestmark = pytest.mark.guest

ZONED = """
zappend --zones 0-3 --ios 600 --qd 16 --oob /dev/ng0n1
blkzone reset -o 0 -l 0x8000 /dev/nvme0n1
fio --name=r --filename=/dev/nvme0n1 --rw=randread --zonemode=zbd --bs=4k --size=64M \\
    --number_ios=400 --ioengine=io_uring --iodepth=8 --direct=1 --thread > /out/fio
"""
CONVENTIONAL = """
mkfs.ext4 -q /dev/nvme0n1
mount -o discard /dev/nvme0n1 /mnt
dd if=/dev/urandom of=/mnt/a bs=64k count=40 conv=fsync
cp /mnt/a /mnt/b
rm /mnt/a
sync
umount /mnt
"""


def record(
    built: Artifacts, cache: Cache, directory: Path, script: str, namespace: dict[str, str]
) -> Path:
    """The trace of a guest that ran the script."""
    directory.mkdir()
    trace = directory / "t.rsdtrace"
    job = GuestJob(
        system="rsd",
        script="set -ex\n" + script,
        out_dir=directory / "out",
        wall_limit_s=3600,
        namespace={"trace": str(trace), **namespace},
    )
    result = machine.run_guest(job, built, cache=cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output
    return trace


@pytest.mark.parametrize(
    ("script", "namespace"),
    [(ZONED, {}), (CONVENTIONAL, {"ftl": "page", "oob": "0"})],
    ids=["zoned", "conventional"],
)
def test_replay(
    built: Artifacts,
    rsd_cache: Cache,
    tmp_path: Path,
    rsdsim: Path,
    script: str,
    namespace: dict[str, str],
) -> None:
    """And another run of the guest makes the same trace, byte for byte."""
    trace = record(built, rsd_cache, tmp_path / "one", script, namespace)
    done = subprocess.run(
        [rsdsim, "--replay", trace, "--check"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    match = re.search(
        r"(\d+) completions compared, 0 differ; \d+ counters", done.stderr + done.stdout
    )
    assert match and int(match[1]) > 100, done.stdout + done.stderr
    again = record(built, rsd_cache, tmp_path / "two", script, namespace)
    assert again.read_bytes() == trace.read_bytes()
