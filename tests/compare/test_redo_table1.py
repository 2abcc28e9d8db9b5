# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of `./rsd bench redo-table1`."""

import pytest

from rsd.bench.redo_table1 import STACKS, TABLE1, row
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.stacks import REDO


def test_the_papers_directions() -> None:
    above = [paper.benchmark for paper in TABLE1 if paper.ext4_above]
    assert above == ["redo-tiobench-8", "redo-sysbench"]
    names = {benchmark.name for benchmark in BENCHMARKS if benchmark.scale is REDO}
    assert {paper.benchmark for paper in TABLE1} <= names


@pytest.mark.parametrize(("ext4", "passed"), [(1001, True), (1000, False), (999, False)])
def test_a_direction_that_does_not_hold_is_no_pass(ext4: int, passed: bool) -> None:
    sysbench, iozone = TABLE1[1], TABLE1[2]
    found = row(sysbench, dict(zip(STACKS, (5, ext4, 1000, 7), strict=True)))
    assert found.passed is passed
    assert found.measured == f"{ext4:,} and 1,000; on block-ftl 5; ext4 with discard 7"
    assert row(iozone, dict(zip(STACKS, (5, ext4, 1000, 7), strict=True))).passed is (ext4 < 1000)
