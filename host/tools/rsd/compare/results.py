# SPDX-License-Identifier: GPL-2.0-or-later
"""results.json: records, and everything that is needed to repeat or to judge them.

results.csv has the same records. A system is a drive or a stack, a workload a cell on the bare
drive or a benchmark on the file system; "configuration" has the two kinds apart.

The records of our systems on the clocks "virtual" and "count" come first in the file's
"records", in the order of the tables in cells.py: they are the same bytes in every run on
equal hashes. Wall-clock records, paths and dates follow in sections of their own.
"""

import csv
import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd import systems
from rsd.artifacts import Artifacts
from rsd.compare.benchmarks import BENCHMARKS, Benchmark
from rsd.compare.cells import SYSTEMS, Cell
from rsd.compare.figures import Record
from rsd.compare.run import Run, differing, merged
from rsd.compare.script import command_line
from rsd.compare.stacks import STACKS
from rsd.machine import GUEST_SPEED_SHIFT

SCHEMA = 1
FIELDS = ("system", "workload", "metric", "value", "unit", "clock")


def ours(name: str) -> bool:
    """Whether the system's drive is ours: its runs have to be identical."""
    return SYSTEMS[name].ours if name in SYSTEMS else STACKS[name].ours


def results(runs: Sequence[Run], cells: Sequence[Cell], built: Artifacts) -> dict[str, Any]:
    """The content of results.json. `cells` are those of the bare drives, in their order."""
    wholes = merged(runs)
    by_system = {
        name: [run for run in wholes if run.plan.system == name]
        for name in (*SYSTEMS, *STACKS)
        if any(run.plan.system == name for run in wholes)
    }
    measured = {cell.name for run in wholes for cell in run.plan.cells}
    benchmarks = [benchmark for benchmark in BENCHMARKS if benchmark.name in measured]
    on_stacks = [cell for run in wholes for cell in run.plan.cells if isinstance(cell, Benchmark)]
    benchmarks += [one for one in dict.fromkeys(on_stacks) if one not in BENCHMARKS]
    order = [cell.name for cell in (*cells, *benchmarks)]
    ours_first = sorted(by_system, key=lambda name: not ours(name))
    records = [record for name in ours_first for record in _records(name, by_system[name], order)]
    wall = [record for name in by_system for record in _wall(name, by_system[name], order)]
    return {
        "schema": SCHEMA,
        "records": [record.to_json() for record in (*records, *wall)],
        "repeatability": {
            name: _repeatability(name, group, order) for name, group in by_system.items()
        },
        "failures": [
            {"system": run.plan.system, "run": run.plan.number, "workload": name, "why": why}
            for run in wholes
            for name, why in run.failures.items()
        ],
        "configuration": {
            **_configuration(
                {name: group for name, group in by_system.items() if name in SYSTEMS}, cells
            ),
            "stacks": {
                name: _stack(name, group) for name, group in by_system.items() if name in STACKS
            },
            "benchmarks": {
                benchmark.name: _benchmark(benchmark, wholes) for benchmark in benchmarks
            },
        },
        "versions": {"qemu": _qemu_version(built), **_guest_versions(wholes)},
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


def write_csv(content: dict[str, Any], path: Path) -> None:
    """Write the records, one a line, with a line of names."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows([record[field] for field in FIELDS] for record in content["records"])


def _records(name: str, group: Sequence[Run], order: Sequence[str]) -> list[Record]:
    """The median over the runs; for identical runs, that is the value of each."""
    found = []
    for cell in order:
        for metric, unit, clock, values in _by_metric(group, cell):
            # median_low is one of the values: no figure that was never measured
            found.append(Record(name, cell, metric, statistics.median_low(values), unit, clock))
    return found


def _by_metric(group: Sequence[Run], cell: str) -> list[tuple[str, str, str, list[int | float]]]:
    """(metric, unit, clock, one value a run) of a cell, for the runs where it succeeded."""
    good = [run.figures[cell] for run in group if cell in run.figures]
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


def _wall(name: str, group: Sequence[Run], order: Sequence[str]) -> list[Record]:
    found = []
    for cell in order:
        values = [run.wall_s[cell] for run in group if cell in run.wall_s]
        if values:
            median = round(statistics.median(values), 3)
            found.append(Record(name, cell, "host.wall", median, "s", "wall"))
    for metric, values in (
        ("host.wall", [sum(part.wall_s for part in run.results) for run in group]),
        ("host.cpu", [sum(part.qemu_cpu_s for part in run.results) for run in group]),
    ):
        median = round(statistics.median(values), 3)
        found.append(Record(name, "(all)", metric, median, "s", "wall"))
    return found


def _repeatability(name: str, group: Sequence[Run], order: Sequence[str]) -> dict[str, Any]:
    """How much the runs of one system differ. `identical` is the result of comparing them."""
    values = {
        cell: {
            metric: numbers
            for metric, _, clock, numbers in _by_metric(group, cell)
            if clock == "virtual"
        }
        for cell in order
    }
    return {
        "runs": len(group),
        "identical": len(group) > 1 and not differing(group),
        "differences": differing(group) if ours(name) else [],
        "values": {cell: metrics for cell, metrics in values.items() if metrics},
    }


def _configuration(by_system: dict[str, list[Run]], cells: Sequence[Cell]) -> dict[str, Any]:
    described = {}
    for name, group in by_system.items():
        system = systems.get_drive(name)
        described[name] = {
            "summary": system.summary,
            "controller": dict(system.controller),
            "namespace": dict(system.namespace),
            "runs": len(group),
            **_aged(group),
            "qemu": [list(part.qemu_command) for part in group[0].results],
            "commands": {
                cell.name: " ".join(command_line(cell, SYSTEMS[name]))
                for cell in group[0].plan.cells
                if isinstance(cell, Cell) and cell.ios
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


def _stack(name: str, group: Sequence[Run]) -> dict[str, Any]:
    stack = STACKS[name]
    return {
        "summary": stack.summary,
        "drive": stack.drive,
        "controller": dict(stack.system.controller),
        "namespace": {**stack.system.namespace, **stack.namespace},
        "mkfs": stack.file_system.mkfs,
        "mount": stack.file_system.mount,
        "runs": len(group),
        **_aged(group),
        "qemu": [list(part.qemu_command) for part in group[0].results[:1]],
    }


def _aged(group: Sequence[Run]) -> dict[str, Any]:
    """Whether what the cells began with was steady, by scale. Each run begins with the same."""
    found = {scale: verdict.to_json() for scale, verdict in group[0].aged.items()}
    return {"aged": found} if found else {}


def _benchmark(benchmark: Benchmark, runs: Sequence[Run]) -> dict[str, Any]:
    numbers = {
        run.plan.number
        for run in runs
        if any(cell.name == benchmark.name for cell in run.plan.cells)
    }
    return {
        "title": benchmark.title,
        "scale": benchmark.scale.source,
        "guest_memory_mib": benchmark.scale.memory_mib,
        "setup": benchmark.setup,
        "command": benchmark.run,
        "work": benchmark.work,
        "unit": benchmark.unit,
        # the last is the one that tables show the latency of
        "phases": list(benchmark.phases),
        "runs": max(numbers),
    }


def _qemu_version(built: Artifacts) -> str:
    done = subprocess.run(
        [str(built.qemu), "--version"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[0]


def _guest_versions(runs: Sequence[Run]) -> dict[str, str]:
    """Of the first guest that got so far."""
    for run in runs:
        path = run.plan.directory / "versions"
        if path.exists():
            lines = path.read_text().splitlines()
            return dict(zip(("linux", "fio", "nvme-cli", "zappend"), lines, strict=False))
    return {}
