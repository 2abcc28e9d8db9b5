# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the references share: the core, to be told commands."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "hw" / "rsd-nvme" / "core"


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core with a driver that replays scripts, built with sanitizers."""
    program = tmp_path_factory.mktemp("model") / "replay"
    command = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]
    command += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DRSD_ASSERT_NAND"]
    command += [f"-I{CORE}", "-o", str(program), str(HERE / "replay.c")]
    command += [str(source) for source in sorted(CORE.glob("*.c"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return program
