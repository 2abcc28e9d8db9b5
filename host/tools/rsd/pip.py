# SPDX-License-Identifier: GPL-2.0-or-later
"""Python packages that one command alone needs, in a folder of their own."""

import sys
from pathlib import Path

from rsd.cache import Cache
from rsd.progress import Progress
from rsd.steps import run_logged


def install(requirements: Path, target: Path, name: str, cache: Cache, progress: Progress) -> None:
    """Install what a file pins by hashes into `target`; `name` is what the step is called."""
    with progress.step(name) as step:
        run_logged(
            [
                *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check"),
                *("--no-deps", "--require-hashes", "--requirement", requirements),
                *("--target", target),
            ],
            step=step,
            log=cache.log(name.lower()),
            hint="check the network (or PIP_INDEX_URL), and that the cache has 300 MB of room",
        )
