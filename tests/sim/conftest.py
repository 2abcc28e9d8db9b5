# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdsim, built with sanitizers."""

from pathlib import Path

import pytest
from simulator import Simulator

from programs import made
from rsd.cache import Cache

SANITIZE = "-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"


@pytest.fixture(scope="session")
def program(rsd_cache: Cache) -> Path:
    """The program, its drive refusing what NAND refuses by assertions."""
    sources = ["host/tools/rsdsim/*", "hw/rsd-nvme/core/**/*.[ch]"]
    command = ["host/tools/rsdsim", f"CFLAGS={SANITIZE}", "CPPFLAGS=-DRSD_ASSERT_NAND"]
    return made(rsd_cache, "rsdsim", sources, command) / "rsdsim"


@pytest.fixture
def sim(program: Path, tmp_path: Path) -> Simulator:
    return Simulator(program, tmp_path)
