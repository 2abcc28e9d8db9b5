# SPDX-License-Identifier: GPL-2.0-or-later
"""Cuts the power again, within the recovery of states that a run has looked at.

For each of some states another run is made: its work is to mount the volume as that power cut left
it, and to unmount it. What had to hold then has to hold still after every operation of this.
"""

import time
from collections.abc import Callable
from typing import Any

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.crash import report
from rsd.crash.campaign import Campaign
from rsd.crash.explore import Explored
from rsd.crash.states import State
from rsd.progress import Progress

# Writes the reports of a run
Write = Callable[[Campaign, dict[str, Any]], None]


def chosen(campaign: Campaign, explored: Explored, count: int) -> list[State]:
    """Of the states that were mounted and pass, the one in the middle of each of `count` parts."""
    good = sorted(number for number, verdict in explored.verdicts.items() if verdict.passed)
    count = min(count, len(good))
    return [
        campaign.states[good[len(good) * (2 * number + 1) // (2 * count)]]
        for number in range(count)
    ]


def explore(
    campaign: Campaign,
    explored: Explored,
    count: int,
    built: Artifacts,
    cache: Cache,
    progress: Progress,
    jobs: int,
    end: float | None,
    write: Write,
) -> list[dict[str, Any]]:
    """What is found for each of `count` states, as results.json has it; none is begun after `end`
    of time.monotonic(). `write` is given each run's results.
    """
    found = []
    for state in chosen(campaign, explored, count):
        if end is not None and time.monotonic() >= end:
            found.append({"state": state.id, "complete": False})
            continue
        small = campaign.again(state, built)
        small.record(built, cache, progress)
        left = None if end is None else max(0.0, end - time.monotonic())
        results = report.content(small, small.explore(built, cache, progress, jobs, left))
        write(small, results)
        names = ("complete", "operations", "states", "explored", "mounted", "failed")
        first = results["failures"][:1]
        found.append(
            {
                "state": state.id,
                **{name: results[name] for name in names},
                "first": {name: first[0][name] for name in ("state", "stage", "said")}
                if first
                else None,
            }
        )
    return found
