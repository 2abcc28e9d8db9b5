# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL's figure 8: what the flash is written if its pages are larger than the blocks.

As in the paper (6.4), the drive's commands are recorded with blocks of 4 KiB, and each is taken to
program all pages that it touches. So a page is programmed for every command that has a part of it.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.compare import kept
from rsd.compare.drive_trace import Command, commands_between
from rsd.paper import oftl_metadata, oftl_work
from rsd.paper.claim import Claim, Limit
from rsd.paper.oftl_cell import MODES, OFSS, SYSTEMS, TRACE, Plan
from rsd.paper.oftl_work import PAGE, WORKLOADS
from rsd.parallel import run_all

SIZES_KIB = (4, 8, 16, 32)
LARGEST = SIZES_KIB[-1]
# The text, of pages of 32 KiB: what OFSS writes by bytes asked, and its part of another system's
OFSS_WRITES = {"sync": 30.0, "async": 3.0}
OFSS_PART = {"sync": ("Ext3", 0.09), "async": ("Btrfs", 0.25)}

# Bytes written by bytes asked, the mean of the workloads, by system, mode and KiB of a page
Found = Mapping[tuple[str, str, int], float]


def plans() -> list[Plan]:
    """Each workload on the paper's systems, in both modes."""
    return [
        Plan(system, work, mode, traced=True)
        for mode in MODES
        for work in WORKLOADS
        for system in SYSTEMS
    ]


def units(context: Context) -> list[Unit]:
    """A guest each; those of ext2 and ext3 are figure 7's."""
    return [oftl_metadata.laid_out(plan, context) for plan in plans()]


def touched(commands: Iterable[Command], blocks: int) -> int:
    """Pages of so many blocks that the commands touch, each for itself."""
    return sum((one.lba + one.blocks - 1) // blocks - one.lba // blocks + 1 for one in commands)


def _amplification(entry: Path, plan: Plan) -> list[float]:
    """Of each size of a page."""
    commands = commands_between(entry / TRACE, entry / kept.RAW, "host_write_cmds")
    asked = sum(one.length for one in oftl_work.writes(plan.work))
    return [touched(commands, kib // 4) * kib * PAGE // 4 / asked for kib in SIZES_KIB]


def figure8(context: Context) -> list[Claim | Limit]:
    """What the text says of pages of 32 KiB. Raises RsdError."""
    todo = plans()
    entries = run_all([functools.partial(one.run, context.cache) for one in units(context)])
    each = {plan: _amplification(entry, plan) for plan, entry in zip(todo, entries, strict=True)}
    found = {
        (system, mode, kib): fmean(
            each[Plan(system, work, mode, traced=True)][at] for work in WORKLOADS
        )
        for system in SYSTEMS
        for mode in MODES
        for at, kib in enumerate(SIZES_KIB)
    }
    return [claim for mode in MODES for claim in claims(found, mode)]


def claims(found: Found, mode: str) -> Sequence[Claim]:
    """Of one mode."""
    other, part = OFSS_PART[mode]
    here = {system: found[system, mode, LARGEST] for system in SYSTEMS}
    what = f"bytes by bytes asked, mean of all, pages of {LARGEST} KiB, {mode.upper()}"
    sizes = "; ".join(
        f"{system}: " + ", ".join(f"{found[system, mode, kib]:.2f}" for kib in SIZES_KIB)
        for system in SYSTEMS
    )
    return [
        Claim(what, "", {OFSS: OFSS_WRITES[mode]}, {OFSS: here[OFSS]}),
        Claim(
            f"{what}, OFSS by {other}",
            "",
            {other: 1, OFSS: part},
            {other: here[other], OFSS: here[OFSS]},
            other,
            {system: value for system, value in here.items() if system not in (other, OFSS)},
            note=f"pages of 4, 8, 16, 32 KiB: {sizes}",
        ),
    ]
