# SPDX-License-Identifier: GPL-2.0-or-later
"""Jumps of the guest to other pages, which our QEMU does not look up each time."""

import subprocess
from pathlib import Path

import pytest

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("jumps.c")


def test_they_go_where_they_should_now(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> None:
    program = tmp_path / "jumps"
    subprocess.run(["cc", "-O1", "-static", "-Wall", "-Wextra", "-o", program, SOURCE], check=True)
    job = GuestJob(system="none", script="/in/jumps", inputs={"jumps": program}, rfs=False)
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output
