# SPDX-License-Identifier: GPL-2.0-or-later
"""Snakemake and Slurm for the tests of workflows."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm

from rsd.cache import Cache
from rsd.cluster import environment
from rsd.progress import Progress


@pytest.fixture(scope="session")
def snakemake(rsd_cache: Cache) -> Path:
    """The engine, as ./rsd setup --cluster installs it."""
    return environment.ensure(rsd_cache, Progress())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[slurm.Cluster]:
    """Two nodes. Skipped where Slurm is not installed: it is no part of what ./rsd installs."""
    if missing := slurm.missing():
        pytest.skip(f"{missing[0]} is missing: apt-get install slurmctld slurmd slurm-client munge")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons are started by root")
    if slurm.DEFAULT.exists():
        pytest.skip(f"{slurm.DEFAULT} is there: this machine has a cluster of its own")
    directory = tmp_path / "slurm"
    directory.mkdir()
    for parent in directory.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)  # munged refuses what others cannot pass
    with slurm.cluster(directory) as running:
        yield running
