# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: F2FS of 2013 is what it says, and rounds go on with the drive as they left it."""

import dataclasses
import json
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.compare import benchmarks, stack_run, stack_script
from rsd.compare.run import guest_failure
from rsd.compare.stacks import REDO, STACKS
from rsd.machine import GuestResult, run_guest
from rsd.paper import rounds
from rsd.paper.entry import Scale
from rsd.progress import Progress

pytestmark = pytest.mark.guest

NAME = "f2fs-2013-page"
TINY = benchmarks._tiobench(REDO, "tiny", 2, 16, benchmarks.FULL)


def make(built: Artifacts, cache: Cache, directory: Path, **changes: str) -> GuestResult:
    """A new volume, which is not aged."""
    stack = STACKS[NAME]
    stack = dataclasses.replace(
        stack, file_system=dataclasses.replace(stack.file_system, **changes)
    )
    script = stack_script.age(stack, REDO).replace("must python3 /tmp/age.py", "true")
    job = stack_run.stack_job(stack, REDO, script, directory / "media", directory / "out")
    return run_guest(job, built, cache=cache)


def test_f2fs_of_2013_is_asserted(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    result = make(built, rsd_cache, tmp_path, mount="mount -t f2fs -o discard $drive")
    assert result.status == stack_script.FAILED
    assert "@failed F2FS is not mounted with alloc_mode=default" in result.output
    # without what sets it
    after = STACKS[NAME].file_system.after_mount.replace("echo 0 >$policy\n", "")
    (tmp_path / "media").unlink()
    result = make(built, rsd_cache, tmp_path, after_mount=after)
    assert "@failed ipu_policy is not 0" in result.output


def test_rounds_go_on_and_are_the_same_again(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not guest_failure(make(built, rsd_cache, tmp_path))
    monkeypatch.setattr(rounds, "aged_volume", lambda *arguments: tmp_path)
    # the guests are saved in the cache of the tests, the rounds are not
    found = []
    for at in (1, 2):
        target = tmp_path / f"rounds{at}"
        target.mkdir()
        plan = rounds.Plan(NAME, TINY, Scale(capacities=0.1, live=30))
        rounds._measure(plan, Context(built, rsd_cache, Progress()), target)
        found.append(json.loads((target / "rounds.json").read_text()))
    assert found[0] == found[1]
    one, two = found[0]["rounds"][:2]
    # 24 MiB a round, which is a twentieth of the drive
    assert 1.9 < two["all_written"] / one["all_written"] < 2.1
    assert not found[0]["no_space"] and one["taken"] > 40
