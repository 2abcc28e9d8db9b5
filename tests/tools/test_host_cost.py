# SPDX-License-Identifier: GPL-2.0-or-later
"""What ./rsd bench host-cost makes of rounds that were disturbed."""

import pytest

from rsd.bench.cpu_meter import Reading
from rsd.bench.host_cost import LOADS, Round, least, row


def disturbed(idle: float = 0, one: float = 0, many: float = 0) -> Round:
    """10 I/Os of 0.1 s each on a guest that takes 2% when idle; CPU seconds that came on top."""
    return Round(Reading(0.1 + idle, 5), Reading(0.12 + one, 1), Reading(1.06 + many, 3))


def test_what_makes_idling_dear_makes_no_work_cheap() -> None:
    assert least([disturbed()], 10) == pytest.approx(90_000)
    rounds = [disturbed(idle=0.5), disturbed(one=0.3), disturbed(many=0.2), disturbed(0.1, 0.1, 1)]
    # each of the first two alone would have it that the I/Os cost less than they do
    assert [least([r], 10) < 90_000 for r in rounds] == [True, True, False, False]
    assert least(rounds, 10) == pytest.approx(90_000)


def test_a_row_says_both() -> None:
    ours = [disturbed(many=0.1), disturbed(many=0.3)]
    found = row(LOADS["append"], {"stock-zns": [disturbed(), disturbed()], "rsd": ours})
    assert found.value == pytest.approx(1.1 / 0.9)
    assert found.passed is False
    assert "; of the least 1.111" in found.measured
