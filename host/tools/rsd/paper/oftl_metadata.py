# SPDX-License-Identifier: GPL-2.0-or-later
"""OFTL's figure 7: what metadata adds to the bytes that were asked for.

As in the paper (6.3), the kind of a block that ext2 or ext3 writes is told by its address: dumpe2fs
prints where superblocks, group descriptors, bitmaps and inode tables are. The journal is what its
inode has; the paper knew it by the thread that wrote it. Blocks of directories and of pointers
count as data there and here. Of RFS all blocks count but those of data and the diff nodes, which
are pieces of data; what the log has of pieces does not count either.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.compare import kept, stack_figures
from rsd.compare.drive_trace import commands_between
from rsd.compare.figures import BadOutput
from rsd.paper import oftl_work
from rsd.paper.claim import Claim, Limit
from rsd.paper.oftl_cell import OFSS, TRACE, Plan, unit
from rsd.paper.oftl_work import PAGE, WORKLOADS
from rsd.parallel import run_all

EXTS = ("Ext3", "Ext2")
# The tables of figure 7, by mode: Ext3, Ext2, OFSS, each in the order of table 2
AMPLIFICATION = {
    "sync": (
        (2.57, 8.59, 17.91, 11.84, 51.04, 3.73),
        (1.06, 2.68, 2.00, 0.91, 4.11, 1.04),
        (0.05, 0.30, 1.13, 0.45, 1.05, 0.03),
    ),
    "async": (
        (0.29, 0.26, 0.56, 1.54, 2.14, 0.14),
        (0.02, 0.01, 0.08, 0.07, 0.17, 0.01),
        (0.01, 0.01, 0.08, 0.04, 0.17, 0.01),
    ),
}
# What runs in the guest at the end
LAYOUT = (
    "sync\n{ dumpe2fs $drive 2>/dev/null; echo Journal blocks:; "
    "debugfs -R 'blocks <8>' $drive 2>/dev/null; } >/out/layout"
)
_PLACES = re.compile(
    r"(?:superblock|Group descriptors|GDT blocks|Block bitmap|Inode bitmap|Inode table)"
    r" at (\d+)(?:-(\d+))?"
)


def plans() -> list[Plan]:
    """Each workload on each of the three systems, in both modes."""
    return [
        Plan(system, work, mode, traced=system in EXTS)
        for mode in AMPLIFICATION
        for work in WORKLOADS
        for system in (*EXTS, OFSS)
    ]


def laid_out(plan: Plan, context: Context) -> Unit:
    """With the file `layout`, if it is of ext2 or ext3."""
    return unit(plan, context, LAYOUT if plan.system in EXTS else ":")


def units(context: Context) -> list[Unit]:
    """A guest each."""
    return [laid_out(plan, context) for plan in plans()]


def metadata_blocks(layout: str) -> set[int]:
    """The blocks that LAYOUT's output says are metadata. Raises BadOutput."""
    groups, _, journal = layout.partition("Journal blocks:")
    places = _PLACES.findall(groups)
    if not any(end for _, end in places):
        raise BadOutput("layout: dumpe2fs prints no inode table")
    blocks = {at for first, end in places for at in range(int(first), int(end or first) + 1)}
    return blocks | {int(word) for word in journal.split()}


def _of_ext(entry: Path) -> int:
    raw = entry / kept.RAW
    metadata = metadata_blocks((raw / "layout").read_text())
    return sum(
        at in metadata
        for one in commands_between(entry / TRACE, raw, "host_write_cmds")
        for at in range(one.lba, one.lba + one.blocks)
    )


def _of_rfs(entry: Path) -> float:
    figures = {one.metric: one.value for one in stack_figures.file_system_figures(entry / kept.RAW)}
    data = ("rfs.written_data", "rfs.written_copies", "rfs.written_pieces")
    written = sum(
        value
        for name, value in figures.items()
        if name.startswith("rfs.written_") and name not in data
    )
    return written - stack_figures.file_system_counted(entry / kept.RAW, "piece_bytes") / PAGE


def figure7(context: Context) -> list[Claim | Limit]:
    """A claim each of the figure's columns. Raises RsdError."""
    todo = plans()
    entries = run_all([functools.partial(one.run, context.cache) for one in units(context)])
    blocks = {
        plan: _of_ext(entry) if plan.traced else _of_rfs(entry)
        for plan, entry in zip(todo, entries, strict=True)
    }
    return [
        _claim(blocks, mode, work, [row[at] for row in rows])
        for mode, rows in AMPLIFICATION.items()
        for at, work in enumerate(WORKLOADS)
    ]


def _claim(blocks: Mapping[Plan, float], mode: str, work: str, paper: Sequence[float]) -> Claim:
    asked = sum(one.length for one in oftl_work.writes(work))
    systems = (*EXTS, OFSS)
    return Claim(
        f"bytes of metadata by bytes asked, {WORKLOADS[work].title}, {mode.upper()}",
        "",
        dict(zip(systems, paper, strict=True)),
        {
            system: blocks[Plan(system, work, mode, traced=system in EXTS)] * PAGE / asked
            for system in systems
        },
    )
