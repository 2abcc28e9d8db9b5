# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells' results in one table: everything as CSV, the most asked for as text."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rsd.sweep.grid import Cell

PLAIN_WIDTH = 250

# Title, path into a cell's "results", factor
COLUMNS: Sequence[tuple[str, str, float]] = (
    ("IOPS", "iops", 1),
    ("MB/s", "bytes_per_s", 1e-6),
    ("read mean us", "operations.read.latency_ns.mean", 1e-3),
    ("read p99 us", "operations.read.latency_ns.p99", 1e-3),
    ("write mean us", "operations.write.latency_ns.mean", 1e-3),
    ("write p99 us", "operations.write.latency_ns.p99", 1e-3),
    ("WA", "write_amplification.total", 1),
    ("erases", "erases.total", 1),
    ("most worn", "wear.max", 1),
)

Rows = Sequence[tuple[Cell, Mapping[str, Any]]]


def _scalars(prefix: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _scalars(f"{prefix}.{name}" if prefix else name, inner)
    elif not isinstance(value, list):
        yield prefix, value


def flatten(results: Mapping[str, Any]) -> dict[str, Any]:
    """Every number of a cell by its path. Of a counter, how much it changed."""
    flat = dict(_scalars("", {name: v for name, v in results.items() if name != "counters"}))
    for name, counter in results.get("counters", {}).items():
        flat[f"counters.{name}"] = counter["after"] - counter["before"]
    return flat


def as_csv(rows: Rows) -> str:
    """One line a cell: its axes, its key, every figure."""
    flats = [flatten(result["results"]) for _, result in rows]
    axes = list(rows[0][0].axes)
    figures = list(dict.fromkeys(name for flat in flats for name in flat))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*axes, "key", *figures])
    for (cell, _), flat in zip(rows, flats, strict=True):
        values = [cell.axes[axis] for axis in axes]
        writer.writerow([*values, cell.key, *(flat.get(name, "") for name in figures)])
    return out.getvalue()


def as_text(rows: Rows) -> str:
    """The chosen columns that any cell has, aligned."""
    flats = [flatten(result["results"]) for _, result in rows]
    columns = [column for column in COLUMNS if any(column[1] in flat for flat in flats)]
    table = Table(box=box.ASCII2, pad_edge=False)
    for axis in rows[0][0].axes:
        table.add_column(axis, no_wrap=True)
    for title, _, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for (cell, _), flat in zip(rows, flats, strict=True):
        figures = [
            _format(flat[path] * factor) if path in flat else "" for _, path, factor in columns
        ]
        table.add_row(*map(str, cell.axes.values()), *figures)
    out = io.StringIO()
    Console(file=out, width=PLAIN_WIDTH).print(table)
    return out.getvalue()


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"
