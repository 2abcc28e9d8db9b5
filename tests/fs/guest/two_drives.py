# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: two_drives.py DRIVE SLOW POINTS SEED FIRST LAST FIRST LAST PROMISES CHECK...

The same as points.py for a hybrid volume: the power of DRIVE and SLOW is cut at the same moment,
just before POINTS operations of either in even distance. FIRST and LAST are operations of DRIVE's
log, then of SLOW's.
"""

import itertools
import random
import sys

from drive import Drive
from points import look_at
from state import Volume


class Both:
    """Two drives, and one log of their operations, in the order in which they were done."""

    def __init__(self, drives: list[Drive], spans: list[tuple[int, int]], seed: int) -> None:
        self.drives = drives
        self.seed = seed
        self.log = sorted(
            (when, which)
            for which, (first, last) in enumerate(spans)
            for when in drives[which].times(first + 1, last)
        )
        self.first = [first for first, _ in spans]
        self.seconds = list(itertools.accumulate((which for _, which in self.log), initial=0))

    def at(self, number: int) -> tuple[int, int]:
        """How far the log of each drive is after so many operations of both."""
        second = self.seconds[number]
        return self.first[0] + number - second, self.first[1] + second

    def _outcomes(self, number: int, which: int, operation: int) -> str:
        """What may have become of what was in flight just before the operation after `number`.

        The other drive's own next operation may come later; what it begins until then may follow
        from operations that are not to happen.
        """
        when, whose = self.log[number]
        chance = random.Random(f"{self.seed} {number} {which}")
        letters = ""
        for since, safe, waiting in self.drives[which].in_flight(operation):
            may = whose == which or (since < when and not waiting)
            letters += chance.choice("ac" if safe or waiting else "atc") if may else "a"
        return letters

    def rewind(self, number: int, _: int | str) -> None:
        """Cut the power of both after so many operations."""
        for which, operation in enumerate(self.at(number)):
            outcomes = self._outcomes(number, which, operation)
            self.drives[which].rewind(operation, outcomes)


def main() -> None:
    device, slow, points, seed, *spans, promises, program = sys.argv[1:11]
    check = sys.argv[11:]
    ends = list(map(int, spans))
    both = Both(
        [Drive(device), Drive(slow)],
        [(ends[0], ends[1]), (ends[2], ends[3])],
        int(seed),
    )
    count, end = int(points), len(both.log) - 1
    numbers = [end * index // (count - 1) for index in range(count)]
    took = look_at(
        both,
        Volume((device, "rfs", f"slow={slow}"), check),
        [(number, 0, both.at(number)[0]) for number in numbers],
        promises,
        program,
        seed,
    )
    second = both.seconds[-1]
    print(
        f"{count} points of {len(both.log) - second} and {second} operations,"
        f" {took:.0f} s of the guest"
    )


main()
