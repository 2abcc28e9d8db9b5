# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations of a drive, and the states that power cuts after them leave."""

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from rsd.errors import RsdError

ALL = "all"
# As many letters as the drive takes
MOST_LETTERS = 4000


@dataclass(frozen=True)
class Flying:
    """What a power cut meets: a program or an erase that a die has begun, or that waits to be.

    What is `protected` by a buffer cannot be torn. What is `waiting` in the buffer cannot either.
    """

    kind: str
    block: int
    page: int
    since_ns: int
    protected: bool
    waiting: bool

    @property
    def letters(self) -> str:
        """What may become of it: absent, torn, complete."""
        return "ac" if self.protected or self.waiting else "atc"


@dataclass(frozen=True)
class Operation:
    """A numbered operation, and what was in flight after it. Number 0 is where the log begins."""

    number: int
    time_ns: int
    kind: str
    block: int
    page: int
    lba: int
    flying: tuple[Flying, ...] = ()


@dataclass(frozen=True)
class State:
    """What a power cut after operation `op` leaves: a letter for each thing in flight."""

    id: int
    op: int
    outcomes: str


def points(last: int, asked: str) -> list[int]:
    """The operations after which the power is cut: "all", or so many in even distance."""
    if asked == ALL:
        return list(range(last + 1))
    count = int(asked)
    if count > last + 1:
        raise RsdError(
            f"--points {count}: the work ends with operation {last}, so that there are {last + 1}",
            f"--points all, or 1 to {last + 1}",
        )
    return [last * number // max(1, count - 1) for number in range(count)]


def choose(operations: Sequence[Operation], asked: str, most: int, seed: int) -> tuple[State, ...]:
    """The states to explore: at each point all outcomes, or `most` of them."""
    found = [
        (op, outcomes)
        for op in points(operations[-1].number, asked)
        for outcomes in _outcomes(operations[op], most, seed)
    ]
    return tuple(State(number, op, outcomes) for number, (op, outcomes) in enumerate(found))


def _outcomes(operation: Operation, most: int, seed: int) -> list[str]:
    """All absent, complete and torn are the first where not all can be."""
    letters = [one.letters for one in operation.flying[:MOST_LETTERS]]
    count = math.prod(map(len, letters))
    if count <= most:
        return ["".join(chosen) for chosen in itertools.product(*letters)]
    alike = ("a", "c", "t")
    found = dict.fromkeys(
        "".join(letter if letter in may else "a" for may in letters) for letter in alike[:most]
    )
    chance = random.Random(f"{seed} {operation.number}")
    while len(found) < most:
        found["".join(map(chance.choice, letters))] = None
    return list(found)
