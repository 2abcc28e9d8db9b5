# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults by rule: which operations they hit, held against a reference, and that they repeat.

The reference has the rules and a list of all operations, and knows nothing of the drive. Rules that
make nothing happen (a latency of 0) list the operations of the flash; a trace lists the commands.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from simulator import SMALL, SUBMIT, WRITE, Simulator, records

MASK = (1 << 64) - 1
DRIVE = (*SMALL, "--set", "blocks=48", "--set", "spare-blocks=24", "--set", "endurance=1000000")
WORK = ("--requests", "6000", "--reads", "40", "--size", "8K", "--depth", "4")
# Lines 1 to 3 of each scenario: all operations of the flash
ALL = "latency op=program time=0\nlatency op=erase time=0\nlatency op=read time=0\n"
KINDS = {1: "program", 2: "erase", 3: "read"}


def chance(seed: int, index: int) -> int:
    """The drive's random number, in billionths: splitmix64."""
    z = (seed * 0xD1342543DE82EF95 + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (z ^ (z >> 31)) % 10**9


@dataclass
class Rule:
    """A line of a scenario, and what it has counted."""

    line: int
    kind: str
    keys: dict[str, str]
    seen: int = 0
    hits: int = 0

    def span(self, key: str) -> tuple[int, int]:
        first, _, last = self.keys.get(key, "").partition("-")
        return (int(first), int(last or first)) if first else (0, MASK)

    def has(self, key: str, first: int, last: int | None = None) -> bool:
        low, high = self.span(key)
        return first <= high and (first if last is None else last) >= low

    def chooses(self, possible: bool = True) -> bool:
        """Counts a candidate, also one that fails already by a rule before this one."""
        self.seen += 1
        keys = self.keys
        if self.hits >= int(keys.get("times", str(MASK))):
            return False
        chosen = (
            self.seen == int(keys["at"])
            if "at" in keys
            else self.seen % int(keys["every"]) == 0
            if "every" in keys
            else chance(int(keys.get("seed", self.line)), self.seen)
            < round(float(keys.get("probability", "1")) * 1e9)
        ) and possible
        self.hits += chosen
        return chosen


@dataclass
class Fault:
    """A line of --fault-list."""

    line: int
    kind: str
    at: dict[str, int] = field(default_factory=dict)


def rules(text: str) -> list[Rule]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        kind, *keys = line.split()
        found.append(Rule(number, kind, dict(key.split("=") for key in keys)))
    return found


def faults(path: Path) -> Iterator[Fault]:
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"\d+ line=(\d+) (\S+)((?: \w+=\d+)*)", line)
        assert match, line
        pairs = (pair.split("=") for pair in match[3].split())
        yield Fault(int(match[1]), match[2], {key: int(value) for key, value in pairs})


def run(sim: Simulator, directory: Path, text: str, *options: str | Path) -> list[Fault]:
    """Runs with this scenario; the counters are those of the list. Gives the list."""
    (directory / "rules").write_text(text)
    listed = directory / "list"
    result = sim.json(*options, "--faults", directory / "rules", "--fault-list", listed)
    found = list(faults(listed))
    counted = Counter(fault.kind.replace("-", "_") for fault in found)
    counters = {
        name.removeprefix("fault_"): value["after"]
        for name, value in result["results"]["counters"].items()
        if name.startswith("fault_")
    }
    assert {name: count for name, count in counters.items() if count} == counted
    return found


FLASH = [
    "program every=97\nprogram probability=0.01 seed=4 times=9\nprogram at=1000",
    "program die=1 block=3-30 page=2-5 every=5",
    "program erases=2 every=11",
    "erase probability=0.05 seed=8\nerase die=2-3 erases=3 every=2",
    "erase probability=0.2\nerase probability=0.2\nerase every=3",
    "latency op=read every=10 die=0 time=1ms\nlatency op=erase time=9ms\nlatency at=77 time=1s",
    "read die=1 every=7",
    "read die=2 page=0-3 probability=0.03",
]


@pytest.mark.parametrize("text", FLASH)
def test_which_operations(sim: Simulator, tmp_path: Path, text: str) -> None:
    text = ALL + text + "\n"
    found = run(sim, tmp_path, text, *DRIVE, "--set", "ftl=page", "--set", "over-provision=200",
                *WORK)  # fmt: skip
    wanted = [rule for rule in rules(text) if rule.line > len(KINDS)]
    erases: Counter[tuple[int, int]] = Counter()
    weak: set[tuple[int, int]] = set()
    expected: dict[int, list[Fault]] = {rule.line: [] for rule in wanted}
    for fault in found:
        if fault.line not in KINDS:
            if fault.kind == "program":
                weak.add((fault.at["die"], fault.at["block"]))
            continue
        kind, at = KINDS[fault.line], fault.at
        place = (at["die"], at["block"])
        fails_anyway = kind == "erase" and place in weak
        for rule in wanted:
            is_candidate = (
                rule.keys.get("op", kind) == kind if rule.kind == "latency" else rule.kind == kind
            ) and not (rule.kind == "erase" and fails_anyway)
            if (
                is_candidate
                and rule.has("die", at["die"])
                and rule.has("block", at["block"])
                and (kind == "erase" or rule.has("page", at["page"]))
                and erases[place] >= int(rule.keys.get("erases", "0"))
                and rule.chooses(not (rule.kind == "erase" and place in weak))
            ):
                if rule.kind == "erase":
                    weak.add(place)
                expected[rule.line].append(Fault(rule.line, rule.kind, at))
        erases[place] += kind == "erase"
    assert sum(len(hits) for hits in expected.values()) > 2
    for rule in wanted:
        here = [fault for fault in found if fault.line == rule.line]
        places = [{key: fault.at.get(key) for key in ("die", "block", "page")} for fault in here]
        assert places == [
            {key: fault.at.get(key) for key in ("die", "block", "page")}
            for fault in expected[rule.line]
        ], rule


COMMANDS = [
    "lost every=50\nmisdirect every=33 by=9",
    "lost every=3\nlost every=2\ncorrupt every=5\nlost probability=0.3",
    "lost lba=100-199 probability=0.2 seed=3\nmisdirect at=700",
    "corrupt every=97\ncorrupt lba=7-90 times=5\ncorrupt lba=5 at=2",
]


@pytest.mark.parametrize("text", COMMANDS)
def test_which_commands(sim: Simulator, tmp_path: Path, text: str) -> None:
    trace = tmp_path / "trace"
    found = run(sim, tmp_path, text, *DRIVE, "--set", "ftl=page", *WORK, "--record", trace)
    wanted = rules(text)
    expected = []
    for record in records(trace):
        if record.kind != SUBMIT or record.op != WRITE:
            continue
        lba, gone = record.lba, False
        for rule in wanted:
            if not rule.has("lba", lba, lba + record.nlb - 1):
                continue
            if rule.kind == "corrupt":
                expected += [
                    (rule.line, lba + i)
                    for i in range(record.nlb)
                    if rule.has("lba", lba + i) and rule.chooses(not gone)
                ]
            elif rule.chooses(not gone):
                expected.append((rule.line, lba))
                gone = rule.kind == "lost"
                lba += int(rule.keys.get("by", "1")) if rule.kind == "misdirect" else 0
    assert len(expected) > 2
    assert [(fault.line, fault.at["lba"]) for fault in found] == expected


EVERYTHING = """
program probability=0.001
erase probability=0.01 seed=2
read every=300
latency every=100 time=2ms
corrupt every=301
lost every=302
"""
DRIVES = {
    "zones": ("read-only at=500\noffline at=900\n", ()),
    "page": ("misdirect every=303\n", ("--set", "ftl=page", "--set", "over-provision=200")),
    "fast": ("misdirect every=303\n", ("--set", "ftl=fast", "--set", "over-provision=200")),
}


@pytest.mark.parametrize("drive", DRIVES)
def test_a_scenario_repeats(sim: Simulator, tmp_path: Path, drive: str) -> None:
    """To the byte; and a trace of it replays, on the drive as it was, to the ns."""
    more, options = DRIVES[drive]
    listed = tmp_path / "list"
    outputs = []
    for _ in range(2):
        run(sim, tmp_path, EVERYTHING + more, *DRIVE, *options, *WORK)
        outputs.append(listed.read_bytes())
    assert outputs[0] == outputs[1]
    assert len({fault.kind for fault in faults(listed)}) >= 6
    sim.json(*DRIVE, *options, "--age", tmp_path / "aged", "--precondition", "fill")
    shutil.copy(tmp_path / "aged", tmp_path / "again")
    trace = tmp_path / "trace"
    run(sim, tmp_path, EVERYTHING + more, *options, "--media", tmp_path / "aged", *WORK,
        "--record", trace)  # fmt: skip
    first = listed.read_bytes()
    if drive != "zones":  # what its controller would refuse is in the trace of rsdsim
        result = sim.json("--replay", trace, "--media", tmp_path / "again", "--check",
                          "--faults", tmp_path / "rules", "--fault-list", listed)  # fmt: skip
        assert result["completions"] > 0
        assert listed.read_bytes() == first


def test_wrong_scenarios(sim: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text("read every=3\n\nexplode\n")
    text = sim.fails("--faults", path)
    assert f"--faults: {path}:3: there is no fault 'explode'; a rule begins with one of" in text
    path.write_text("misdirect\n")
    assert "lost or corrupt" in sim.fails("--faults", path)
    assert "name the file of rules by --faults" in sim.fails("--fault-list", path, status=2)
    assert "No such file" in sim.fails("--faults", tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        assert "not a regular file" in sim.fails("--faults", tmp_path / name)
