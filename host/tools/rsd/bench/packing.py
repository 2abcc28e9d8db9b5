# SPDX-License-Identifier: GPL-2.0-or-later
"""How many pages postmark's files take on flash, by how they share pages, in hfmsim.

HFM's sections are partitioned as its table 1 says. A log puts files one after the other in units of
1 KiB. Both stand beside files that have pages of their own.
"""

from collections.abc import Mapping
from typing import Any

from rsd import sim
from rsd.bench.base import Context, Row
from rsd.paper import hfm

FILES = (1000, 20_000)
WORK = {"work": "postmark", "transactions": 100_000}
OFF = {"pack": "off", "extent": 256}
PACKS: Mapping[str, Mapping[str, Any]] = {
    "a log": {"pack": "log", "extent": 256},
    **hfm.SECTIONS,
}
FEWER = 0.30


def packing(context: Context) -> list[Row]:
    """A row for each way to pack, and number of files."""
    program = sim.ensure_hfmsim(context.cache, context.progress)
    rows = []
    for files in FILES:
        work = {**WORK, "files": files}
        own = int(hfm.measure(program, {**work, **OFF})["flash_pages"])
        for name, options in PACKS.items():
            found = hfm.measure(program, {**work, **options})
            pages = int(found["flash_pages"])
            idle = int(found["gap_units"]) / (int(found["gap_units"]) + int(found["units"]))
            rows.append(
                Row(
                    f"postmark, {files:,} files, 100,000 transactions: pages programmed, {name}",
                    f"{FEWER:.0%} fewer than without packing, {own:,}",
                    f"{pages:,} ({pages / own - 1:+.1%}; {idle:.0%} of the units are idle)",
                    pages,
                    "pages",
                    "count",
                    pages <= (1 - FEWER) * own,
                )
            )
    return rows
