# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison says of what is to be done yet."""

import json
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.compare import selection
from rsd.compare.cells import Level
from rsd.compare.outlook import Outlook
from rsd.compare.stack_run import StackPlan, cell_key, stack_plans, volume_key
from rsd.progress import Progress


@pytest.fixture
def built(tmp_path: Path) -> Artifacts:
    return Artifacts(*[tmp_path] * 6, (), {"qemu": "12ab"})


def plans(tmp_path: Path) -> list[StackPlan]:
    """Two benchmarks of REDO's scale on two file systems."""
    names = ["redo-sysbench", "redo-postmark"]
    chosen = selection.select(Level.FULL, ["ext4-page", "f2fs-page"], names).benchmarks
    return stack_plans(chosen, tmp_path, keep=True)


def keep(cache: Cache, kind: str, key: str, **facts: object) -> None:
    entry = cache.root / kind / key
    entry.mkdir(parents=True)
    (entry / "host.json").write_text(json.dumps(facts))


def said(outlook: Outlook, capsys: pytest.CaptureFixture[str]) -> str:
    outlook.say(Progress())
    return capsys.readouterr().err.strip()


def test_counts_and_estimate(
    tmp_path: Path, built: Artifacts, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = Cache(tmp_path / "cache")
    todo = plans(tmp_path)
    assert len(todo) == 4
    nothing = "rsd: 4 benchmarks on file systems to do, 0 are kept; 2 volumes to age; "
    assert said(Outlook(todo, built, cache), capsys) == (
        # 4 benchmarks of 41 s and 2 agings of 128 s
        nothing
        + "about 7 min of processor time; 6 of the guests never ran here, and are guessed by"
        " the size of their drive"
    )
    # of another version; a cell of a bare drive says nothing here
    keep(cache, "cell", "a", system="ext4-page", benchmark="redo-postmark", qemu_cpu_s=3000)
    keep(cache, "cell", "b", system="f2fs-rsd", benchmark="redo-sysbench", qemu_cpu_s=1800)
    keep(cache, "cell", "c", qemu_cpu_s=99999)
    keep(cache, "aged", "d", system="ext4-page", scale="redo", qemu_cpu_s=7200)
    assert said(Outlook(todo, built, cache), capsys) == (
        nothing + "about 6.7 h of processor time"  # 2 of 50 and of 30 min, 2 agings of 2 h
    )
    first = todo[0]
    aged = volume_key(first.system, first.benchmark.scale, built)
    keep(cache, "aged", aged, system=first.system, scale="redo", qemu_cpu_s=7200)
    facts = {"system": first.system, "benchmark": first.benchmark.name, "qemu_cpu_s": 1800}
    keep(cache, "cell", cell_key(first, built), **facts)
    outlook = Outlook(todo, built, cache)
    text = said(outlook, capsys)
    assert text.startswith("rsd: 3 benchmarks on file systems to do, 1 are kept; 1 volumes to age;")
    assert not outlook.done(first)
    for plan in todo[1:3]:
        assert outlook.done(plan) and not outlook.done(plan)
    text = said(outlook, capsys)
    assert text.startswith("rsd: 1 benchmarks") and "; 0 volumes to age; about 50 min" in text
    assert outlook.done(todo[3])
