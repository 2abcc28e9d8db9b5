# SPDX-License-Identifier: GPL-2.0-or-later
"""Trying laws in several processes, and what came out as records."""

import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rsd.bench.laws.base import Law, Point, Simulator, Verdict, judge
from rsd.bench.laws.randomly import FAMILIES
from rsd.bench.laws.table import LAWS
from rsd.errors import RsdError

__all__ = ["Record", "random_trials", "trials"]


@dataclass(frozen=True)
class Record:
    """A law and what was found: all that the table and the page show."""

    law: str
    subject: str
    says: str
    source: str
    relation: str
    tolerance: float
    points: int
    violated: int
    expected: float
    got: float
    commands: tuple[str, ...]
    error: str = ""

    @property
    def holds(self) -> bool:
        """Is no point violated?"""
        return not self.violated

    def must(self) -> str:
        """What it must be, with relation and tolerance."""
        sign = "" if self.relation == "=" else f"{self.relation} "
        slack = f" +- {100 * self.tolerance:.3g}%" if self.tolerance else ""
        return f"{sign}{figure(self.expected)}{slack}"

    @staticmethod
    def of(content: dict[str, Any]) -> "Record":
        """From what as_json() gave."""
        return Record(**(content | {"commands": tuple(content["commands"])}))

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def figure(value: float) -> str:
    """A number for people: integers whole, others with five digits that count."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def _record(law: Law, verdict: Verdict) -> Record:
    shown = verdict.violated[0] if verdict.violated else verdict.worst
    if verdict.violated:
        shown = max(verdict.violated, key=lambda point: point.error(law.relation))
    return _of_point(law, verdict.points, len(verdict.violated), shown)


def _of_point(law: Law, points: int, violated: int, shown: Point, error: str = "") -> Record:
    return Record(
        law.name,
        law.subject,
        law.says,
        law.source,
        law.relation,
        law.tolerance,
        points,
        violated,
        shown.expected,
        shown.got,
        shown.commands,
        error,
    )


def _try(law: Law, program: Path, directory: Path) -> Record:
    """A run that rsdsim refuses, or that crashes, violates its law."""
    try:
        return _record(law, judge(law, Simulator(program, directory, law.name.replace("/", "-"))))
    except RsdError as error:
        return _of_point(law, 1, 1, Point(0, float("nan"), ()), str(error))


def _one(argument: tuple[str, Path, Path]) -> Record:
    name, program, directory = argument
    return _try(LAWS[name], program, directory)


def _one_random(argument: tuple[int, int, Path, Path]) -> Record:
    number, seed, program, directory = argument
    family = FAMILIES[number % len(FAMILIES)]

    def points(sim: Simulator) -> Iterator[Point]:
        return family.draw(sim, random.Random(f"{seed} {number}"))

    law = Law(
        f"{family.name}/{number}",
        "random settings",
        family.says,
        family.source,
        family.relation,
        family.tolerance,
        points,
    )
    return _try(law, program, directory)


def trials(names: Iterable[str], program: Path, directory: Path, jobs: int) -> Iterator[Record]:
    """Each law once, in the order given."""
    yield from _map(_one, [(name, program, directory) for name in names], jobs)


def random_trials(
    count: int, seed: int, program: Path, directory: Path, jobs: int
) -> Iterator[Record]:
    """So many random settings, each of the next family."""
    work = [(number, seed, program, directory) for number in range(count)]
    yield from _map(_one_random, work, jobs)


def _map(function: Callable[[Any], Record], work: list[Any], jobs: int) -> Iterator[Record]:
    if jobs == 1:
        yield from map(function, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(function, work)
