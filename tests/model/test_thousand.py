# SPDX-License-Identifier: GPL-2.0-or-later
"""A thousand scripts for each translation layer, others than those of every day (--long).

Of zones with and without a write buffer, of page maps without one, and of disks, each completion
time and each counter is compared, as well as all contents. The references of the other layers know
no time: of cached maps, block maps and FAST, all contents and the counters of merges, map pages
and operations are compared, and of page maps with a write buffer, nothing: no reference has that.
"""

from pathlib import Path

import pytest
from page_script import PAGE_OPTIONS, make_page_script
from script import make_script, pairwise_rows
from test_block_maps import SETUPS, Setup, check_traces
from test_cached_map import CACHES, check_caches
from test_disk_model import check_disks
from test_model import check_scripts

pytestmark = pytest.mark.long

# What differs from its reference, and nobody knows yet which of the two is wrong. A test that
# passes again fails, so that its line goes.
ZONES_DIFFER = "seed 10003: with queue=global, queue_wait_ns of the core is lower, all else equal"
FAST_DIFFERS = {
    "fast-block-4x30-1": "seed 10017: a full merge of the reference is a partial one of the core",
    "fast-all-4x12-1": "seed 10085: counters of merges",
    "fast-all-1x10-1": "seed 10058: writes of 3 pages to 5, 1 to 19, 3 to 23, 1 to 20 show it",
    "fast-block-2x12-8": "seed 10020: the core reads two pages more for merges",
    "fast-all-4x12-8": "seed 10085: counters of merges",
}

SCRIPTS = 1000
FIRST_SEED = 10_000


def share(parts: int) -> range:
    """Seeds of one of so many parts."""
    return range(FIRST_SEED, FIRST_SEED + -(-SCRIPTS // parts))


@pytest.mark.xfail(reason=ZONES_DIFFER, strict=True)
def test_zones(replay: Path) -> None:
    check_scripts(replay, share(1), pairwise_rows(0), make_script)


def test_page_maps(replay: Path) -> None:
    check_scripts(replay, share(1), pairwise_rows(0, PAGE_OPTIONS), make_page_script)


def test_disks(replay: Path, tmp_path: Path) -> None:
    check_disks(replay, tmp_path, share(1))


@pytest.mark.parametrize("cache", CACHES)
def test_cached_maps(replay: Path, tmp_path: Path, cache: int) -> None:
    check_caches(replay, tmp_path, cache, share(len(CACHES)), length=150)


def known(setup: Setup) -> list[pytest.MarkDecorator]:
    """The mark of a drive that differs."""
    reason = FAST_DIFFERS.get(str(setup))
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


@pytest.mark.parametrize(
    "setup", [pytest.param(setup, marks=known(setup), id=str(setup)) for setup in SETUPS]
)
def test_block_maps(replay: Path, tmp_path: Path, setup: Setup) -> None:
    same = [other for other in SETUPS if other.ftl == setup.ftl]
    check_traces(replay, tmp_path, setup, share(len(same)), length=120)
