# SPDX-License-Identifier: GPL-2.0-or-later
"""A paper's guests as the cells of a workflow, and their results taken in from elsewhere."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.cluster import packed
from rsd.paper import command, risa, rounds
from rsd.paper.entry import DEFAULT
from rsd.progress import Progress

pytestmark = pytest.mark.guest


def cells(*words: str | Path) -> dict[str, list[str]]:
    """The arguments of each cell that a command writes, by its key."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.main(parser.parse_args([str(word) for word in words])) == 0
    written = json.loads(Path(words[-1], "cells.json").read_text())
    return {key: cell["arguments"] for key, cell in written.items()}


def test_figures_share_their_cells(built: Artifacts, tmp_path: Path) -> None:
    """Each guest is a cell once, and is told what measures it."""
    out = ("--out", tmp_path / "out")
    some = cells("risa", "figure8", *out, "--snakemake", tmp_path / "some")
    assert len(some) == 3 * len(risa.TIOBENCH)
    for key, arguments in some.items():
        assert arguments[:3] == ["paper", "risa", "figure8"]
        assert arguments[-2:] == ["--cell", key]
    everything = cells("risa", *out, "--snakemake", tmp_path / "all")
    assert some.keys() < everything.keys()
    benchmarks = {*risa.WRITES, *risa.READS.values(), *risa.TIOBENCH.values()}
    assert len(everything) == 3 * len(benchmarks)
    # Another scale is other work.
    other = cells("risa", "figure8", *out, "--capacities", "2", "--snakemake", tmp_path / "other")
    assert not other.keys() & everything.keys()


def test_results_from_elsewhere_give_the_same_figures(built: Artifacts, tmp_path: Path) -> None:
    """Packed on one machine, taken in by another, which measures nothing."""

    def result(number: int) -> Callable[[Path], None]:
        one = rounds.Round(number, 1, 2, 3, 4.0, 5, own={"file.latency.mean": 0.25})
        facts = {"rounds": [vars(one), vars(one)], "no_space": False}

        def build(target: Path) -> None:
            (target / "rounds.json").write_text(json.dumps(facts))

        return build

    plans = risa._plans(DEFAULT, ["risa-tiobench-1"], ["ext4-page", "rfs+rsd"])
    store = tmp_path / "store"
    (store / "cells").mkdir(parents=True)
    there = Context(built, Cache(tmp_path / "there"), Progress())
    for number, plan in enumerate(plans):
        unit = rounds.unit(plan, there)
        entry = there.cache.entry(unit.kind, unit.key, result(number))
        packed.pack(unit, entry, built.hashes, store / "cells" / f"{unit.key}{packed.SUFFIX}")
    here = Context(built, Cache(tmp_path / "here"), Progress())
    units = [rounds.unit(plan, here) for plan in plans]
    assert packed.take_in(store, units, built.hashes, here.cache) == []
    assert rounds.measure(plans, here) == rounds.measure(plans, there)
    taken = [
        rounds.measure(plans, here)["risa-tiobench-1", plan.stack].last.taken for plan in plans
    ]
    assert taken == [0, 1]
