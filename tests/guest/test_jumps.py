# SPDX-License-Identifier: GPL-2.0-or-later
"""Jumps of the guest to other pages, which our QEMU does not look up each time."""

from pathlib import Path

import pytest

from programs import compiled
from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("jumps.c")


def test_they_go_where_they_should_now(built: Artifacts, rsd_cache: Cache) -> None:
    program = compiled(rsd_cache, SOURCE)
    job = GuestJob(system="none", script="/in/jumps", inputs={"jumps": program}, rfs=False)
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output
