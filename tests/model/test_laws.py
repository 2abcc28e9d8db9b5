# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd bench laws` in short: the laws that take little time, 100 random settings, and what a
violation looks like. RSD_LAW_SETTINGS sets how many random settings are tried."""

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from rsd.bench.laws.base import AT_LEAST, AT_MOST, EQUAL, Law, Point, Simulator, judge
from rsd.bench.laws.collection import MANY, small_dies
from rsd.bench.laws.randomly import FAMILIES
from rsd.bench.laws.table import LAWS
from rsd.bench.laws.trial import Record, random_trials, trials

SETTINGS = int(os.environ.get("RSD_LAW_SETTINGS", "100"))
# These take seconds each; ./rsd bench laws has them.
LONG = (
    "one-frontier two-frontiers two-frontiers-fifo many-small-dies many-small-dies-skewed "
    "greedy-uniform fifo-uniform dies-are-alike skew-is-bounded skew-helps spares-are-flash "
    "steady-is-steady steady-from-below fifo-hot-cold fifo-worse-with-skew read-of-aged".split()
)
SUBJECTS = sorted({law.subject for law in LAWS.values()})


def test_the_table_is_a_table() -> None:
    """80 laws at least, each with a sentence and a source."""
    assert len(LAWS) >= 80
    assert set(LONG) <= LAWS.keys()
    for law in LAWS.values():
        assert law.says.endswith("."), law.name
        assert law.source, law.name
        assert law.relation in (EQUAL, AT_MOST, AT_LEAST), law.name
        assert 0 <= law.tolerance <= 0.1, law.name


@pytest.mark.parametrize("subject", SUBJECTS)
def test_laws(rsdsim: Path, tmp_path: Path, subject: str) -> None:
    names = [name for name, law in LAWS.items() if law.subject == subject and name not in LONG]
    found = list(trials(names, rsdsim, tmp_path, 1))
    assert [one.law for one in found] == names
    assert not violated(found)


def test_random_settings(rsdsim: Path, tmp_path: Path) -> None:
    """Each family has its share."""
    found = list(random_trials(SETTINGS, 1, rsdsim, tmp_path, 1))
    assert len(found) == SETTINGS
    assert {one.law.split("/")[0] for one in found} == {family.name for family in FAMILIES}
    assert not violated(found)


def test_two_writes_a_die_in_flight(rsdsim: Path, tmp_path: Path) -> None:
    """Of the law many-small-dies the point in which most depends on where the host's pages go."""
    law = replace(
        LAWS["many-small-dies"],
        points=lambda simulator: [small_dies(simulator, "uniform", 64, MANY)],
    )
    assert judge(law, Simulator(rsdsim, tmp_path)).holds


def violated(found: Iterable[Record]) -> str:
    """What is violated, a line each."""
    return "\n".join(f"{one.law}: {one}" for one in found if not one.holds)


def _law(relation: str, tolerance: float, *points: tuple[float, float]) -> Law:
    return Law(
        "law",
        "subject",
        "Says.",
        "source",
        relation,
        tolerance,
        lambda _: [Point(expected, got, ()) for expected, got in points],
    )


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (_law(EQUAL, 0.0, (5, 5)), 0),
        (_law(EQUAL, 0.0, (5, 5), (10**7, 10**7 + 1)), 1),
        (_law(EQUAL, 0.02, (100, 102), (100, 98), (100, 102.1), (100, 97.9)), 2),
        (_law(EQUAL, 0.0, (0, 0), (0, 1)), 1),
        (_law(EQUAL, 0.5, (1, float("nan"))), 1),
        (_law(AT_MOST, 0.0, (5, 5), (5, 4), (5, 6)), 1),
        (_law(AT_LEAST, 0.01, (100, 99), (100, 98), (100, 200)), 1),
    ],
)
def test_verdicts(law: Law, count: int) -> None:
    verdict = judge(law, Simulator(Path("/nowhere"), Path("/nowhere")))
    assert len(verdict.violated) == count
    assert verdict.holds == (count == 0)


def test_a_wrong_drive_is_seen(rsdsim: Path, tmp_path: Path) -> None:
    """rsdsim with 1 ns more of tX, whatever is asked; and one that fails."""
    wrong = tmp_path / "wrong"
    wrong.write_text(f'#!/bin/sh\nexec {rsdsim} --set t-xfer=30834 "$@"\n')
    wrong.chmod(wrong.stat().st_mode | stat.S_IXUSR)
    found = {one.law: one for one in trials(["read", "write", "reset-mark"], wrong, tmp_path, 1)}
    assert not found["read"].holds
    assert (found["read"].expected, found["read"].got) == (93_333, 93_334)
    assert found["read"].commands[0].startswith("./rsd sim --set ")
    assert not found["write"].holds
    assert found["reset-mark"].holds
    wrong.write_text("#!/bin/sh\necho rsdsim: no >&2\nexit 1\n")
    (failed,) = trials(["read"], wrong, tmp_path, 1)
    assert not failed.holds
    assert "rsdsim: no" in failed.error


def test_a_drive_that_writes_nothing_is_seen(rsdsim: Path, tmp_path: Path) -> None:
    """Write amplification has no value then, which violates a law and does not end the command."""
    wrong = tmp_path / "wrong"
    wrong.write_text(f'#!/bin/sh\nexec {rsdsim} "$@" --reads 100\n')
    wrong.chmod(wrong.stat().st_mode | stat.S_IXUSR)
    (found,) = trials(["greedy-small-blocks"], wrong, tmp_path, 1)
    assert not found.holds
    assert "the host has written nothing" in found.error
