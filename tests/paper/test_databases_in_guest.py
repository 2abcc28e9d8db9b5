# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: RISA's database cells load a table once, and go on with it in rounds."""

import dataclasses
import json
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.compare import stack_run, stack_script
from rsd.compare.benchmarks import QUERIES
from rsd.compare.figures import counters, read_json
from rsd.compare.run import guest_failure
from rsd.compare.stacks import RISA, STACKS
from rsd.machine import run_guest
from rsd.paper import databases, risa, rounds
from rsd.paper.entry import Scale
from rsd.progress import Progress

pytestmark = pytest.mark.guest

NAME = "ext4-page"
ROWS = 3000
EACH = 40
# 20.48 MiB of the drive's 2,048
SCALE = Scale(capacities=0.01, live=20)


def make(name: str, built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    """A new volume, which is not aged."""
    stack = STACKS[name]
    script = stack_script.age(stack, RISA).replace("must python3 /tmp/age.py", "true")
    job = stack_run.stack_job(stack, RISA, script, tmp_path / "media", tmp_path / "made")
    assert not guest_failure(run_guest(job, built, cache=rsd_cache))


@pytest.mark.parametrize("name", risa.SYSTEMS.values())
def test_pages_are_rewritten_as_they_are(
    name: str, built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    make(name, built, rsd_cache, tmp_path)
    digest = f"sha256sum {databases.TABLE} >/out/%s\n"
    count = "rsdctl show --json $drive >/out/%s.json\n"
    script = stack_script.add(
        STACKS[name],
        databases.load(ROWS)
        + digest % "before"
        + count % "before"
        + databases.rewrite(8 << 20)
        + count % "after"
        + digest % "after",
    )
    job = stack_run.stack_job(STACKS[name], RISA, script, tmp_path / "media", tmp_path / "out")
    result = run_guest(job, built, cache=rsd_cache)
    assert not guest_failure(result), result.output
    texts = [(tmp_path / "out" / when).read_text() for when in ("before", "after")]
    assert texts[0] == texts[1] and len(texts[0].split()) == 2
    begun, ended = (
        counters(read_json(tmp_path / "out" / f"{when}.json"))["host_write_pages"]
        for when in ("before", "after")
    )
    # and little else: maps of the file system
    assert 2048 <= ended - begun < 2048 + 256


def test_rounds_go_on_with_the_table(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(NAME, built, rsd_cache, tmp_path)
    monkeypatch.setattr(rounds, "aged_volume", lambda *arguments: tmp_path)
    benchmark = databases.queries(ROWS, EACH, 20)
    loaded = dataclasses.replace(databases.LOADED, load=databases.load(ROWS), rounds=2)
    plan = rounds.Plan(NAME, benchmark, SCALE, loaded)
    target = tmp_path / "rounds"
    target.mkdir()
    context = Context(built, Cache(tmp_path / "cache"), Progress())
    rounds._measure(plan, context, target)
    found = json.loads((target / "rounds.json").read_text())["rounds"]
    assert len(found) == 2
    # the pages that were rewritten count, and the first round is not the first write
    assert found[0]["all_written"] > SCALE.capacities * RISA.raw_mib * 256
    for one in found:
        assert one["own"].keys() == {f"{query}.rate" for query in QUERIES}
        assert one["written"] > 0
    reports = [(target / str(n) / "raw" / "delete").read_text() for n in (1, 2)]
    # Queries of the second round delete other rows: those of the first are gone.
    deleted = [int(report.split("write:")[1].split()[0]) for report in reports]
    assert all(number > EACH // 4 for number in deleted), deleted
