# SPDX-License-Identifier: GPL-2.0-or-later
"""All laws, by subject."""

from rsd.bench.laws import (
    bandwidth,
    buffering,
    collection,
    conservation,
    disk,
    endurance,
    equality,
    monotony,
    queueing,
    symmetry,
    timing,
)
from rsd.bench.laws.base import Law

__all__ = ["LAWS"]

BOOKS = (
    timing.BOOK,
    bandwidth.BOOK,
    queueing.BOOK,
    buffering.BOOK,
    collection.BOOK,
    conservation.BOOK,
    monotony.BOOK,
    symmetry.BOOK,
    equality.BOOK,
    endurance.BOOK,
    disk.BOOK,
)
LAWS: dict[str, Law] = {law.name: law for book in BOOKS for law in book.laws}
assert len(LAWS) == sum(len(book.laws) for book in BOOKS), "two laws have one name"
