# SPDX-License-Identifier: GPL-2.0-or-later
"""The core's work does not grow with the number of commands that wait.

It is counted, not timed: basic blocks that the core executes. ./rsd bench linear measures the same
of more loads, and more exactly.
"""

from pathlib import Path

import pytest

from programs import made
from rsd.bench import linear
from rsd.cache import Cache

# Ten times the requests take ten times the work, and a little more: a drive that is young yet
# copies less, and trees get higher. If a command were held against all that wait, it would be 30.
MOST = 14.0
REQUESTS = 500
CASES = [case for case in linear.cases() if "open loop" in case.load]


@pytest.fixture(scope="module")
def counting(rsd_cache: Cache) -> Path:
    """rsdsim that counts."""
    sources = ["host/tools/rsdsim/**/*", "hw/rsd-nvme/core/**/*.[ch]"]
    return made(rsd_cache, "counting", sources, ["host/tools/rsdsim", "counting"]) / (
        "rsdsim-counting"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.ftl}-{case.work}")
def test_ten_times_the_requests_take_ten_times_the_work(counting: Path, case: linear.Case) -> None:
    """Of an overloaded drive, of which the commands that wait are ever more."""
    times, _ = linear.ratio(counting, case, REQUESTS)
    assert times <= MOST
