# SPDX-License-Identifier: GPL-2.0-or-later
"""States a second that `./rsd crash` explores with two guests at once, and that it mounts."""

import time

from rsd.bench.base import Context, Row
from rsd.crash.campaign import Campaign, Settings
from rsd.crash.record import Work
from rsd.crash.states import ALL
from rsd.crash.subject import Subject

SYSTEMS = ("ext4-page", "f2fs-page")
# Of seq1, as ./rsd crash does it by itself
SEQUENCES = (1, 40)
OUTCOMES, SEED, LIMIT_S, GUESTS = 9, 1, 10, 2
EXPLORED, MOUNTED = 167, 10


def crash_speed(context: Context) -> list[Row]:
    """Two rows for each file system, of a run that is begun anew each time."""
    rows = []
    for name in SYSTEMS:
        work = Work(sequences=SEQUENCES, kind="seq1")
        settings = Settings(Subject(name), work, None, None, ALL, OUTCOMES, SEED, LIMIT_S)
        with context.cache.scratch("crash-speed") as scratch:
            campaign = Campaign.begin(scratch / "run", settings, context.built)
            campaign.record(context.built, context.cache, context.progress)
            began = time.monotonic()
            explored = campaign.explore(
                context.built, context.cache, context.progress, GUESTS, None
            )
            wall_s = time.monotonic() - began
        mounted = len(explored.verdicts)
        states = mounted + len(explored.same)
        first, last = SEQUENCES
        what = (
            f"{name}, ace:seq1/{first}-{last}, all points, {GUESTS} guests at once: {{}} a second"
        )
        rows += [
            _row(what.format("states explored"), EXPLORED, states, wall_s),
            _row(what.format("of these, states mounted"), MOUNTED, mounted, wall_s),
        ]
    return rows


def _row(what: str, must: int, states: int, wall_s: float) -> Row:
    rate = states / wall_s
    said = f"{rate:.0f} ({states:,} in {wall_s:.0f} s)"
    return Row(what, f"{must} or more", said, rate, "states/s", "wall", rate >= must)
