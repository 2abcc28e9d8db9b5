# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks at states in a guest, which rewinds the drive to each of them in turn."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.crash import record
from rsd.crash.guest import ace
from rsd.crash.record import Marks, Work
from rsd.crash.states import State
from rsd.crash.subject import DRIVES, Subject
from rsd.crash.view import Read
from rsd.errors import RsdError
from rsd.machine import GuestJob, GuestResult, Outcome, run_guest
from rsd.written import copy_media

# Status of visit.py when a volume could not be unmounted
LEFT = 9
# Of a guest that died in a state, the end of its console
TAIL_LINES = 12
COMMAND = re.compile(r"nsid=(\d+), .*cmd=\(nvme_cmd_(read|write) slba=(\d+), len=(\d+),")
# Of the guest's clock, beside what checks may take
STATE_S, GUEST_S = 60, 60


@dataclass(frozen=True)
class Verdict:
    """Of a state that was looked at. `stage` and `said` tell of a failure.

    `reads` are the blocks that were read before anything was written there. Without them, as they
    may be lost with the guest, no other state is known to be the same.
    """

    state: int
    passed: bool
    stage: str = ""
    said: str = ""
    reads: tuple[Read, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """For the file of verdicts."""
        return {**vars(self), "reads": [number for read in self.reads for number in read]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Verdict":
        """What to_json() gave."""
        flat = content["reads"]
        reads = tuple(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        return cls(**{**content, "reads": reads})


@dataclass(frozen=True)
class Visitor:
    """What all states of a recorded work have in common. `directory` has `media` and `log`."""

    subject: Subject
    work: Work
    check: Path | None
    given: Path | None
    marks: Marks
    limit_s: int
    directory: Path

    def plan(self, states: Sequence[State]) -> dict[str, Any]:
        """What visit.py is told."""
        after = self.subject.stack.file_system.after_mount
        return {
            "device": DRIVES["$drive"],
            "volume": {
                "mount": self.subject.mount,
                "fsck": self.subject.fsck,
                "after_mount": ["sh", "-c", after] if after else [],
            },
            "limit_s": self.limit_s,
            "check": ["sh", f"/in/{record.PROGRAMS}/check"] if self.check else [],
            "ace": self.marks.ace and {**self.marks.ace, "works": ace.dump(self.work.works)},
            "states": [self._state(state) for state in states],
        }

    def _state(self, state: State) -> dict[str, Any]:
        what: dict[str, Any] = {"id": state.id, "op": state.op, "outcomes": state.outcomes}
        if self.marks.ace:
            return {**what, "steps": self.marks.steps(state.op)}
        return {**what, "names": self.marks.at(state.op)}

    def inputs(self, states: Sequence[State]) -> dict[str, bytes | str | Path]:
        """The guest's /in."""
        found = record.inputs(self.subject, self.work, self.given)
        if self.check:
            found[f"{record.PROGRAMS}/check"] = self.check
        return {**found, f"{record.PROGRAMS}/plan": json.dumps(self.plan(states))}

    def job(self, states: Sequence[State], scratch: Path, script: str) -> GuestJob:
        """A guest with a copy of the drive."""
        for name in ("media", "log"):
            copy_media(self.directory / name, scratch / name)
        return GuestJob(
            system=self.subject.stack.drive,
            script=script,
            media=scratch / "media",
            inputs=self.inputs(states),
            rfs=self.subject.stack.rfs,
            out_dir=scratch / "out",
            namespace={**self.subject.properties, "op-log": str(scratch / "log")},
            virtual_limit_s=GUEST_S + len(states) * (STATE_S + 2 * self.limit_s),
            wall_limit_s=None,
        )

    def visit(
        self,
        states: Sequence[State],
        built: Artifacts,
        cache: Cache,
        spent: Callable[[float], None],
    ) -> list[Verdict]:
        """A verdict for each. `spent` is told the processor time of each guest."""
        verdicts: list[Verdict] = []
        while len(verdicts) < len(states):
            with cache.scratch("crash") as scratch:
                script = (
                    f"{record.insert(self.subject)} || exit\n"
                    + self.subject.stack.file_system.before_mount
                    + f"\npython3 -B /in/{record.PROGRAMS}/visit.py /in/{record.PROGRAMS}/plan\n"
                )
                job = self.job(states[len(verdicts) :], scratch, script)
                result = run_guest(job, built, cache=cache)
                spent(result.qemu_cpu_s)
                verdicts += _verdicts(result, scratch / "out/commands")
        return verdicts


def _verdicts(result: GuestResult, traces: Path) -> list[Verdict]:
    """Of the states that the guest got through, and of one in which it died: at least one."""
    verdicts = []
    begun = None
    for line in result.output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "@begin":
            begun = int(rest)
        elif word == "@end":
            number, _, text = rest.partition(" ")
            verdicts.append(_verdict(int(number), json.loads(text), traces / number))
            begun = None
    if result.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    if result.outcome is not Outcome.EXITED and begun is not None:
        tail = "\n".join(result.console.splitlines()[-TAIL_LINES:])
        verdicts.append(Verdict(begun, False, "guest", f"{result.outcome.value}\n{tail}"))
    elif result.status not in (0, LEFT) or not verdicts:
        lines = "".join(f"\n  | {line}" for line in result.output.splitlines()[-15:])
        raise RsdError(f"states could not be looked at: status {result.status}{lines}")
    return verdicts


def _verdict(state: int, content: Mapping[str, Any], trace: Path) -> Verdict:
    if content.get("stage") == "rewind":
        raise RsdError(f"state {state}: the drive cannot be rewound: {content['said']}")
    text = trace.read_text() if content["complete"] and trace.exists() else ""
    return Verdict(
        state,
        content["passed"],
        content.get("stage", ""),
        content.get("said", ""),
        tuple(_reads(text)),
    )


def _reads(trace: str) -> list[Read]:
    """The blocks that were read before anything was written there, in ranges.

    What was written was decided by what had been read before, and so is what is read there later.
    """
    read: set[tuple[int, int]] = set()
    written: set[tuple[int, int]] = set()
    for namespace, how, first, more in COMMAND.findall(trace):
        at, start = int(namespace) - 1, int(first)
        blocks = {(at, lba) for lba in range(start, start + int(more) + 1)}
        if how == "write":
            written |= blocks
        else:
            read |= blocks - written
    found: list[Read] = []
    for at, lba in sorted(read):
        if found and found[-1][0] == at and lba == found[-1][1] + found[-1][2]:
            found[-1] = (at, found[-1][1], found[-1][2] + 1)
        else:
            found.append((at, lba, 1))
    return found
