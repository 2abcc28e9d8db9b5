# SPDX-License-Identifier: GPL-2.0-or-later
"""The controller of the reference model, before and behind the flash: firmware and the host's link.

The rules are those of core/front/host.c's header.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from machine import Machine

if TYPE_CHECKING:
    from reference import Command

TIMES = "t-fw-read t-fw-write t-fw-append t-fw-zone t-fw-page t-lat-read t-lat-write t-lat-zone"
ZONE = ("reset", "finish", "zopen", "commit")
KIND = {"read": "read"} | dict.fromkeys(ZONE, "zone")  # all others: write


class Line:
    """Commands in order, each with the time at which it leaves: no earlier than the one before."""

    def __init__(self, machine: Machine, leave: Callable[["Command"], None]) -> None:
        self.machine, self.leave = machine, leave
        self.waiting: deque[tuple[int, Command]] = deque()
        self.latest = 0
        self.awaited = False  # the next event of its head is to come, or happens

    def enter(self, cmd: "Command", when: int) -> None:
        """A command that will be ready then."""
        self.latest = max(self.latest, when)
        self.waiting.append((self.latest, cmd))
        if not self.awaited:
            self.awaited = True
            self.machine.at(self.latest, self._head_leaves)

    def _head_leaves(self) -> None:
        while self.waiting and self.waiting[0][0] <= self.machine.now:
            self.leave(self.waiting.popleft()[1])
        self.awaited = bool(self.waiting)
        if self.waiting:
            self.machine.at(self.waiting[0][0], self._head_leaves)


class Front:
    """Cores, the link in both directions, and what is handed over in order."""

    def __init__(
        self,
        machine: Machine,
        cfg: dict[str, int | str],
        hand_over: Callable[["Command"], None],
        complete: Callable[["Command"], None],
    ) -> None:
        self.machine = machine
        self.times = {name: int(cfg.get(name, 0)) for name in [*TIMES.split(), "t-link"]}
        self.there = any(self.times.values())
        self.cores_free_at = [0] * int(cfg.get("cores", 1))
        self.link_in_free_at = self.link_out_free_at = 0
        self.complete = complete
        self.entering = {is_read: Line(machine, hand_over) for is_read in (True, False)}
        self.stepping = Line(machine, hand_over)
        self.leaving = {kind: Line(machine, complete) for kind in ("read", "write", "zone")}

    def submit(self, cmd: "Command") -> None:
        """A command arrives: a core looks at it, data comes in, it is handed over."""
        kind = "append" if cmd.op == "append" else KIND.get(cmd.op, "write")
        pages = cmd.nlb if cmd.op in ("read", "write", "append") else 0
        ready = self._core(self.times[f"t-fw-{kind}"] + pages * self.times["t-fw-page"])
        if cmd.op in ("write", "append"):
            ready = max(ready, self.link_in_free_at) + cmd.nlb * self.times["t-link"]
            self.link_in_free_at = ready
        self.entering[cmd.op == "read"].enter(cmd, ready)

    def step(self, cmd: "Command") -> None:
        """A trim's next step, after those of others: each has a nanosecond of its own at least."""
        ready = self._core(self.times["t-fw-write"])
        earliest = max(self.machine.now, self.stepping.latest) + 1
        self.stepping.enter(cmd, max(ready, earliest))

    def _core(self, time: int) -> int:
        """When the core that is free first has worked for so long."""
        core = self.cores_free_at.index(min(self.cores_free_at))
        ready = max(self.machine.now, self.cores_free_at[core]) + time
        self.cores_free_at[core] = ready
        return ready

    def done(self, cmd: "Command") -> None:
        """The flash, or the buffer, has done it."""
        when, kind = self.machine.now, KIND.get(cmd.op, "write")
        if cmd.op in ("flush", "trim"):
            self.complete(cmd)
            return
        if cmd.op == "read":
            when = max(when, self.link_out_free_at) + cmd.nlb * self.times["t-link"]
            self.link_out_free_at = when
        self.leaving[kind].enter(cmd, when + self.times[f"t-lat-{kind}"])
