# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest with two drives: each has its name, its settings and its data, and what a run prints is
the same bytes each time, from a saved guest and from one that boots."""

from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import Beside, GuestJob, Outcome

pytestmark = pytest.mark.guest

DISK = {"blocks": "200", "pages": "1000"}
SCRIPT = """
until [ -b /dev/nvme0n1 -a -b /dev/nvme1n1 ]; do sleep 0.01; done
cat /sys/block/nvme0n1/size /sys/block/nvme1n1/size /sys/class/nvme/nvme?/serial
for d in nvme0n1 nvme1n1; do
    fio --name=$d --filename=/dev/$d --direct=1 --rw=randrw --bs=4k --iodepth=4 --ioengine=libaio \
        --number_ios=500 --size=64M --output-format=json >/tmp/$d || exit
    jq -M '.jobs[0] | .read.clat_ns.mean, .write.clat_ns.mean' /tmp/$d
    echo "content of $d" | dd of=/dev/$d bs=4k count=1 conv=sync,fsync 2>/dev/null
done
head -c 20 /dev/nvme0n1 | head -n 1
head -c 20 /dev/nvme1n1 | head -n 1
rsdctl show /dev/nvme1n1 >/dev/null
"""


def run(
    built: Artifacts, cache: Cache, *, cold: bool = False, media: Path | None = None
) -> list[str]:
    job = GuestJob(
        system="page-ftl",
        script=SCRIPT,
        beside=Beside("barracuda-320", media, DISK),
        cold=cold,
        rfs=False,
    )
    result = machine.run_guest(job, built, cache=cache)
    assert (result.outcome, result.status) == (Outcome.EXITED, 0), result.output
    return [line.strip() for line in result.output.splitlines()]


def test_both_drives(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    media = tmp_path / "second.rsd"
    lines = run(built, rsd_cache, media=media)
    assert int(lines[1]) == 200 * 1000 * 8
    assert lines[2:4] == ["rsd0", "second1"]
    flash, disk = float(lines[4]), float(lines[6])
    assert disk > 1_000_000 > flash, "reads of a disk take milliseconds"
    assert lines[8:10] == ["content of nvme0n1", "content of nvme1n1"]
    assert b"content of nvme1n1" in media.read_bytes()
    # with its data, and as if nothing had been there: the same bytes
    assert run(built, rsd_cache) == lines
    assert run(built, rsd_cache, cold=True) == lines


@pytest.mark.parametrize("system", ["stock", "rsd-conv"])
def test_other_systems_as_the_second(system: str, built: Artifacts, rsd_cache: Cache) -> None:
    script = """
        until [ -b /dev/nvme0n1 -a -b /dev/nvme1n1 ]; do sleep 0.01; done
        cat /sys/class/nvme/nvme?/serial
    """
    job = GuestJob(system="rsd", script=script, beside=Beside(system), rfs=False)
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.output.split() == ["rsd0", "second1"]
