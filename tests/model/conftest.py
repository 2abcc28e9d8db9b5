# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the references share: the core, to be told commands."""

from pathlib import Path

import pytest

from programs import core_programs
from rsd.cache import Cache


@pytest.fixture(scope="session")
def replay(rsd_cache: Cache) -> Path:
    """The core with a driver that replays scripts, built with sanitizers."""
    return core_programs(rsd_cache) / "replay"


@pytest.fixture(scope="session")
def replay_steps(rsd_cache: Cache) -> Path:
    """The same, with trims of more than 16 pages in steps of 16."""
    return core_programs(rsd_cache) / "replay_steps"
