# SPDX-License-Identifier: GPL-2.0-or-later
"""The report's pictures, as SVG that takes its colours from the page's style sheet."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from rsd.report.data import Results, label
from rsd.systems import looks

# Colours that stand for the style sheet's variables; none of them is ever seen.
INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
_LOOKS = looks()
SYSTEM_COLOURS = {name: f"#0b0a{number:02x}" for number, name in enumerate(_LOOKS)}
# What the flash did, by cause
CAUSE_COLOURS = {
    "host": "#0a0a11",
    "clean": "#0a0a12",
    "merge": "#0a0a13",
    "wear": "#0a0a14",
    "map": "#0a0a15",
    "pad": "#0a0a16",
}
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    **{colour: f"var(--{name})" for name, colour in SYSTEM_COLOURS.items()},
    **{colour: f"var(--cause-{name})" for name, colour in CAUSE_COLOURS.items()},
}
MARKERS = {name: look.marker for name, look in _LOOKS.items()}


def style() -> str:
    """The page's style sheet, with the systems' colours."""
    text = (Path(__file__).parent / "style.css").read_text()
    for ground in ("light", "dark"):
        colours = (f"--{name}: {getattr(look, ground)};" for name, look in _LOOKS.items())
        text = text.replace(f"/* systems, {ground} */", " ".join(colours))
    return text


STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    # identifiers in the SVG depend on this instead of on chance
    "svg.hashsalt": "rsd",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titlepad": 10,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
}
WIDTH = 10.4

# A curve over the queue depth: title, family, block size, prefix of the metric.
CURVES = (
    ("Random read, 4 KiB", "randread", 4096),
    ("Sequential write, 4 KiB", "write", 4096),
    ("Zone append, 4 KiB", "append", 4096),
)
PERCENTILES = ("p50", "p99", "p99.9", "max")


def depth_curves(results: Results) -> str | None:
    """IOPS over queue depth, a panel a workload, for those measured at two depths or more."""
    panels = []
    for title, family, block in CURVES:
        cells = [
            (facts["queue_depth"], name)
            for name, facts in results.workloads.items()
            if name.startswith(f"{family}-") and facts["block_bytes"] == block
        ]
        if len(cells) > 1:
            panels.append((title, sorted(cells)))
    if not panels:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.3))
        for index, (title, cells) in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), index + 1)
            axes.set_title(title)
            for system in results.systems:
                points = [
                    (depth, value)
                    for depth, name in cells
                    if (value := results.value(system, name, "iops")) is not None
                ]
                if points:
                    colour = _colour(system)
                    axes.plot(
                        *zip(*points, strict=True),
                        color=colour,
                        marker=_marker(system),
                        markersize=5.5,
                        markeredgecolor=PAPER,
                        linewidth=2.0,
                        label=system,
                    )
            depths = [depth for depth, _ in cells]
            axes.set_xscale("log", base=2)
            axes.set_xticks(depths, [str(depth) for depth in depths])
            axes.minorticks_off()
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_short)
            axes.grid(axis="x", visible=False)
            axes.set_xlabel("queue depth")
            if index == 0:
                axes.set_ylabel("IOPS")
        figure.tight_layout(w_pad=2.5)
        return svg(figure)


def throughput(results: Results) -> str | None:
    """A dot a system and workload, on a logarithmic axis of bytes per second."""
    rows = results.loads()
    if not rows:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.9 + 0.30 * len(rows)))
        axes = figure.add_subplot()
        for at, (workload, prefix) in enumerate(rows):
            found = [
                (system, value)
                for system in results.systems
                if (value := results.value(system, workload, f"{prefix}bandwidth"))
            ]
            values = [value for _, value in found]
            axes.plot([min(values), max(values)], [at, at], color=GRID, linewidth=3, zorder=1)
            for system, value in found:
                axes.plot(value, at, **_dot(system))
        _rows(axes, [label(*row) for row in rows])
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_short)
        axes.minorticks_off()
        axes.set_xlabel("MB/s, virtual time")
        figure.tight_layout()
        return svg(figure)


def latencies(results: Results) -> str | None:
    """From the median to the maximum, a line a system and workload."""
    rows = results.loads()
    if not rows:
        return None
    spacing = 0.19
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.0 + 0.17 * (len(results.systems) + 1) * len(rows)))
        axes = figure.add_subplot()
        for at, (workload, prefix) in enumerate(rows):
            for number, system in enumerate(results.systems):
                values = [
                    results.value(system, workload, f"{prefix}latency.{name}")
                    for name in PERCENTILES
                ]
                known = [value for value in values if value]
                if len(known) < len(PERCENTILES):
                    continue
                y = at + spacing * (number - (len(results.systems) - 1) / 2)
                colour = _colour(system)
                axes.plot([known[0], known[-1]], [y, y], color=colour, linewidth=1.4, alpha=0.45)
                sizes = (7, 5.5, 4, 2.8)
                for value, size in zip(known, sizes, strict=True):
                    axes.plot(
                        value,
                        y,
                        marker="o",
                        markersize=size,
                        color=colour,
                        markeredgecolor=PAPER,
                        markeredgewidth=0.6,
                    )
            if at % 2:
                axes.axhspan(at - 0.5, at + 0.5, color=GRID, alpha=0.28, linewidth=0)
        _rows(axes, [label(*row) for row in rows])
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_short)
        axes.set_xlabel("microseconds; largest dot p50, then p99, p99.9, and the maximum")
        axes.grid(axis="y", visible=False)
        figure.tight_layout()
        return svg(figure)


def nand_work(results: Results) -> str | None:
    """Write amplification and erases of the workloads that write, on drives with counters."""
    systems = [
        name
        for name in results.systems
        if any(results.value(name, w, "nand.programs") is not None for w in results.workloads)
    ]
    rows = [w for w in results.workloads if results.has(w, "write_amplification")]
    if not rows:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.0 + 0.17 * (len(systems) + 1) * len(rows)))
        left, right = figure.subplots(1, 2, sharey=True)
        height = 0.8 / len(systems)
        for number, system in enumerate(systems):
            offset = height * (number - (len(systems) - 1) / 2)
            places = [at + offset for at in range(len(rows))]
            bar = {"height": height * 0.86, "color": _colour(system)}
            amplification = [results.value(system, w, "write_amplification") or 0 for w in rows]
            left.barh(places, amplification, **bar)
            erases = [results.value(system, w, "nand.erases") or 0 for w in rows]
            demand = [results.value(system, w, "nand.erases_on_demand") or 0 for w in rows]
            right.barh(places, erases, alpha=0.4, **bar)
            right.barh(places, demand, **bar)
            for axes, values, text in (
                (left, amplification, "{:.3f}"),
                (right, erases, "{:.0f}"),
            ):
                for place, value in zip(places, values, strict=True):
                    axes.text(
                        value, place, " " + text.format(value), va="center", size=8.5, color=MUTED
                    )
        left.set_title("Write amplification")
        left.set_xlabel("NAND programs / pages written by the host")
        right.set_title("Block erases")
        right.set_xlabel("blocks; full colour: a write waited for them")
        _rows(left, rows)
        for axes in (left, right):
            axes.set_xlim(right=max(1.25, axes.get_xlim()[1] * 1.12))
            axes.grid(axis="y", visible=False)
        figure.tight_layout(w_pad=2)
        return svg(figure)


def benchmark(results: Results, name: str) -> str | None:
    """A benchmark on every stack: its time, and NAND programs and erases by cause."""
    stacks = results.measured_stacks(name)
    if not stacks:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.0 + 0.3 * len(stacks)))
        time, programs, erases = figure.subplots(1, 3, sharey=True)
        places = range(len(stacks))
        times = [results.value(stack, name, "run_time") or 0 for stack in stacks]
        time.barh(places, times, height=0.62, color=MUTED)
        _end_labels(time, times, "{:.3g}")
        time.set_title("Time")
        time.set_xlabel("seconds")
        for axes, metric, title, unit in (
            (programs, "nand.programs", "NAND programs", "pages"),
            (erases, "nand.erases", "NAND erases", "blocks"),
        ):
            totals = [0.0] * len(stacks)
            for cause, colour in CAUSE_COLOURS.items():
                values = [results.value(s, name, f"{metric}.{cause}") or 0 for s in stacks]
                axes.barh(places, values, left=totals, height=0.62, color=colour)
                totals = [t + v for t, v in zip(totals, values, strict=True)]
            counted = [results.value(s, name, metric) is not None for s in stacks]
            _end_labels(axes, totals, "{:,.0f}", counted)
            axes.set_title(title)
            axes.set_xlabel(unit)
            axes.xaxis.set_major_formatter(_short)
        _rows(time, stacks)
        for axes in (time, programs, erases):
            axes.set_xlim(left=0, right=max(1e-9, axes.get_xlim()[1] * 1.25))
            axes.grid(axis="y", visible=False)
        figure.tight_layout(w_pad=2)
        return svg(figure)


def _end_labels(
    axes: Any, values: Sequence[float], text: str, counted: Sequence[bool] | None = None
) -> None:
    """Each bar's value at its end; nothing where the drive has no counters."""
    for place, value in enumerate(values):
        if counted is None or counted[place]:
            label = " " + text.format(value)
            axes.text(value, place, label, va="center", size=8.5, color=MUTED)


def spreads(results: Results) -> str | None:
    """How far each run's IOPS lie from the median run of the same cell."""
    rows = [(system, results.deviations(system)) for system in results.systems]
    rows = [(system, found) for system, found in rows if found]
    if not rows:
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.9 + 0.5 * len(rows)))
        axes = figure.add_subplot()
        for at, (system, found) in enumerate(rows):
            axes.plot(
                found,
                [at] * len(found),
                linestyle="",
                marker="|" if not results.identical(system) else "o",
                markersize=16 if not results.identical(system) else 8,
                markeredgewidth=1.6,
                color=_colour(system),
                alpha=0.75,
            )
        widest = max(abs(value) for _, found in rows for value in found)
        axes.set_xlim(-max(1.0, widest * 1.1), max(1.0, widest * 1.1))
        axes.axvline(0, color=MUTED, linewidth=0.8)
        _rows(axes, [system for system, _ in rows])
        axes.set_xlabel("IOPS of a run against the median run of the same cell, %")
        axes.grid(axis="y", visible=False)
        figure.tight_layout()
        return svg(figure)


def _colour(system: str) -> str:
    """A system that somebody has added has none of its own."""
    return SYSTEM_COLOURS.get(system, INK)


def _marker(system: str) -> str:
    return MARKERS.get(system, "*")


def _dot(system: str) -> dict[str, Any]:
    return {
        "marker": _marker(system),
        "markersize": 8,
        "color": _colour(system),
        "markeredgecolor": PAPER,
        "markeredgewidth": 1.0,
        "zorder": 3,
    }


def _rows(axes: Any, names: Sequence[str]) -> None:
    """Names down the left side, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.spines["left"].set_visible(False)


def _short(value: float, _position: float) -> str:
    """1500 as 1.5k."""
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{suffix}"
    return f"{value:g}"


def svg(figure: Figure) -> str:
    """The figure as an <svg> element: no prologue, no date, colours as variables."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    # It scales with the page; the viewBox keeps the proportions.
    text = re.sub(r'<svg ([^>]*?)(?:height|width)="[^"]*pt"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)(?:height|width)="[^"]*pt"', r"<svg \1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return re.sub(r"(font: [\d.]*\s*[\d.]+px) [^;\"]*", r"\1 var(--font)", text)


def standalone(element: str) -> str:
    """What svg() gave, as a file: with colours of its own, on white."""
    for colour, variable in VARIABLES.items():
        element = element.replace(variable, colour)
    element = element.replace("var(--font)", "sans-serif")
    return element.replace("<svg ", '<svg style="background: #fff" ', 1)
