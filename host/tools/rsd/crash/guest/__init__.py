# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that run in the guest; they import each other as files of one directory there."""

from pathlib import Path

HERE = Path(__file__).parent

# What rewinds a drive and looks at a state of it
VISITING = {name: HERE / name for name in ("drive.py", "mounts.py", "state.py")}
