# SPDX-License-Identifier: GPL-2.0-or-later
"""Write amplification of a page map under uniform random writes, in steady state, by formula.

`over_provision` is (flash - user) / user, of the flash that is neither open nor kept free.
"""

from math import exp


def greedy(over_provision: float, pages: int) -> float:
    """Greedy choice, blocks of so many pages, many blocks.

    The mean field of Van Houdt (SIGMETRICS 2013) in the limit of d-choices with d = all blocks,
    which is what Desnoyers (SYSTOR 2012) has for greedy. With time in units in which each valid
    page becomes invalid at rate 1, let blocks be filled, and victims taken, at a rate r a block
    of the drive. A victim has j valid pages, or j - 1: blocks of fewer do not live. Then

        x_i = r / i                      blocks that have i valid pages, j < i <= pages
        sum of x_i + x_j = 1             all blocks
        sum of i x_i + j x_j = u pages   all valid pages, u being user / flash

    give r and x_j for each j, and one j has 0 <= j x_j <= r: what leaves level j by
    invalidation is no more than what comes. Amplification is pages filled by pages written,
    r pages / (u pages).
    """
    used = 1 / (1 + over_provision)
    for level in range(1, pages):
        reciprocals = sum(1 / i for i in range(level + 1, pages + 1))
        rate = (1 - used * pages / level) / (reciprocals - (pages - level) / level)
        at_level = used * pages - (pages - level) * rate
        if rate > 0 and 0 <= at_level <= rate:
            return rate / used
    return 1.0


def first_in_first_out(over_provision: float) -> float:
    """Blocks collected in the order of their filling: the Lambert W formula.

    A page survives a round of the drive's blocks with the probability v = exp(-(1 - v) a), with
    a = flash / user (Menon and Stockmeyer 1998; Desnoyers 2012); amplification is 1 / (1 - v),
    which is a / (a + W(-a exp(-a))).
    """
    ratio = 1 + over_provision
    # u = (1 - v) a is the zero of u - a + a exp(-u) above 0; Newton's steps from above
    fresh = ratio
    for _ in range(200):
        value = fresh - ratio + ratio * exp(-fresh)
        fresh -= value / (1 - ratio * exp(-fresh))
    return ratio / fresh
