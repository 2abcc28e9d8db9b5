# SPDX-License-Identifier: GPL-2.0-or-later
"""A thousand scripts for each translation layer, others than those of every day (--long).

Of zones and page maps, with and without a write buffer, and of disks, each completion time and each
counter is compared, as well as all contents. The references of the other layers know no time: of
cached maps, block maps and FAST, all contents and the counters of merges, map pages and operations
are compared.
"""

from pathlib import Path

import pytest
from page_script import BUFFER_OPTIONS, PAGE_OPTIONS, make_page_script
from script import make_script, pairwise_rows
from test_block_maps import SETUPS, Setup, check_traces
from test_cached_map import CACHES, check_caches
from test_disk_model import check_disks
from test_model import check_scripts

pytestmark = pytest.mark.long

SCRIPTS = 1000
FIRST_SEED = 10_000


def share(parts: int) -> range:
    """Seeds of one of so many parts."""
    return range(FIRST_SEED, FIRST_SEED + -(-SCRIPTS // parts))


def test_zones(replay: Path) -> None:
    check_scripts(replay, share(1), pairwise_rows(0), make_script)


def test_page_maps(replay: Path) -> None:
    check_scripts(replay, share(1), pairwise_rows(0, PAGE_OPTIONS), make_page_script)


def test_buffered_page_maps(replay: Path) -> None:
    check_scripts(replay, share(1), pairwise_rows(0, BUFFER_OPTIONS), make_page_script)


def test_disks(replay: Path, tmp_path: Path) -> None:
    check_disks(replay, tmp_path, share(1))


@pytest.mark.parametrize("cache", CACHES)
def test_cached_maps(replay: Path, tmp_path: Path, cache: int) -> None:
    check_caches(replay, tmp_path, cache, share(len(CACHES)), length=150)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_block_maps(replay: Path, tmp_path: Path, setup: Setup) -> None:
    same = [other for other in SETUPS if other.ftl == setup.ftl]
    check_traces(replay, tmp_path, setup, share(len(same)), length=120)
