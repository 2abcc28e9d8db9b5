# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines: every step of every die, as long as the counters say, in Chrome's trace format."""

import json
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from simulator import COUNTER, DONE, SMALL, SUBMIT, Simulator, records

WORK = ("--precondition", "1", "--requests", "1500", "--reads", "40")
# Places in the table of hw/rsd-nvme/core/api/rsd-log.h
READS, PROGRAMS, ERASES = range(8, 14), range(14, 20), range(20, 26)
DIE_BUSY, SUSPENDS = 33, 58


def timeline(sim: Simulator, trace: Path, *options: str) -> list[dict[str, Any]]:
    path = trace.with_suffix(".json")
    result = sim.json("--replay", trace, "--check", "--timeline", path, *options)
    assert result["completions_different"] == result["counters_different"] == 0
    # Decimal: times in us with three digits are ns, exactly.
    events = json.loads(path.read_text(), parse_float=Decimal)["traceEvents"]
    assert isinstance(events, list)
    return events


@pytest.fixture(
    params=[
        "",
        "page-size=8192 cell=tlc one-shot=on pages=12 write-buffer=1M",
        "cache=on suspend=on cell=mlc t-prog-msb=900000 t-read-msb=90000",
        "read-retries=4 endurance=8",
        "ftl=page blocks=64 over-provision=28",
        "ftl=fast blocks=64 over-provision=28",
    ]
)
def recorded(request: pytest.FixtureRequest, sim: Simulator, tmp_path: Path) -> Path:
    chosen = [word for setting in request.param.split() for word in ("--set", setting)]
    trace = tmp_path / "a.trace"
    sim.json(*SMALL, *chosen, *WORK, "--record", trace)
    return trace


def test_every_step_is_there(sim: Simulator, recorded: Path) -> None:
    """As many pages and blocks as the drive counted, by kind."""
    counted = [record.lba for record in records(recorded) if record.kind == COUNTER]
    found: Counter[str] = Counter()
    for event in timeline(sim, recorded):
        if event["ph"] == "X" and "unfinished" not in event["args"]:
            kind = event["name"].split(",")[0]
            found[kind] += event["args"].get("pages of 4 KiB", 1)
    assert found["read"] == sum(counted[place] for place in READS) > 0
    assert found["program"] == sum(counted[place] for place in PROGRAMS) > 0
    assert found["erase"] == sum(counted[place] for place in ERASES) > 0


def test_dies_are_busy_as_long_as_counted(sim: Simulator, recorded: Path) -> None:
    """The times that a die's slices cover, to the nanosecond; no track has two at once."""
    counted = [record.lba for record in records(recorded) if record.kind == COUNTER]
    tracks: dict[int, list[tuple[Decimal, Decimal]]] = {}
    finished: dict[int, list[tuple[Decimal, Decimal]]] = {}
    names = {}
    for event in timeline(sim, recorded):
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        if event["ph"] == "X":
            span = (event["ts"], event["ts"] + event["dur"])
            tracks.setdefault(event["tid"], []).append(span)
            if "unfinished" not in event["args"]:
                finished.setdefault((event["tid"] - 1) // 4, []).append(span)
    assert {names[tid] for tid in tracks} >= {
        f"channel {channel} way {way}" for channel in range(2) for way in range(2)
    }
    for spans in tracks.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
    total = sum(map(covered, finished.values())) * 1000
    if counted[SUSPENDS]:
        # The slice of a suspended step goes on; the die is not busy while it waits for the bus.
        assert counted[DIE_BUSY] < total < counted[DIE_BUSY] * Decimal("1.01")
    else:
        assert total == counted[DIE_BUSY]


def covered(spans: list[tuple[Decimal, Decimal]]) -> Decimal:
    total, end = Decimal(0), Decimal(0)
    for begin, after in sorted(spans):
        total += max(Decimal(0), after - max(begin, end))
        end = max(end, after)
    return total


def test_commands_are_there(sim: Simulator, recorded: Path) -> None:
    """Each command of the host, from its submission to its completion."""
    submits = {r.order: r.time for r in records(recorded) if r.kind == SUBMIT}
    dones = {r.order: r.time for r in records(recorded) if r.kind == DONE and not r.status}
    events = timeline(sim, recorded)
    begins = {e["id"]: e["ts"] * 1000 for e in events if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] * 1000 for e in events if e["ph"] == "e"}
    assert ends == dones
    assert begins == {order: submits[order] for order in dones}


def test_a_window(sim: Simulator, tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    sim.json(*SMALL, *WORK, "--record", trace)
    every = [e for e in timeline(sim, trace) if e["ph"] == "X"]
    some = timeline(sim, trace, "--from", "100ms", "--until", "100.5ms")
    inside = [e for e in every if e["ts"] < 100500 and e["ts"] + e["dur"] >= 100000]
    assert [e for e in some if e["ph"] == "X"] == inside != []


@pytest.mark.parametrize(
    "options, words",
    [
        (("--timeline", "x.json"), "record one by --record"),
        (("--from", "1ms"), "name its file by --timeline"),
        (("--replay", "x", "--timeline", "y", "--from", "later"), "a number of ns"),
        (("--replay", "x", "--timeline", "y", "--from", "2s", "--until", "1s"), "after --from"),
    ],
)
def test_refused(sim: Simulator, options: tuple[str, ...], words: str) -> None:
    assert words in sim.fails(*options, status=2)
