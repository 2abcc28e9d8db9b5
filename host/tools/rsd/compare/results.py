# SPDX-License-Identifier: GPL-2.0-or-later
"""results.json: records, and everything that is needed to repeat or to judge them.

The records of our systems on the clocks "virtual" and "count" come first in the file's
"records", in the order of the tables in cells.py: they are the same bytes in every run on
equal hashes. Wall-clock records, paths and dates follow in sections of their own.
"""

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd import systems
from rsd.artifacts import Artifacts
from rsd.compare.cells import SYSTEMS, Cell
from rsd.compare.figures import Record
from rsd.compare.run import Run, differing
from rsd.compare.script import command_line
from rsd.machine import GUEST_SPEED_SHIFT

SCHEMA = 1


def results(runs: Sequence[Run], cells: Sequence[Cell], built: Artifacts) -> dict[str, Any]:
    """The content of results.json."""
    by_system = {
        name: [run for run in runs if run.plan.system == name]
        for name in SYSTEMS
        if any(run.plan.system == name for run in runs)
    }
    ours_first = sorted(by_system, key=lambda name: not SYSTEMS[name].ours)
    records = [record for name in ours_first for record in _records(name, by_system[name], cells)]
    wall = [record for name in by_system for record in _wall(name, by_system[name], cells)]
    return {
        "schema": SCHEMA,
        "records": [record.to_json() for record in (*records, *wall)],
        "repeatability": {
            name: _repeatability(name, group, cells) for name, group in by_system.items()
        },
        "failures": [
            {"system": run.plan.system, "run": run.plan.number, "workload": name, "why": why}
            for run in runs
            for name, why in run.failures.items()
        ],
        "configuration": _configuration(by_system, cells),
        "versions": {"qemu": _qemu_version(built), **_guest_versions(runs[0])},
        "hashes": dict(built.hashes),
    }


def write(content: dict[str, Any], path: Path) -> None:
    """Write it with one record a line, so that two files can be compared with diff."""
    rest = {key: value for key, value in content.items() if key not in ("schema", "records")}
    lines = ",\n".join(f"    {json.dumps(record)}" for record in content["records"])
    tail = json.dumps(rest, indent=2)[2:]
    path.write_text(
        f'{{\n  "schema": {content["schema"]},\n  "records": [\n{lines}\n  ],\n  {tail.lstrip()}\n'
    )


def _records(name: str, group: Sequence[Run], cells: Sequence[Cell]) -> list[Record]:
    """The median over the runs; for identical runs, that is the value of each."""
    found = []
    for cell in cells:
        for metric, unit, clock, values in _by_metric(group, cell):
            # median_low is one of the values: no figure that was never measured
            found.append(
                Record(name, cell.name, metric, statistics.median_low(values), unit, clock)
            )
    return found


def _by_metric(group: Sequence[Run], cell: Cell) -> list[tuple[str, str, str, list[int | float]]]:
    """(metric, unit, clock, one value a run) of a cell, for the runs where it succeeded."""
    good = [run.figures[cell.name] for run in group if cell.name in run.figures]
    if not good:
        return []
    return [
        (
            figure.metric,
            figure.unit,
            figure.clock,
            [other.value for figures in good for other in figures if other.metric == figure.metric],
        )
        for figure in good[0]
    ]


def _wall(name: str, group: Sequence[Run], cells: Sequence[Cell]) -> list[Record]:
    found = []
    for cell in cells:
        values = [run.wall_s[cell.name] for run in group if cell.name in run.wall_s]
        if values:
            median = round(statistics.median(values), 3)
            found.append(Record(name, cell.name, "host.wall", median, "s", "wall"))
    for metric, values in (
        ("host.wall", [sum(part.wall_s for part in run.results) for run in group]),
        ("host.cpu", [sum(part.qemu_cpu_s for part in run.results) for run in group]),
    ):
        median = round(statistics.median(values), 3)
        found.append(Record(name, "(all)", metric, median, "s", "wall"))
    return found


def _repeatability(name: str, group: Sequence[Run], cells: Sequence[Cell]) -> dict[str, Any]:
    """How much the runs of one system differ. `identical` is the result of comparing them."""
    values = {
        cell.name: {
            metric: numbers
            for metric, _, clock, numbers in _by_metric(group, cell)
            if clock == "virtual"
        }
        for cell in cells
    }
    return {
        "runs": len(group),
        "identical": len(group) > 1 and not differing(group),
        "differences": differing(group) if SYSTEMS[name].ours else [],
        "values": {cell: metrics for cell, metrics in values.items() if metrics},
    }


def _configuration(by_system: dict[str, list[Run]], cells: Sequence[Cell]) -> dict[str, Any]:
    described = {}
    for name, group in by_system.items():
        system = systems.SYSTEMS[name]
        assert system is not None
        described[name] = {
            "summary": system.summary,
            "controller": dict(system.controller),
            "namespace": dict(system.namespace),
            "runs": len(group),
            "qemu": [list(part.qemu_command) for part in group[0].results],
            "commands": {
                cell.name: " ".join(command_line(cell, SYSTEMS[name]))
                for cell in group[0].plan.cells
                if cell.ios
            },
        }
    return {
        "guest_speed_shift": GUEST_SPEED_SHIFT,
        "guest_instructions_per_ns": 2.0**-GUEST_SPEED_SHIFT,
        "workloads": {
            cell.name: {
                "title": cell.family.title,
                "before": cell.family.prepare.value,
                "block_bytes": cell.block,
                "queue_depth": cell.depth,
                "ios": cell.ios,
            }
            for cell in cells
        },
        "systems": described,
    }


def _qemu_version(built: Artifacts) -> str:
    done = subprocess.run(
        [str(built.qemu), "--version"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[0]


def _guest_versions(run: Run) -> dict[str, str]:
    lines = (run.plan.directory / "versions").read_text().splitlines()
    return dict(zip(("linux", "fio", "nvme-cli", "zappend"), lines, strict=False))
