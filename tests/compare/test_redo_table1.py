# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of `./rsd bench redo-table1`."""

from pathlib import Path

import pytest

from rsd.bench.redo_table1 import STACKS, TABLE1, blocks_taken, rows
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.figures import counters, read_json
from rsd.compare.stacks import REDO
from rsd.compare.stacks import STACKS as ALL_STACKS

DATA = Path(__file__).parent / "data" / "stacks"


def test_the_papers_directions() -> None:
    above = [paper.benchmark for paper in TABLE1 if paper.ext4_above]
    assert above == ["redo-tiobench-8", "redo-sysbench"]
    names = {benchmark.name for benchmark in BENCHMARKS if benchmark.scale is REDO}
    assert {paper.benchmark for paper in TABLE1} <= names
    assert ALL_STACKS.keys() >= set(STACKS)


@pytest.mark.parametrize(("ext4", "above"), [(1001, True), (1000, None), (999, False)])
def test_a_direction_that_does_not_hold_is_no_pass(ext4: int, above: bool | None) -> None:
    sysbench, iozone = TABLE1[1], TABLE1[2]
    taken = dict(zip(STACKS, (5, 1000, ext4, 7), strict=True))
    without, with_discard = rows(sysbench, taken)
    assert without.passed is (above is True) and with_discard.passed is False
    assert without.measured == f"{ext4:,}, 1,000 (5)"
    assert with_discard.measured == "7, 1,000 (5)"
    assert rows(iozone, taken)[0].passed is (above is False)


@pytest.mark.parametrize("directory", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_blocks_taken_are_what_was_programmed(directory: Path) -> None:
    """In blocks of 128 pages, but for those that are partly written at either end."""
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    programs = sum(after[name] - before[name] for name in after if name.startswith("prog_"))
    assert blocks_taken(directory) == pytest.approx(programs / 128, abs=8)
