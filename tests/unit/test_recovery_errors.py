# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors in the recovery of the translation layers are found by exploring power cuts.

Each error is put into a copy of the core. Then test_power.c, which explores all points of a random
workload, has to fail after BUDGET points or fewer.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from programs import core_programs, in_memory
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache

BUDGET = 1000
CORE = "hw/rsd-nvme/core"


@dataclass(frozen=True)
class Seeded:
    """What is replaced, once, in a file of the core; the test of test_power.c that explores it."""

    error: str
    test: str
    file: str
    right: str
    wrong: str


ERRORS = (
    Seeded(
        "a copy wins over the newer page",
        "every_point_of_a_page_map",
        "ftl/page/page-recover.c",
        "page_of(ftl, other))->seq >= spare->seq) {",
        "page_of(ftl, other))->seq >= spare->seq && !spare->copy) {",
    ),
    Seeded(
        "what was trimmed comes back",
        "every_point_of_a_page_map",
        "ftl/page/page-recover.c",
        "if (rsd_media_trimmed(media, spare->lpn)) {",
        "if (rsd_media_trimmed(media, spare->lpn) && spare->copy) {",
    ),
    Seeded(
        "the page that a newer one replaces stays valid",
        "every_point_of_a_page_map",
        "ftl/page/page-recover.c",
        "        ftl->blocks[block_of(ftl, other)].valid--;\n",
        "",
    ),
    Seeded(
        "a page of the map is taken for one of data",
        "every_point_of_a_cached_map",
        "ftl/page/page-recover.c",
        "    if (spare->kind) {\n",
        "    if (spare->kind && !ftl->cache) {\n",
    ),
    Seeded(
        "an older page of the map is taken for the newest",
        "every_point_of_a_cached_map",
        "ftl/page/map-cache.c",
        "        if (its->seq >= spare->seq) {\n            return;",
        "        if (its->seq <= spare->seq) {\n            return;",
    ),
    Seeded(
        "what is behind the end of the newest block is not copied",
        "every_point_of_a_block_map",
        "ftl/block/block-recover.c",
        "    while (programmed(r->map, newest) < end) {",
        "    while (begun(r->map, newest) && programmed(r->map, newest) < end) {",
    ),
    Seeded(
        "a torn block is not copied to a third one",
        "every_point_of_a_block_map",
        "ftl/block/block-recover.c",
        "rebuild |= !random_log && is_torn_block(map, b);",
        "rebuild |= random_log && is_torn_block(map, b);",
    ),
    Seeded(
        "lanes that a cut left shorter stay so",
        "every_point_of_blocks_that_grow",
        "ftl/block/block-recover.c",
        "        add_filler(map, l->block, l->next);\n",
        "        add_filler(map, l->block, 0);\n",
    ),
    Seeded(
        "copies that were torn are kept",
        "torn_copies_are_undone",
        "ftl/block/block-recover.c",
        "        if (is_broken(r, lblock, b) && is_redundant(r, lblock, b)) {",
        "        if (!r->map->policy->linked && is_redundant(r, lblock, b)) {",
    ),
    Seeded(
        "of two torn blocks none is kept in its place",
        "two_torn_blocks_of_a_logical_block",
        "ftl/block/block-recover.c",
        "    choose_newest(r, lblock, unit, random_log);\n",
        "    choose_newest(r, lblock, unit, false);\n",
    ),
    Seeded(
        "a page of the log wins over a newer one",
        "every_point_of_fast",
        "ftl/block/fast-ftl.c",
        "rsd_map_spare(map, other.block, other.page)->seq >= spare->seq) {",
        "rsd_map_spare(map, other.block, other.page)->seq == spare->seq) {",
    ),
    Seeded(
        "a zone without a page stays in use",
        "every_point_of_zones",
        "ftl/zone/zone-recover.c",
        "        if (!written) {\n",
        "        if (!written && lane) {\n",
    ),
    Seeded(
        "a block that has a part of a copy is not marked",
        "cut_while_busy_dies_level",
        "ftl/zone/zone-recover.c",
        "            flags |= RSD_BLOCK_DIRTY;\n",
        "            flags |= 0;\n",
    ),
    Seeded(
        "gaps below the write pointer stay",
        "every_point_of_zones",
        "ftl/zone/zone-recover.c",
        "        for (; page < want; page += drive->unit) {",
        "        for (; page + drive->unit < want; page += drive->unit) {",
    ),
)


@pytest.fixture(scope="module")
def copy(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The core's sources and test_power, with what was compiled of them already."""
    root = tmp_path_factory.mktemp("recovery")
    for folder in (CORE, "tests/unit"):
        shutil.copytree(REPOSITORY / folder, root / folder)
    # copied without their times, so that they are newer than the sources
    shutil.copytree(core_programs(rsd_cache), root / "build", copy_function=shutil.copy)
    yield root
    shutil.rmtree(root)


def build(root: Path) -> Path:
    program = root / "build/test_power"
    command = ["make", "-C", root / "tests/unit", f"BUILD={root / 'build'}", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return program


@pytest.mark.parametrize("seeded", ERRORS, ids=lambda seeded: seeded.error)
def test_it_is_found(copy: Path, tmp_path: Path, seeded: Seeded) -> None:
    """And nothing is found without it, as test_unit.py sees."""
    source = copy / CORE / seeded.file
    right = source.read_text()
    assert right.count(seeded.right) == 1, f"{seeded.file}: say the error anew"
    source.write_text(right.replace(seeded.right, seeded.wrong))
    points = tmp_path / "points"
    try:
        program = build(copy)
        with in_memory(tmp_path) as directory:
            done = subprocess.run(
                [program, seeded.test],
                env=os.environ | {"RSD_TEST_DIR": directory, "RSD_TEST_POINTS": str(points)},
                capture_output=True,
                text=True,
                timeout=900,
            )
    finally:
        source.write_text(right)
    taken = points.stat().st_size if points.exists() else 0
    said = next((line for line in done.stderr.splitlines() if line), "")
    print(f"{seeded.error}: {taken} points: {said}")
    assert done.returncode != 0, f"it is not found in {taken} points"
    assert 0 < taken <= BUDGET, f"found after {taken} points: {done.stderr}"
