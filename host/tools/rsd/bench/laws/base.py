# SPDX-License-Identifier: GPL-2.0-or-later
"""What a law is, and how rsdsim is asked."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rsd.bench.base import REPOSITORY
from rsd.errors import RsdError

__all__ = [
    "AT_LEAST",
    "AT_MOST",
    "EQUAL",
    "Law",
    "Point",
    "Result",
    "Simulator",
    "Verdict",
    "book",
    "judge",
    "models",
]

EQUAL, AT_MOST, AT_LEAST = "=", "<=", ">="
Setting = str | int | float
# A write, a read or a trim of a trace: ns, first block of 4 KiB, blocks, "write" or "read"
Access = tuple[int, int, int, str]


def models() -> None:
    """Makes the modules of tests/model importable, which the models of the laws are in."""
    path = str(REPOSITORY / "tests" / "model")
    if path not in sys.path:
        sys.path.append(path)


@dataclass(frozen=True)
class Point:
    """One figure of a law: what it must be, what it is, and the commands that show it."""

    expected: float
    got: float
    commands: tuple[str, ...]

    def error(self, relation: str) -> float:
        """How far it is off, as a share of what it must be; 0 within a bound."""
        if relation == AT_MOST and self.got <= self.expected:
            return 0.0
        if relation == AT_LEAST and self.got >= self.expected:
            return 0.0
        difference = abs(self.got - self.expected)
        return difference / abs(self.expected) if self.expected else (1.0 if difference else 0.0)


@dataclass(frozen=True)
class Law:
    """A statement that must hold of the drive, where it is from, and how it is tried.

    `tolerance` is a share of the expected figure: 0 means equal, to the last digit.
    """

    name: str
    subject: str
    says: str
    source: str
    relation: str
    tolerance: float
    points: Callable[["Simulator"], Iterable[Point]]


@dataclass(frozen=True)
class Verdict:
    """What came out: the worst of the points, and all that are violated."""

    law: Law
    points: int
    worst: Point
    violated: tuple[Point, ...]

    @property
    def holds(self) -> bool:
        """Is no point violated?"""
        return not self.violated


@dataclass(frozen=True)
class Result:
    """What rsdsim printed with --json."""

    content: Any
    command: str

    @property
    def results(self) -> Any:
        """What was measured."""
        return self.content["results"]

    def after(self, counter: str) -> int:
        """The counter at the end."""
        return int(self.results["counters"][counter]["after"])

    def count(self, *counters: str) -> int:
        """What the counters grew by while it was measured, summed."""
        found = self.results["counters"]
        return sum(int(found[name]["after"] - found[name]["before"]) for name in counters)

    @property
    def amplification(self) -> float:
        """NAND bytes programmed a byte written by the host, exactly."""
        causes = ("host", "clean", "merge", "wear", "map", "pad")
        written = self.count("host_write_pages")
        if not written:
            raise RsdError(f"{self.command}: the host has written nothing")
        return self.count(*(f"prog_{cause}" for cause in causes)) / written

    @property
    def seconds(self) -> float:
        """Of virtual time."""
        return float(self.results["seconds"])

    @property
    def iops(self) -> float:
        """Requests a second."""
        return float(self.results["requests"]) / self.seconds

    @property
    def bytes_per_s(self) -> float:
        """As rsdsim states it."""
        return float(self.results["bytes_per_s"])

    def requests(self, kind: str) -> int:
        """Of "read", "write", "trim" or "zone reset"."""
        operations = self.results["operations"]
        return int(operations[kind]["requests"]) if kind in operations else 0

    def ns(self, kind: str, what: str = "mean") -> float:
        """A latency of one kind of operation."""
        return float(self.results["operations"][kind]["latency_ns"][what])

    def mean_ns(self) -> float:
        """The mean latency of all requests."""
        operations = self.results["operations"]
        total = sum(one["requests"] * one["latency_ns"]["mean"] for one in operations.values())
        return float(total / sum(one["requests"] for one in operations.values()))


@dataclass
class Simulator:
    """rsdsim. Traces that laws make are kept in `directory`, so that their commands work later."""

    program: Path
    directory: Path
    name: str = ""
    traces: int = field(default=0)

    def output(self, work: str, **settings: Setting) -> str:
        """What it prints with --json, as text."""
        arguments = [*_arguments(work, settings), "--json"]
        done = subprocess.run(
            [str(self.program), *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RsdError(f"{_command(work, settings)}: {done.stderr.strip()}")
        return done.stdout

    def run(self, work: str, **settings: Setting) -> Result:
        """One run. Underscores in the names of settings are hyphens of properties."""
        return Result(json.loads(self.output(work, **settings)), _command(work, settings))

    def command(self, work: str, **settings: Setting) -> str:
        """The command line of a run, as it is printed."""
        return _command(work, settings)

    def trace(self, accesses: Iterable[Access]) -> str:
        """The options of a trace of reads and writes, in MQSim's format."""
        kinds = {"write": 0, "read": 1}
        lines = (
            f"{time} 0 {8 * block} {8 * blocks} {kinds[kind]}\n"
            for time, block, blocks, kind in accesses
        )
        return f"--trace {self._write(lines, 'mqsim')} --format mqsim"

    def iolog(self, actions: Iterable[tuple[str, int, int]]) -> str:
        """The same of writes, reads, trims and syncs, in fio's: action, first block, blocks."""
        lines = ["fio version 2 iolog\n", "drive add\n", "drive open\n"]
        lines += [
            f"drive {what} {block * 4096} {blocks * 4096}\n" for what, block, blocks in actions
        ]
        return f"--trace {self._write(lines, 'iolog')} --format iolog"

    def path(self, suffix: str) -> Path:
        """Of a file that a law makes."""
        self.traces += 1
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory / f"{self.name}-{self.traces}.{suffix}"

    def _write(self, lines: Iterable[str], suffix: str) -> str:
        path = self.path(suffix)
        with path.open("w") as stream:
            stream.writelines(lines)
        return shlex.quote(str(path))


def _arguments(work: str, settings: dict[str, Setting]) -> list[str]:
    """A preset comes first: it would undo what is set before it."""
    words = shlex.split(work)
    at = words.index("--preset") if "--preset" in words else len(words)
    preset, rest = words[at : at + 2], words[:at] + words[at + 2 :]
    changed = [f"{name.replace('_', '-')}={value}" for name, value in settings.items()]
    return preset + [word for one in changed for word in ("--set", one)] + rest


def _command(work: str, settings: dict[str, Setting]) -> str:
    text = shlex.join(["./rsd", "sim", *_arguments(work, settings)])
    return text.replace(f"{REPOSITORY}/", "")


@dataclass
class Book:
    """The laws of one subject, in the order in which they are written down."""

    subject: str
    laws: list[Law] = field(default_factory=list)

    def law(
        self, name: str, says: str, source: str, tolerance: float = 0.0, relation: str = EQUAL
    ) -> Callable[[Callable[[Simulator], Iterable[Point]]], Callable[[Simulator], Iterable[Point]]]:
        """Enters a law; what is decorated gives its points."""

        def enter(
            points: Callable[[Simulator], Iterable[Point]],
        ) -> Callable[[Simulator], Iterable[Point]]:
            self.laws.append(Law(name, self.subject, says, source, relation, tolerance, points))
            return points

        return enter


def book(subject: str) -> Book:
    """An empty one."""
    return Book(subject)


def point(expected: float, got: float, *results: Result) -> Point:
    """A figure that these runs show."""
    return Point(expected, got, tuple(result.command for result in results))


def judge(law: Law, simulator: Simulator) -> Verdict:
    """Try a law."""
    found: Sequence[Point] = list(law.points(simulator))
    if not found:
        raise RsdError(f"law {law.name}: it has no points")
    # a figure that is a ratio of floating-point numbers may differ in its last digits
    slack = law.tolerance + 1e-9
    violated = tuple(one for one in found if not one.error(law.relation) <= slack)
    worst = max(found, key=lambda one: one.error(law.relation))
    return Verdict(law, len(found), worst, violated)
