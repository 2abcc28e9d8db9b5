# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests that our series adds to QEMU's own, as QEMU runs them."""

import os
import subprocess
from pathlib import Path

from rsd import qemu as build
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache
from rsd.progress import Progress


def test_icount(rsd_cache: Cache, qemu: str, tmp_path: Path) -> None:
    """The clock of a guest that sleeps: the same with and without inline-warp, fewer wake-ups."""
    program = build.qtest(rsd_cache, Progress(), REPOSITORY, "icount-test")
    done = subprocess.run(
        [program],
        env={**os.environ, "QTEST_QEMU_BINARY": qemu},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok 2 " in done.stdout
    assert "# skip" not in done.stdout.lower()
