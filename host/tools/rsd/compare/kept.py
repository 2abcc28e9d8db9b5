# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's raw output and what the host knows of its run, in a directory that can be kept.

Only runs that went well are written: what was not done, or failed, is done again.
"""

import json
from pathlib import Path
from typing import Any

from rsd.machine import GuestResult, Outcome

RAW = "raw"
HOST = "host.json"

# Of what is kept of a benchmark: another number when there is more of it
FORMAT = 3

_FACTS = ("virtual_s", "wall_s", "qemu_cpu_s", "hashes", "qemu_command")


def write(result: GuestResult, directory: Path, **more: Any) -> None:
    """Complete a directory whose RAW is the guest's /out. `more` is JSON for the reader."""
    facts = {name: getattr(result, name) for name in _FACTS}
    facts["hashes"] = dict(facts["hashes"])
    (directory / HOST).write_text(json.dumps({**facts, **more}, indent=2))


def read(directory: Path) -> tuple[GuestResult, dict[str, Any]]:
    """The result of the guest, and what `write` was given besides."""
    facts = json.loads((directory / HOST).read_text())
    ours = {name: facts.pop(name) for name in _FACTS}
    ours["qemu_command"] = tuple(ours["qemu_command"])
    result = GuestResult(
        outcome=Outcome.EXITED,
        status=0,
        out_dir=directory / RAW,
        output="",
        console="",
        **ours,
    )
    return result, facts
