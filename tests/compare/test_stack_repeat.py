# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark twice in real guests, on F2FS over zones and a second namespace: the second boots."""

from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare import selection
from rsd.compare.cells import Level
from rsd.compare.run import differing, merged
from rsd.compare.stack_run import run_stack, stack_plans
from rsd.progress import Progress

pytestmark = pytest.mark.guest


def test_a_run_from_the_saved_guest_and_a_cold_one_are_identical(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    chosen = selection.select(Level.QUICK, ["f2fs-rsd"], ["small-sqlite-delete"]).benchmarks
    plans = stack_plans(chosen, tmp_path, keep=False, cold=True)
    assert [plan.cold for plan in plans] == [False, True]
    runs = [run_stack(plan, built, rsd_cache, Progress()) for plan in plans]
    assert [run.failures for run in runs] == [{}, {}]
    figures = {f.metric: f.value for f in runs[0].figures["small-sqlite-delete"]}
    # An aged drive has something to erase, and F2FS wrote more than a page a transaction.
    assert figures["nand.erases"] > 0
    assert figures["nand.programs.host"] > 400
    assert differing(merged(runs)) == []
