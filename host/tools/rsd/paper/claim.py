# SPDX-License-Identifier: GPL-2.0-or-later
"""What a figure of a paper says, what is measured here, and the verdict, by rule, from numbers.

A verdict is of the numbers alone: nothing that is known of a cause changes it.
"""

import enum
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

# How far a value may be from the paper's: in parts of the value it is compared with (10 points),
# or in parts of itself (10%).
POINTS = 0.10
SHARE = 0.10


class Verdict(enum.Enum):
    """What the numbers say of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction"
    NOT = "not reproduced"


@dataclass(frozen=True)
class Claim:
    """One comparison of a figure: a value of each system, in the paper and here.

    The values are compared in parts of `reference`'s, as drives and machines differ; without one
    they are compared as they are. `beside` are systems that the paper has not. A system that is
    missing in `measured` could not do the work; `note` says why, and names the command whose output
    shows what else is said. With `ranks` the paper shows an order without numbers: its values are
    ranks, and there is no more to have than the direction.
    """

    what: str
    unit: str
    paper: Mapping[str, float]
    measured: Mapping[str, float]
    reference: str | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    ranks: bool = False

    def parts(self, values: Mapping[str, float]) -> dict[str, float]:
        """Values in parts of the reference's."""
        if self.reference is None:
            return dict(values)
        if not (base := values.get(self.reference)):
            return {}
        return {system: value / base for system, value in values.items()}

    @property
    def verdict(self) -> Verdict:
        """Reproduced: every value is near. Direction: the systems are in the same order."""
        paper, measured = self.parts(self.paper), self.parts(self.measured)
        if not paper.keys() <= measured.keys():
            return Verdict.NOT
        if not self.ranks and all(
            _near(measured[system], value) for system, value in paper.items()
        ):
            return Verdict.REPRODUCED
        pairs = [(a, b) for a, b in itertools.permutations(paper, 2) if paper[a] < paper[b]]
        ordered = pairs and all(measured[a] < measured[b] for a, b in pairs)
        return Verdict.DIRECTION if ordered else Verdict.NOT


@dataclass(frozen=True)
class Limit:
    """A figure that says no more than that something is little: `measured` is to be below it."""

    what: str
    unit: str
    limit: float
    measured: float
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """There is no direction to have."""
        return Verdict.REPRODUCED if self.measured < self.limit else Verdict.NOT


def _near(measured: float, paper: float) -> bool:
    # A ten-thousandth of the allowance: 0.90 is 10 points from 1.00 in spite of binary fractions.
    slack = 1 + 1e-4
    return abs(measured - paper) <= slack * max(POINTS, SHARE * abs(paper))
