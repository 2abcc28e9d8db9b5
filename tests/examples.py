# SPDX-License-Identifier: GPL-2.0-or-later
"""The worked examples of CONTRIBUTING.md: each a diff, applied to a copy of what it changes."""

import re
import shutil
import subprocess
from pathlib import Path

from rsd.artifacts import REPOSITORY

EXAMPLE = re.compile(r"^<!-- example: (\w+) -->\n```diff\n(.*?)^```$", re.M | re.S)


def examples() -> dict[str, str]:
    """Each diff by its name."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    return {match[1]: match[2] for match in EXAMPLE.finditer(text)}


def files(diff: str) -> list[str]:
    """Those that it changes, relative to the repository."""
    return re.findall(r"^\+\+\+ b/(.*)$", diff, re.M)


def apply(diff: str, root: Path) -> None:
    """Apply it in `root`, which gets the files that it changes if it has them not."""
    for name in files(diff):
        if not (root / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
    done = subprocess.run(
        ["patch", "-p1", "--forward", "--batch", "--fuzz=0", "-d", root],
        input=diff,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        f"the example in CONTRIBUTING.md does not apply any more:\n{done.stdout}"
    )
