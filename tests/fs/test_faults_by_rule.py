# SPDX-License-Identifier: GPL-2.0-or-later
"""RFS's core over the drive's core, whose flash fails by rule (faults/faults.c)."""

import subprocess
from pathlib import Path

import pytest

from programs import fs_faults, in_memory
from rsd.cache import Cache

# Rules that the drive or RFS copes with, so that nobody notices; how many faults 100,000
# operations meet at least
COPED = {
    "program every=5003": 10,
    "erase every=29 times=30": 10,
    "latency every=97 time=3ms": 1000,
    "read-only every=503 times=10": 10,
    "program probability=0.0001\nerase probability=0.002\n"
    "latency op=read every=10 time=9ms\nread-only every=900 times=8": 20,
}
# Rules that destroy what the drive holds
DESTROYED = {
    "read every=1009": 10,
    "read every=101": 100,
    "corrupt probability=0.0002": 10,
    "corrupt probability=0.01": 500,
    "lost every=1009": 10,
    "lost probability=0.01": 100,
    "offline every=1501 times=16": 4,
}


@pytest.fixture(scope="module")
def faults(rsd_cache: Cache) -> Path:
    """The program."""
    return fs_faults(rsd_cache) / "faults"


@pytest.mark.parametrize(
    "operations",
    [100_000, pytest.param(1_000_000, marks=pytest.mark.long)],
    ids=["some", "million"],
)
@pytest.mark.parametrize("rules", COPED | DESTROYED, ids=lambda rules: rules.replace("\n", ", "))
def test_faults_by_rule(faults: Path, tmp_path: Path, rules: str, operations: int) -> None:
    """Nothing that is read is wrong, and nothing is lost but what a fault has destroyed."""
    (tmp_path / "rules").write_text(f"{rules}\n")
    copes = f"copes={int(rules in COPED)}"
    with in_memory(tmp_path) as directory:
        media = f"{directory}/media"
        done = subprocess.run(
            [faults, tmp_path / "rules", media, copes, f"operations={operations}"],
            capture_output=True,
            text=True,
            timeout=3000,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    did, met = (int(word) for word in done.stdout.split()[0:3:2])
    assert did >= operations
    assert met >= (COPED | DESTROYED)[rules]
