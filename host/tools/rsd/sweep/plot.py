# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure of the cells as a plot: the last axis to the right, a line for each of the others."""

import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from rsd.errors import RsdError, naming
from rsd.sweep.table import Rows, flatten

STYLE = {
    "svg.fonttype": "none",
    # Identifiers in the SVG depend on this instead of on chance.
    "svg.hashsalt": "rsd",
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "legend.frameon": False,
}
SIZE_INCHES = (7.0, 4.3)
HOW = "results.csv has every figure; its first line has their names"


def save(rows: Rows, name: str, path: Path) -> None:
    """Write the plot of the figure `name`, as an SVG."""
    flats = [flatten(result["results"]) for _, result in rows]
    if not all(_is_number(flat.get(name)) for flat in flats):
        raise RsdError(f"--plot {name}: not every cell has a number of this name", HOW)
    *others, along = list(rows[0][0].axes)
    lines: dict[str, list[tuple[object, float]]] = {}
    for (cell, _), flat in zip(rows, flats, strict=True):
        title = ", ".join(f"{axis}={cell.axes[axis]}" for axis in others)
        lines.setdefault(title, []).append((cell.axes[along], flat[name]))
    # Words are put at equal distances, in the order of the file.
    numbers = all(_is_number(value) for value, _ in next(iter(lines.values())))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE_INCHES)
        axes = figure.add_subplot()
        for title, points in lines.items():
            places = [value if numbers else str(value) for value, _ in points]
            axes.plot(places, [value for _, value in points], marker="o", label=title)
        axes.set_xlabel(along.removeprefix("set."))
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
        if others:
            axes.legend()
        figure.tight_layout()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    with naming(path):
        path.write_text(text.getvalue())


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
