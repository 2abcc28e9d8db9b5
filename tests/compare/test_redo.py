# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of `./rsd bench redo-table1` and `redo-rfs`."""

from pathlib import Path

import pytest

from rsd.bench import redo, redo_rfs
from rsd.bench.redo import Cell, blocks_taken
from rsd.bench.redo_table1 import DEVIATIONS, MOUNTED, STACKS, TABLE1, Cause, Paper, rows
from rsd.compare.benchmarks import BENCHMARKS
from rsd.compare.figures import counters, read_json
from rsd.compare.stacks import REDO
from rsd.compare.stacks import STACKS as ALL_STACKS

DATA = Path(__file__).parent / "data" / "stacks"
TIOBENCH, SYSBENCH, IOZONE = TABLE1[:3]


def test_the_papers_directions() -> None:
    above = [paper.benchmark for paper in TABLE1 if paper.ext4_above]
    assert above == ["redo-tiobench-8", "redo-sysbench"]
    names = {benchmark.name for benchmark in BENCHMARKS if benchmark.scale is REDO}
    assert set(redo.NAMES) == {paper.benchmark for paper in TABLE1} <= names
    assert ALL_STACKS.keys() >= {*STACKS, *redo_rfs.OTHERS, redo_rfs.OURS}


def cell(taken: int, written: int = 0, copied: int = 0) -> Cell:
    return Cell(taken, written, copied, seconds=1)


def of(paper: Paper, stack: str, ext4: Cell, f2fs: Cell) -> tuple[bool | None, str]:
    """What becomes of the row of a stack."""
    cells = {name: cell(1) for name in STACKS} | {stack: ext4, "f2fs-page": f2fs}
    row = rows(paper, cells)[list(MOUNTED).index(stack)]
    assert row.measured == f"{ext4.taken:,}, {f2fs.taken:,} (1)"
    return row.passed, row.deviation


@pytest.mark.parametrize(("ext4", "passed"), [(1001, True), (1000, False), (999, False)])
def test_the_papers_direction_has_to_hold(ext4: int, passed: bool) -> None:
    assert (TIOBENCH.benchmark, "ext4-page") not in DEVIATIONS
    got, why = of(TIOBENCH, "ext4-page", cell(ext4), cell(1000))
    assert got is passed
    assert bool(why) is not passed and (passed or why.startswith("NOT as on record, above"))


@pytest.mark.parametrize(
    ("ext4", "passed"),
    [
        # above on record, where the paper has below, because of copies
        (cell(1001, 500, 900), None),
        (cell(1001, 700, 900), False),  # the file system writes more: not that cause
        (cell(1001, 500, 700), False),
        (cell(1000, 500, 900), False),
        (cell(999, 500, 900), False),  # the paper's direction now
    ],
)
def test_a_deviation_has_to_be_the_one_on_record(ext4: Cell, passed: bool | None) -> None:
    assert DEVIATIONS[IOZONE.benchmark, "ext4-page"] is Cause.COPIES
    got, why = of(IOZONE, "ext4-page", ext4, cell(1000, 600, 800))
    assert got is passed
    assert why.startswith("as on record, above" if passed is None else "NOT as on record, above")


@pytest.mark.parametrize(("written", "passed"), [(500, None), (700, False)])
def test_what_is_written_is_a_cause_too(written: int, passed: bool | None) -> None:
    assert DEVIATIONS[SYSBENCH.benchmark, "ext4-page"] is Cause.WRITES
    assert of(SYSBENCH, "ext4-page", cell(999, written), cell(1000, 600))[0] is passed


def test_rfs_has_to_meet_the_marks_or_have_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    erasures = redo_rfs.FIGURES[0]
    taken = {"f2fs-page": 100, "ext4-page": 200, "f2fs-block": 1000, redo_rfs.OURS: 64}
    cells = {(name, stack): cell(taken[stack]) for name in redo.NAMES for stack in taken}
    monkeypatch.setattr(redo_rfs, "LOSSES", {})
    monkeypatch.setattr(redo_rfs, "MISSES", {})
    verdicts = [row.passed for row in redo_rfs.rows(erasures, cells)]
    assert verdicts == [True] * 8
    # 8 times as many in one benchmark: 1.5 times in the mean
    cells["redo-bonnie", redo_rfs.OURS] = cell(512)
    verdicts = [row.passed for row in redo_rfs.rows(erasures, cells)]
    assert verdicts == [True, True, True, False, True, False, False, False]
    monkeypatch.setattr(redo_rfs, "LOSSES", {("erasures", "redo-bonnie"): "files"})
    monkeypatch.setattr(redo_rfs, "MISSES", {("erasures", "f2fs-page"): "bonnie++"})
    found = redo_rfs.rows(erasures, cells)
    assert [row.passed for row in found] == [True] * 3 + [None, True, None, False, False]
    assert found[3].deviation.startswith("files; pages programmed: rfs+rsd 0 and 0 copies")
    assert found[5].measured == "-3.0%"


@pytest.mark.parametrize(("timb", "moved"), [(3, 2), (4, 1)])
def test_the_inode_map_has_a_limit(timb: int, moved: int) -> None:
    cell = Cell(0, 0, 0, 1, pages=2000, inode_map=20, timb=timb, moved_map=moved)
    rows = redo_rfs.map_rows("redo-bonnie", cell)
    assert [row.passed for row in rows] == [timb == 3, moved == 1]
    assert rows[0].measured == f"{timb / 20:.3f}%; all writes of the inode map 1.000%"
    assert rows[1].measured == f"{moved / 10:.3f}%"


@pytest.mark.parametrize("directory", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_blocks_taken_are_what_was_programmed(directory: Path) -> None:
    """In blocks of 128 pages, but for those that are partly written at either end."""
    before, after = (
        counters(read_json(directory / when / "counters.json")) for when in ("before", "after")
    )
    programs = sum(after[name] - before[name] for name in after if name.startswith("prog_"))
    assert blocks_taken(directory) == pytest.approx(programs / 128, abs=8)
