# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdsim, built with sanitizers."""

import subprocess
from pathlib import Path

import pytest
from simulator import Simulator

ROOT = Path(__file__).resolve().parents[2]
SANITIZE = "-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, its drive refusing what NAND refuses by assertions."""
    build = tmp_path_factory.mktemp("rsdsim")
    command: list[str | Path] = ["make", "-j2", "-C", ROOT / "host/tools/rsdsim", f"BUILD={build}"]
    done = subprocess.run(
        [*command, f"CFLAGS={SANITIZE}", "CPPFLAGS=-DRSD_ASSERT_NAND"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"the build fails:\n{done.stdout}\n{done.stderr}"
    return build / "rsdsim"


@pytest.fixture
def sim(program: Path, tmp_path: Path) -> Simulator:
    return Simulator(program, tmp_path)
