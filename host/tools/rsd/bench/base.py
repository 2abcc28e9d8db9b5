# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benches share."""

from collections.abc import Callable
from dataclasses import dataclass

from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.progress import Progress

__all__ = ["REPOSITORY", "Bench", "Context", "Row", "near"]


@dataclass(frozen=True)
class Context:
    """What a bench works with."""

    built: Artifacts
    cache: Cache
    progress: Progress


@dataclass(frozen=True)
class Row:
    """One figure. `passed` is None for a figure that nothing is required of.

    `why` says what limits one that is not what it must be; it changes no verdict.
    """

    what: str
    must: str
    measured: str
    value: float
    unit: str
    clock: str
    passed: bool | None
    why: str = ""


@dataclass(frozen=True)
class Bench:
    """A group of figures that are measured together."""

    summary: str
    run: Callable[[Context], list[Row]]


def near(measured: float, expected: float, tolerance: float) -> bool:
    """Whether the figure is within a relative tolerance of what it must be."""
    return abs(measured - expected) <= tolerance * expected
