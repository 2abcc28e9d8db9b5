# SPDX-License-Identifier: GPL-2.0-or-later
"""A piece of work as another machine is told of it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """`arguments` of the workflow's program, the last of which takes the name of the result's file.

    `key`: a hash of everything that decides the result. `title`: for people.
    """

    key: str
    title: str
    arguments: Sequence[str]
