# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's CRC32 instruction, which our QEMU computes by table."""

from pathlib import Path

import pytest

from programs import compiled
from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("crc32.c")


def test_operands_of_each_size(built: Artifacts, rsd_cache: Cache) -> None:
    program = compiled(rsd_cache, SOURCE, "-msse4.2")
    job = GuestJob(system="none", script="/in/crc32", inputs={"crc32": program}, rfs=False)
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output
