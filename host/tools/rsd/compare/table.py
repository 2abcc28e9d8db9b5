# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison as a table on the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

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


def print_table(content: Mapping[str, Any], console: Console) -> None:
    """Workloads by system. Plain text when the console is not a terminal."""
    values = {(r["system"], r["workload"], r["metric"]): r["value"] for r in content["records"]}
    systems = list(content["configuration"]["systems"])
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("system", no_wrap=True)
    for title, _ in (*LOAD_COLUMNS, *CELL_COLUMNS):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("spread of IOPS", justify="right", no_wrap=True)
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
    if repeat["identical"]:
        return f"identical ({repeat['runs']})"
    numbers = repeat["values"].get(workload, {}).get(metric, [])
    if len(numbers) < 2 or not min(numbers):
        return ""
    return f"{100 * (max(numbers) - min(numbers)) / min(numbers):.1f}% ({len(numbers)})"


def _format(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"
