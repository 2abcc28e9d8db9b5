# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd plot`: logs of fio (write_lat_log, write_bw_log, write_iops_log) as one SVG.

A line of such a log is `time in ms, value, direction, bytes, offset`, and more in newer versions.
The file's name says what the value is.
"""

import argparse
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from rsd.errors import RsdError, naming
from rsd.sweep.plot import SIZE_INCHES, STYLE

HOW = "docs/seeing.md has a job that writes such logs"
# Of fio's file names: JOB_lat.1.log, or JOB_lat.log with per_job_logs=0
NAME = re.compile(r"(.*)_(lat|clat|slat|bw|iops)(\.\d+)?\.log")
DIRECTIONS = ("read", "write", "trim")
MS_A_SECOND = 1000


@dataclass(frozen=True)
class Kind:
    """What the values of a log are, and by how much they are divided to be shown."""

    label: str
    divisor: float


LATENCIES = {"lat": "latency", "clat": "completion latency", "slat": "submission latency"}
KINDS = {
    **{name: Kind(f"{label} (us)", 1000) for name, label in LATENCIES.items()},
    "bw": Kind("throughput (MiB/s)", 1024),
    "iops": Kind("IOPS", 1),
}

# Of one direction: seconds, and values
Line = tuple[list[float], list[float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `plot`."""
    parser.add_argument(
        "logs",
        nargs="+",
        type=Path,
        metavar="LOG",
        help="Logs of fio, all of one kind, such as run_lat.1.log. Each is a line in the plot, or"
        " several if it has reads and writes.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("plot.svg"),
        metavar="FILE",
        help="Write the plot there, as an SVG (default: plot.svg).",
    )


def main(arguments: argparse.Namespace) -> int:
    """Draw the logs; gives the exit status."""
    kinds = {_kind(log): log for log in arguments.logs}
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        raise RsdError(
            f"{first} and {second}: these logs are of different kinds",
            "one plot for each kind: call ./rsd plot twice, with different --out",
        )
    lines = {
        f"{log}, {DIRECTIONS[direction]}" if len(read) > 1 else str(log): line
        for log in arguments.logs
        for read in [_read(log)]
        for direction, line in read.items()
    }
    with naming(arguments.out):
        arguments.out.write_text(_svg(KINDS[next(iter(kinds))], lines))
    print(arguments.out)
    return 0


def _kind(log: Path) -> str:
    match = NAME.fullmatch(log.name)
    if match is None:
        raise RsdError(
            f"{log}: its name must say what it is: _lat, _clat, _slat, _bw or _iops, then .log", HOW
        )
    return match[2]


def _read(log: Path) -> Mapping[int, Line]:
    """The lines of a log, by direction."""
    divisor = KINDS[_kind(log)].divisor
    lines: dict[int, Line] = {}
    for number, text in enumerate(log.read_text(errors="replace").splitlines(), 1):
        fields = text.split(",")
        try:
            time, value, direction = (int(field) for field in fields[:3])
            if direction not in range(len(DIRECTIONS)):
                raise ValueError(direction)
        except ValueError as error:
            raise RsdError(
                f"{log}:{number}: {text[:40]!r}: must be time, value, direction (0 to 2), ...", HOW
            ) from error
        seconds, values = lines.setdefault(direction, ([], []))
        seconds.append(time / MS_A_SECOND)
        values.append(value / divisor)
    if not lines:
        raise RsdError(
            f"{log}: it is empty: fio ended before it had a value to write",
            "a smaller log_avg_msec, and for _bw and _iops also bwavgtime and iopsavgtime",
        )
    return dict(sorted(lines.items()))


def _svg(kind: Kind, lines: Mapping[str, Line]) -> str:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE_INCHES)
        axes = figure.add_subplot()
        for title, (seconds, values) in lines.items():
            axes.plot(seconds, values, marker=".", markersize=3, linewidth=0.8, label=title)
        axes.set_xlabel("time since the job began (s)")
        axes.set_ylabel(kind.label)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", ncols=_columns(list(lines)))
        figure.set_layout_engine("constrained")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _columns(titles: Sequence[str]) -> int:
    """Of the legend: short titles stand side by side."""
    return 1 if max(map(len, titles)) > 30 else 2
