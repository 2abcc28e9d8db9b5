# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison as a table on the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rsd.compare.steadiness import Verdict

# Of each direction of a load, and of the whole cell
LOAD_COLUMNS = (
    ("IOPS", "iops"),
    ("MB/s", "bandwidth"),
    ("mean us", "latency.mean"),
    ("p99 us", "latency.p99"),
    ("p99.9 us", "latency.p99.9"),
)
CELL_COLUMNS = (
    ("WA", "write_amplification"),
    ("erases", "nand.erases"),
)
# Of a benchmark on a file system: title, metric, divisor
STACK_COLUMNS = (
    ("drive p99 us", "drive.write.latency.p99", 1),
    ("FS MB", "fs.written", 1e6),
    ("programs", "nand.programs", 1),
    ("WA", "write_amplification", 1),
    ("erases", "nand.erases", 1),
    ("map KiB", "map_bytes", 1024),
)


def print_table(content: Mapping[str, Any], console: Console) -> None:
    """Workloads by system. Plain text when the console is not a terminal."""
    if content["configuration"]["workloads"]:
        _print_drives(content, console)
    if content["configuration"].get("benchmarks"):
        _print_stacks(content, console)
    for line in aged(content):
        console.print(line, highlight=False)


def aged(content: Mapping[str, Any]) -> list[str]:
    """Whether what was measured was steady when it began: a line for each aged drive and volume."""
    configuration = content["configuration"]
    return [
        f"{name}, aged{' on ' + scale if scale else ''}: {Verdict(**found)}"
        for name, facts in (configuration["systems"] | configuration.get("stacks", {})).items()
        for scale, found in facts.get("aged", {}).items()
    ]


def _print_drives(content: Mapping[str, Any], console: Console) -> None:
    values = {(r["system"], r["workload"], r["metric"]): r["value"] for r in content["records"]}
    systems = list(content["configuration"]["systems"])
    titles = [title for title, _ in (*LOAD_COLUMNS, *CELL_COLUMNS)]
    table = _table(console, [*titles, "spread of IOPS"])
    for workload, facts in content["configuration"]["workloads"].items():
        if not facts["ios"]:
            continue
        for row, (system, direction) in enumerate(_rows(values, systems, workload)):
            prefix = f"{direction}." if direction else ""
            label = workload if row == 0 else ""
            name = f"{system} ({direction})" if direction else system
            metrics = [f"{prefix}{metric}" for _, metric in LOAD_COLUMNS]
            metrics += [metric for _, metric in CELL_COLUMNS]
            cells = [_format(values.get((system, workload, metric))) for metric in metrics]
            repeat = content["repeatability"][system]
            table.add_row(label, name, *cells, spread(repeat, workload, f"{prefix}iops"))
        table.add_section()
    console.print(table)


def _print_stacks(content: Mapping[str, Any], console: Console) -> None:
    """Benchmarks by stack: a file system on a drive."""
    values = {(r["system"], r["workload"], r["metric"]): r["value"] for r in content["records"]}
    titles = ["time s", "per s", "p99 us"]
    table = _table(console, [*titles, *(title for title, _, _ in STACK_COLUMNS), "runs"])
    for benchmark, facts in content["configuration"]["benchmarks"].items():
        label = benchmark
        for system in content["configuration"]["stacks"]:
            if (system, benchmark, "no_space") in values:
                table.add_row(label, system, "no space")
                label = ""
                continue
            if (system, benchmark, "run_time") not in values:
                continue
            metrics = ["run_time", "throughput", latency_metric(facts, "p99")]
            cells = [_format(values.get((system, benchmark, metric))) for metric in metrics]
            for _, metric, divisor in STACK_COLUMNS:
                value = values.get((system, benchmark, metric))
                cells.append(_format(None if value is None else value / divisor))
            repeat = spread(content["repeatability"][system], benchmark, "run_time")
            table.add_row(label, system, *cells, repeat)
            label = ""
        table.add_section()
    console.print(table)
    units: dict[str, list[str]] = {}
    for benchmark, facts in content["configuration"]["benchmarks"].items():
        units.setdefault(facts["unit"], []).append(benchmark)
    for unit, benchmarks in units.items():
        console.print(f"per s: {unit} of {', '.join(benchmarks)}", highlight=False)


def latency_metric(facts: Mapping[str, Any], name: str) -> str:
    """The latency of a benchmark's last phase."""
    phases = facts["phases"]
    prefix = f"{phases[-1]}." if len(phases) > 1 else ""
    return f"{prefix}latency.{name}"


def _table(console: Console, titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("system", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _rows(
    values: Mapping[tuple[str, str, str], Any], systems: Sequence[str], workload: str
) -> list[tuple[str, str]]:
    rows = []
    for system in systems:
        if (system, workload, "iops") in values:
            rows.append((system, ""))
        elif (system, workload, "read.iops") in values:
            rows += [(system, "read"), (system, "write")]
    return rows


def spread(repeat: Mapping[str, Any], workload: str, metric: str) -> str:
    """(max - min) / min over the runs; "identical" only where that was found by comparing."""
    numbers = repeat["values"].get(workload, {}).get(metric, [])
    if repeat["identical"] and len(numbers) > 1:
        return f"identical ({len(numbers)})"
    if len(numbers) < 2 or not min(numbers):
        return str(len(numbers) or "")
    return f"{100 * (max(numbers) - min(numbers)) / min(numbers):.1f}% ({len(numbers)})"


def _format(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"
