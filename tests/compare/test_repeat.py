# SPDX-License-Identifier: GPL-2.0-or-later
"""A cell twice in real guests, once while the other cores are busy: the same records."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare.cells import Level
from rsd.compare.results import results, write
from rsd.compare.run import Plan, differing, run_plan
from rsd.compare.selection import select
from rsd.progress import Progress

pytestmark = pytest.mark.guest

WORKLOADS = ("randread-4k-qd32", "mixed-4k-qd8", "append-4k-qd8")


def test_a_busy_host_changes_no_record(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    cells = select(Level.DEFAULT, ["rsd"], WORKLOADS).cells
    runs, texts = [], []
    for number in (1, 2):
        burners = []
        if number == 2:
            for _ in range(len(os.sched_getaffinity(0))):
                burners.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        try:
            plan = Plan("rsd", number, cells, tmp_path / f"rsd.{number}")
            run = run_plan(plan, built, rsd_cache, Progress())
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        assert run.failures == {}
        assert run.figures.keys() == {cell.name for cell in cells}
        write(results([run], cells, built), tmp_path / "results.json")
        lines = (tmp_path / "results.json").read_text().splitlines()
        texts.append([line for line in lines if '"clock": "' in line and '"wall"' not in line])
        runs.append(run)
    assert differing(runs) == []
    assert texts[0] == texts[1]
    assert len(texts[0]) > 40
