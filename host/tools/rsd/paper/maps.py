# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes of mapping tables: REDO's and RISA's tables 2, and what our drives report."""

from collections.abc import Mapping

from rsd.bench.base import Context
from rsd.bench.device import MAP_CAPACITIES, map_bytes
from rsd.paper.claim import Claim, Limit

TITLES = {
    "block": "block-level FTL",
    "fast": "hybrid FTL",
    "page": "page-level FTL",
    "rsd": "RSD",
}


def map_sizes(context: Context, paper: Mapping[str, Mapping[str, int]]) -> list[Claim | Limit]:
    """A claim a capacity; `paper` has bytes by capacity and FTL, as they are printed there."""
    return [
        Claim(
            f"mapping table, {capacity}",
            "bytes",
            {TITLES[ftl]: size for ftl, size in sizes.items()},
            {TITLES[ftl]: map_bytes(context, ftl, MAP_CAPACITIES[capacity])[0] for ftl in sizes},
            TITLES["rsd"],
        )
        for capacity, sizes in paper.items()
    ]
