# SPDX-License-Identifier: GPL-2.0-or-later
"""String instructions under icount: right with faults and interrupts in between, and counted."""

from pathlib import Path

import pytest

from programs import compiled
from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GUEST_SPEED_SHIFT, GuestJob, Outcome

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("strings.c")


def test_each_iteration_is_an_instruction(
    built: Artifacts, rsd_cache: Cache, tmp_path: Path
) -> None:
    program = compiled(rsd_cache, SOURCE)
    job = GuestJob(
        system="none",
        script=f"/in/strings {2**-GUEST_SPEED_SHIFT}",
        inputs={"strings": program},
        rfs=False,
        out_dir=tmp_path / "out",
    )
    result = machine.run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console
    assert result.status == 0, result.output
    assert 1 <= float(result.output) < 1.01
