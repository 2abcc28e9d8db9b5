# SPDX-License-Identifier: GPL-2.0-or-later
"""The states of a recorded drive without a guest: rsdview (host/tools/rsdview)."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rsd.cache import Cache
from rsd.crash.states import Flying, Operation, State
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.sim import ensure_program

SOURCES = ("host/tools/rsdview", "hw/rsd-nvme/core")

# Number of a namespace's blocks that were read: namespace from 0 on, first block, how many
Read = tuple[int, int, int]


@dataclass(frozen=True)
class Recorded:
    """A media file and its log, and the program that shows them."""

    program: Path
    media: Path
    log: Path

    @classmethod
    def open(cls, directory: Path, cache: Cache, progress: Progress) -> "Recorded":
        """The files of a directory."""
        program = ensure_program(cache, progress, "rsdview", SOURCES).path
        return cls(program, directory / "media", directory / "log")

    def operations(self) -> list[Operation]:
        """All that the log has. RsdError says what is wrong with it."""
        command = [self.program, self.media, self.log, "list"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RsdError(done.stderr.strip().removeprefix("rsdview: "))
        return _parsed(done.stdout.splitlines())


def _parsed(lines: Iterable[str]) -> list[Operation]:
    found: list[Operation] = []
    flying: list[Flying] = []
    for line in [*lines, "op 0 0 end 0 0 0"]:
        word, *fields = line.split()
        if word == "flying":
            kind, block, page, since, flags = fields
            flying.append(
                Flying(kind, int(block), int(page), int(since), "p" in flags, "w" in flags)
            )
            continue
        if found:
            last = found.pop()
            found.append(
                Operation(
                    last.number,
                    last.time_ns,
                    last.kind,
                    last.block,
                    last.page,
                    last.lba,
                    tuple(flying),
                )
            )
        flying = []
        number, time_ns, kind, block, page, lba = fields
        if kind != "end":
            found.append(
                Operation(int(number), int(time_ns), kind, int(block), int(page), int(lba))
            )
    return found


class Matcher:
    """Which states are the same to who reads the drive: host/tools/rsdview/match.h."""

    def __init__(self, recorded: Recorded, states: Sequence[State], keys: Sequence[int]) -> None:
        self._process = subprocess.Popen(
            [recorded.program, recorded.media, recorded.log, "same"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for state, key in zip(states, keys, strict=True):
            self._send(f"state {state.id} {state.op} {state.outcomes or '-'} {key}\n")

    def __enter__(self) -> "Matcher":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def looked(self, state: int, reads: Sequence[Read]) -> None:
        """It was looked at, and this was read meanwhile. Nothing: it is like no other."""
        words = [str(number) for read in reads for number in read]
        self._send(f"looked {state} {' '.join(words)}\n")

    def next(self, most: int) -> tuple[dict[int, int], list[int]]:
        """The states that are now known to be as another, and which are to be looked at."""
        self._send(f"next {most}\n")
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.flush()
        same: dict[int, int] = {}
        look: list[int] = []
        for line in self._process.stdout:
            word, *numbers = line.split()
            if word == "same":
                same[int(numbers[0])] = int(numbers[1])
            elif word == "look":
                look.append(int(numbers[0]))
            else:
                return same, look
        self._ended()
        raise AssertionError

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except BrokenPipeError:
            self._ended()

    def _ended(self) -> None:
        assert self._process.stderr is not None
        said = self._process.stderr.read().strip() or f"status {self._process.wait()}"
        raise RsdError(f"rsdview cannot compare the states: {said}")
