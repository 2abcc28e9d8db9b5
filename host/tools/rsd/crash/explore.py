# SPDX-License-Identifier: GPL-2.0-or-later
"""Explores states: looks at some, and knows of the others that they are the same as one of these.

A state that was looked at has been read: by the recovery of the file system, its fsck, the check.
Another one, which has the same in all blocks that were read, and has to satisfy the same, would be
read in the same way, block by block, and get the same verdict.

It goes in rounds, which do not depend on how many guests run at once. A round is a fixed number of
states, and its guests have a fixed number each, so that the verdicts are those of any other run.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rsd.crash.states import State
from rsd.crash.view import Matcher
from rsd.crash.visit import Verdict
from rsd.parallel import run_all

# States of a round, of the first one, and of a guest
ROUND, FIRST_ROUND, GUEST = 512, 128, 128


@dataclass
class Explored:
    """Verdicts of the states that were looked at, and the states that are the same as these."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    complete: bool = True

    def verdict(self, state: int) -> Verdict | None:
        """Of any state; None: it was not explored."""
        return self.verdicts.get(self.same.get(state, state))


# Looks at states in one guest; nothing: there is no time left
Look = Callable[[Sequence[State]], list[Verdict] | None]


def explore(states: Sequence[State], matcher: Matcher, look: Look, jobs: int) -> Explored:
    """All states, or those for which there is time; `jobs` guests at once."""
    found = Explored()
    most = FIRST_ROUND
    while found.complete:
        same, chosen = matcher.next(most)
        found.same |= same
        if not chosen:
            break
        guests = [chosen[at : at + GUEST] for at in range(0, len(chosen), GUEST)]
        todo = [functools.partial(look, [states[id] for id in guest]) for guest in guests]
        for verdicts in run_all(todo, jobs):
            if verdicts is None:
                found.complete = False
                continue
            for verdict in verdicts:
                found.verdicts[verdict.state] = verdict
                matcher.looked(verdict.state, verdict.reads)
        most = ROUND
    return found
