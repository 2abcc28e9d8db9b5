# SPDX-License-Identifier: GPL-2.0-or-later
"""What a figure costs: processor time of its guests, as they left it with their results."""

import json
from collections.abc import Iterable
from pathlib import Path

from rsd.cache import Cache
from rsd.cluster.unit import Unit
from rsd.compare import kept


def cpu_minutes(units: Iterable[Unit], cache: Cache) -> float:
    """Of all guests whose results units have, those that made shared volumes counted once."""
    entries = {
        entry: None for unit in units for entry in ((unit.kind, unit.key), *unit.needs)
    }  # a set in order: the sum is the same again
    found = (cache.find(kind, key) for kind, key in entries)
    return sum(_seconds(entry) for entry in found if entry) / 60


def _seconds(entry: Path) -> float:
    return sum(
        float(json.loads(path.read_text())["qemu_cpu_s"]) for path in sorted(entry.rglob(kept.HOST))
    )
