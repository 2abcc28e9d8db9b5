# SPDX-License-Identifier: GPL-2.0-or-later
"""A table or a figure of a paper: a row of `./rsd paper --list`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rsd.bench.base import Context
from rsd.cluster.unit import Unit
from rsd.paper.claim import Claim, Limit


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    `capacities`: of the drive, how often the host writes it before a benchmark counts. `live`: of
    the flash, how much holds data while it runs, in percent.
    """

    capacities: float
    live: int


DEFAULT = Scale(capacities=8, live=60)


@dataclass(frozen=True)
class Entry:
    """`name` as on the command line; `shows` is a sentence.

    `run` measures. Where it is None, `missing` says what it needs. `units` are its guests, those of
    other entries may be the same ones.
    """

    name: str
    shows: str
    run: Callable[[Context, Scale], list[Claim | Limit]] | None = None
    missing: str = ""
    units: Callable[[Context, Scale], Sequence[Unit]] = lambda context, scale: ()


@dataclass(frozen=True)
class Paper:
    """One of the five. `reference` is as one would cite it."""

    name: str
    reference: str
    entries: tuple[Entry, ...]
