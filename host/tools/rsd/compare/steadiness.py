# SPDX-License-Identifier: GPL-2.0-or-later
"""Is what a measurement begins with in steady state? What is said of aged drives and volumes.

rsdsim judges drives itself. Volumes are judged here by the same criterion, which
host/tools/rsdsim/steady.h explains: the window is the last two thirds of the rounds, in five parts
of two rounds at least. The parts' means lie within 2% of their average, and the line fitted to them
rises or falls by 0.5% of it at most. No round is looked at in which flash was still unused.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.compare.figures import counters, read_json

PARTS = 5
PART_LEAST = 2
RANGE = 0.02
SLOPE = 0.005

PAGE = 4096


@dataclass(frozen=True)
class Verdict:
    """What became of an aging. `capacities`: how often the flash, or a drive, was written.

    `range` and `slope` are shares of the window's average; None if there are too few rounds.
    `levelling_ahead`: static wear levelling has yet to begin.
    """

    steady: bool
    capacities: float
    range: float | None
    slope: float | None
    levelling_ahead: bool = False

    def to_json(self) -> dict[str, Any]:
        """As results.json has it."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Begins with "steady after" or "not steady after"."""
        how = "steady" if self.steady else "not steady"
        text = f"{how} after {self.capacities:g} capacities"
        if self.range is None or self.slope is None:
            return f"{text}: too few rounds to look at"
        text += f", range {self.range:.1%}, slope {self.slope:+.1%}"
        return text + (", but for static wear levelling" if self.levelling_ahead else "")


def look(amplification: Sequence[float], first: int) -> tuple[float, float] | None:
    """Range and slope of the window, which begins with round `first` or later."""
    length = max(len(amplification) * 2 // 3 // PARTS, PART_LEAST)
    start = len(amplification) - length * PARTS
    if start < first:
        return None
    parts = [
        sum(amplification[at : at + length]) / length
        for at in range(start, len(amplification), length)
    ]
    average = sum(parts) / PARTS
    # least squares: the sum of (x - 2) y by that of (x - 2) ** 2, which is 10
    fit = sum((number - 2) * part for number, part in enumerate(parts)) / 10
    return (max(parts) - min(parts)) / average, (PARTS - 1) * fit / average


def of_drive(aging: Path) -> Verdict:
    """From what rsdsim printed when it wrote the drive."""
    found = read_json(aging)["precondition"]
    return Verdict(
        found["steady"],
        found["capacities"],
        found["range"],
        found["slope"],
        found.get("levelling") == "ahead",
    )


def of_volume(readings: Path, flash: int) -> Verdict:
    """From the counters that age.py had read; `flash` is how many bytes it has.

    The figure of a round are the pages that the flash programmed for each 4 KiB of the files: what
    the file system wrote besides, moved, or had the drive move.
    """
    points = sorted(
        (int(path.name), counters(read_json(path))["nand_programs"]) for path in readings.iterdir()
    )
    rounds = [
        (after[1] - before[1]) * PAGE / (after[0] - before[0])
        for before, after in zip(points, points[1:], strict=False)
    ]
    first = sum(programs * PAGE < flash for _, programs in points[1:])
    seen = look(rounds, first)
    capacities = round(points[-1][0] / flash, 2)
    if seen is None:
        return Verdict(False, capacities, None, None)
    return Verdict(seen[0] <= RANGE and abs(seen[1]) <= SLOPE, capacities, *seen)


def read(path: Path) -> Verdict | None:
    """What was kept; None of a drive that has no flash of ours."""
    return Verdict(**json.loads(path.read_text())) if path.exists() else None
