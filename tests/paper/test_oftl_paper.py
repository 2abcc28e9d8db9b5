# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL's workloads: as table 2 says they are, and replayed as they were generated."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.compare.drive_trace import Command
from rsd.compare.figures import BadOutput
from rsd.paper import oftl, oftl_cell, oftl_metadata, oftl_pages, oftl_window, oftl_work
from rsd.paper.claim import Verdict
from rsd.paper.entry import DEFAULT
from rsd.paper.oftl_work import TABLE, TABLE_PAGE, TABLE_PAGES, WORKLOADS, Write
from rsd.progress import Progress


def _sessions(work: list[Write]) -> list[list[Write]]:
    ends = [0, *(at for at, one in enumerate(work, 1) if one.last)]
    assert ends[-1] == len(work)
    return [work[low:high] for low, high in itertools.pairwise(ends)]


def test_table_2_is_that_of_the_paper(built: Artifacts, rsd_cache: Cache) -> None:
    claims = oftl.table2(Context(built, rsd_cache, Progress()), DEFAULT)
    assert len(claims) == 3
    for claim in claims:
        assert claim.verdict is Verdict.REPRODUCED, claim


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_session_is_of_one_file_and_one_kind(name: str) -> None:
    work = oftl_work.writes(name)
    assert work == oftl_work.writes(name)
    assert len(work) == WORKLOADS[name].here
    ends: dict[int, int] = {}
    new = 0
    for session in _sessions(work):
        (file,) = {one.file for one in session}
        if file == TABLE and WORKLOADS[name].table:
            assert all(one.aligned and one.length == TABLE_PAGE for one in session)
            assert all(one.offset < TABLE_PAGES * TABLE_PAGE for one in session)
            continue
        new += file not in ends
        at = session[0].offset
        assert 0 <= at - ends.get(file, 0) < oftl_work.PAGE
        for one in session:
            assert one.offset == at and one.length > 0
            at += one.length
        ends[file] = at
        # a part of a page may happen to be whole pages
        assert all(one.aligned for one in session) or sum(one.aligned for one in session) <= 1
    others = sum(session[0].file != TABLE for session in _sessions(work))
    assert 0.35 * others < new < 0.65 * others or others < 10


def test_a_flush_of_tpc_c_finds_what_ext2_wrote() -> None:
    """Of the bytes asked: pages that are written again before the file is closed count once."""
    left = asked = 0
    for session in _sessions(oftl_work.writes("tpc-c")):
        asked += sum(one.length for one in session)
        left += oftl_work.PAGE * len(
            {
                page
                for one in session
                for page in range(one.offset // 4096, (one.offset + one.length - 1) // 4096 + 1)
            }
        )
    assert abs(left / asked - oftl.SIZES["tpc-c"]["async"][1]) < 0.01


def test_an_io_meets_an_extension_that_it_overlaps() -> None:
    trace = (
        "  rfs/nvme0n1-90 [000] .....  1.000500: rfs_checkpoint: 259:0 number 2 cause bound "
        "dirty 9 ns 300000 held 100000 error 0\n"
        "  other-1 [000] .....  2.000000: rfs_append: 259:0 zone 1 blocks 1 data 1\n"
    )
    during = oftl_window.extensions(trace)
    assert during == [(1_000_200_000, 1_000_500_000)]
    times = [1_000_100_000, 1_000_200_000, 1_000_199_000, 1_000_201_000]
    times += [1_000_300_000, 1_000_300_010, 1_000_500_000, 1_000_500_007]
    found = oftl_window.timed(times, during)
    assert found.every == [100_000, 2000, 10, 7]
    assert found.met == [2000, 10]
    assert found.slowed == 0
    assert oftl_window.Timed([10, 10, 10, 70], [10, 70]).slowed == 1


def test_two_distributions_are_as_far_apart_as_their_lines() -> None:
    assert oftl_window.distance([1, 2, 3], [3, 2, 1], 0) == 0
    assert oftl_window.distance([1, 1, 1, 9], [1, 1, 2, 9], 0) == 0.25
    assert oftl_window.distance([1, 1, 2, 9], [1, 1, 1, 9], 0) == 0.25
    assert oftl_window.distance([1, 2], [3, 4], 0) == 1
    # What is no further to the side is not seen, whichever is the faster.
    for one, other in (((1, 2), (3, 4)), ((3, 4), (1, 2))):
        assert oftl_window.distance(one, other, 1) == 0.5
        assert oftl_window.distance(one, other, 2) == 0


def test_the_least_is_each_flush_in_whole_pages() -> None:
    work = [Write(1, 0, 5000, False), Write(1, 4000, 1000, True), Write(1, 5000, 2000, True)]
    assert oftl_work.least(work, every_write=False) == (2 + 1) * 4096 / 8000
    assert oftl_work.least(work, every_write=True) == (2 + 1 + 1) * 4096 / 8000


@pytest.mark.parametrize("mode", oftl.MODES)
def test_the_replay_writes_what_the_list_says(mode: str, tmp_path: Path) -> None:
    work = oftl_work.writes("lasr-3")[:500]
    (tmp_path / "list").write_bytes(oftl_work.packed(work))
    content = bytes(range(1, 256)) * 400
    (tmp_path / "content").write_bytes(content)
    (files := tmp_path / "files").mkdir()
    words = [sys.executable, oftl_cell.REPLAY, tmp_path / "list", tmp_path / "content", mode]
    subprocess.run(words, cwd=files, check=True)
    sizes: dict[str, int] = {}
    for one in work:
        sizes[str(one.file)] = max(sizes.get(str(one.file), 0), one.offset + one.length)
    assert {path.name: path.stat().st_size for path in files.iterdir()} == sizes
    # where the list writes there are no zeroes, and a gap is at most the rest of a page
    for path in files.iterdir():
        holes = path.read_bytes().count(0)
        written = sum(one.length for one in work if str(one.file) == path.name)
        assert path.stat().st_size - written == holes
    assert os.listdir(files)


LAYOUT = """\
Journal inode:            8
Group 0: (Blocks 0-16383)
  Primary superblock at 0, Group descriptors at 1-1
  Reserved GDT blocks at 2-4
  Block bitmap at 5 (+5)
  Inode bitmap at 6 (+6)
  Inode table at 7-1030 (+7)
  14322 free blocks, 16373 free inodes, 2 directories
  Free blocks: 2062-16383
Group 1: (Blocks 16384-32767)
  Block bitmap at 16384 (+0)
Journal blocks:
1037 1038 1049
"""


def test_what_is_metadata_is_known_by_its_address() -> None:
    expected = {*range(1031), 16384, 1037, 1038, 1049}
    assert oftl_metadata.metadata_blocks(LAYOUT) == expected
    with pytest.raises(BadOutput, match="no inode table"):
        oftl_metadata.metadata_blocks("dumpe2fs: Bad magic number\nJournal blocks:\n")


def test_a_command_programs_all_pages_that_it_touches() -> None:
    commands = [Command(1, lba, blocks, 0) for lba, blocks in ((0, 1), (1, 2), (7, 2), (8, 8))]
    assert [oftl_pages.touched(commands, blocks) for blocks in (1, 2, 4, 8)] == [13, 9, 6, 5]


@pytest.mark.guest
def test_in_the_guest(built: Artifacts, rsd_cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """SYNC programs more than ASYNC; pieces less than whole pages; ext3's journal more than ext2"""
    context = Context(built, rsd_cache, Progress())
    writes = oftl_work.writes("lasr-1")[:150]
    monkeypatch.setattr(oftl_work, "writes", lambda name: writes)

    def cell(system: str, mode: str) -> oftl.Cell:
        plan = oftl.Plan(system, "lasr-1", mode)
        return oftl._read(plan, oftl.unit(plan, context).run(rsd_cache))

    ofss = {mode: cell(oftl.OFSS, mode) for mode in oftl.MODES}
    assert ofss["sync"].size > 2 * ofss["async"].size
    assert ofss["sync"].seconds > ofss["async"].seconds
    assert ofss["sync"].size < cell("RFS without pieces", "sync").size
    ext2, ext3 = cell("Ext2", "sync"), cell("Ext3", "sync")
    assert ofss["sync"].size < ext2.size < ext3.size
    assert ext2.count > 1

    def metadata(system: str) -> float:
        plan = oftl.Plan(system, "lasr-1", "sync", traced=system != oftl.OFSS)
        teardown = oftl_metadata.LAYOUT if plan.traced else ":"
        entry = oftl.unit(plan, context, teardown).run(rsd_cache)
        pages = oftl_metadata._of_ext(entry) if plan.traced else oftl_metadata._of_rfs(entry)
        return pages * 4096 / sum(one.length for one in writes)

    # What is not metadata are the files' pages, of ext2 each time that they were written, with
    # directories and pointers; ext3 has them in its journal, and writes them home more seldom.
    least = oftl_work.least(writes, every_write=True)
    assert metadata(oftl.OFSS) < ofss["sync"].size - 0.9
    assert least < ext2.size - metadata("Ext2") < 1.5 * least
    assert 0.9 < ext3.size - metadata("Ext3") < ext2.size - metadata("Ext2")
