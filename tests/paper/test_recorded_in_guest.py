# SPDX-License-Identifier: GPL-2.0-or-later
"""Work on a file system, recorded in a guest: each overwrites the same, and replays are its own."""

import array
from pathlib import Path

import pytest

from rsd import sim
from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.cluster.unit import Unit
from rsd.compare.stack_run import NO_SPACE
from rsd.paper import recorded
from rsd.progress import Progress

pytestmark = pytest.mark.guest


def test_the_list_is_the_work_on_the_hot_file(rsd_cache: Cache, tmp_path: Path) -> None:
    program = sim.ensure_sfssim(rsd_cache, Progress())
    for work in recorded.WORKS:
        target = tmp_path / work
        recorded.workload(program, work, target, recorded.FLASH // 2)
        written = array.array("I", target.read_bytes())
        assert len(written) >= recorded.FLASH * (recorded.AGE + recorded.MEASURE)
        assert max(written) < recorded.hot_blocks()
        # uniform work has no block twice as often as it must, the others have
        often = max(map(written.count, set(written[:1000])))
        mean = len(written) / recorded.hot_blocks()
        assert (often > 4 * mean) == (work != "uniform")


def test_recorded_and_replayed(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of zones leaves a drive's garbage collection nothing to copy, work in place does."""
    # a file of 20 MiB, which is overwritten three times and once
    monkeypatch.setattr(recorded, "HOT", 4)
    monkeypatch.setattr(recorded, "AGE", 3 / 25)
    monkeypatch.setattr(recorded, "MEASURE", 1 / 25)
    context = Context(built, rsd_cache, Progress())
    found = recorded.measure(recorded.plans(["SFS", "ext4"], ["uniform"], 95), context)
    rfs, ext4 = (found["uniform", name] for name in ("SFS", "ext4"))
    assert not rfs.no_space and not ext4.no_space
    # 5,242 blocks were written, in blocks of 128 pages, of which the first was begun before
    for one in (rfs, ext4):
        assert one.seconds > 0
        assert all(drive.taken >= 5242 // 128 for drive in one.drives.values()), one
    assert rfs.drives["page"].amplification < 1.05
    assert rfs.drives["fast"].amplification < ext4.drives["fast"].amplification
    # done anew, and not taken from the cache
    traces = recorded.unit(recorded.Plan("SFS", "uniform", 95), context).run(context.cache)
    program = sim.ensure(rsd_cache, Progress()).path
    for ftl in recorded.FTLS:
        (again := tmp_path / ftl).mkdir()
        recorded._simulate(program, traces, ftl, again)
        assert recorded._replayed(again) == rfs.drives[ftl]


def test_no_room_in_the_part_that_counts(
    built: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the guest left until then is no result."""

    def build(target: Path) -> None:
        (target / "2").mkdir()
        (target / NO_SPACE).write_text("No space left on device")

    stopped = Unit("btrfs, zipf", "recorded", "stopped", build)
    monkeypatch.setattr(recorded, "unit", lambda *arguments: stopped)
    context = Context(built, Cache(tmp_path / "cache"), Progress())
    assert recorded._measure(recorded.Plan("btrfs", "zipf", 85), context).no_space
