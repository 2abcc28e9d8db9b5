# SPDX-License-Identifier: GPL-2.0-or-later
"""Write amplification in closed form, beyond what rsd.bench.amplification has."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp


@dataclass(frozen=True)
class Class:
    """Pages that are written alike: their share of the writes and of the space."""

    writes: float
    space: float


def fifo_classes(over_provision: float, classes: Sequence[Class]) -> float:
    """FIFO collection, one frontier, classes of pages (Desnoyers, SYSTOR 2012, section 4).

    A page that is programmed is met again when the log of T = a U pages has gone round, which
    is after a U / A writes of the host, A being the amplification. A page of a class of r of the
    writes and s of the space is still valid then with v = exp(-(r / s) a / A). What is programmed
    of a class is e = r + e v, so that A is the sum of r / (1 - v): a fixed point.
    """
    ratio = 1 + over_provision

    def programmed(amplification: float) -> float:
        return sum(
            one.writes / (1 - exp(-one.writes / one.space * ratio / amplification))
            for one in classes
        )

    low, high = 1.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if programmed(middle) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def trimmed(over_provision: float, trims: float) -> float:
    """The over-provisioning that trims make of it (Frankie, Hughes and Kreutz-Delgado 2012).

    Of uniform writes and trims, a share `trims` of both, a page is valid if a write was last:
    1 - trims of them are. It becomes invalid by either, 1 / (1 - trims) times as often as
    by writes alone. So the drive is one of U (1 - trims) pages.
    """
    return (1 + over_provision) / (1 - trims) - 1
