# SPDX-License-Identifier: GPL-2.0-or-later
"""The presets against published figures: the tables of hw/rsd-nvme/PRESETS.md, row by row."""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import REPOSITORY, Context, Row, near
from rsd.errors import RsdError
from rsd.steps import run_logged

DOCUMENT = REPOSITORY / "hw" / "rsd-nvme" / "PRESETS.md"
CORE = REPOSITORY / "hw" / "rsd-nvme" / "core"
SOURCE = REPOSITORY / "tests" / "model" / "run_workload.c"
BLOCK = 4096

FIT = "fit"
HELD_OUT = "held out"
# How far the model may be off: fitted figures, then by unit what was held out.
FITTED = 0.033
HELD = {"us": 0.15, "IOPS": 0.10, "MB/s": 0.10}
RESULT = {"us": "us", "IOPS": "iops", "MB/s": "mb_s"}

TABLE = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end -->", re.S)
STREAM = re.compile(r"(read|write|append) (\d+)K QD(\d+)(?: in (\d+) zones)?")
SINGLE = re.compile(r"(finish|reset), (.+)")
# What is left to write in a zone, of its capacity in blocks.
LEFT = {"full": (0, 1), "half full": (1, 2), "quarter full": (3, 4), "sixteenth full": (15, 16)}


@dataclass(frozen=True)
class Workload:
    """What the figure was measured with."""

    op: str
    blocks: int = 0
    depth: int = 0
    writers: int = 1
    left: str = ""  # of a zone that is finished or reset: how full it is

    def arguments(self, capacity: int) -> list[str]:
        """For run_workload; capacity: blocks of a zone."""
        left = 0
        if self.left == "1 block left":
            left = 1
        elif self.left == "empty":
            left = capacity
        elif self.left:
            part, whole = LEFT[self.left]
            left = capacity * part // whole
        return [self.op, *map(str, (self.blocks, self.depth, self.writers, left))]


@dataclass(frozen=True)
class Figure:
    """A row of a table: one published figure."""

    preset: str
    name: str
    workload: Workload
    published: float
    unit: str
    use: str

    @property
    def tolerance(self) -> float:
        """How far the model may be from what was published, relative to it."""
        return FITTED if self.use == FIT else HELD[self.unit]


def parse_workload(text: str) -> Workload:
    """A workload as the document writes it."""
    stream = STREAM.fullmatch(text)
    if stream:
        size = int(stream[2]) * 1024
        if size % BLOCK == 0 and size and int(stream[3]):
            return Workload(stream[1], size // BLOCK, int(stream[3]), int(stream[4] or 1))
    single = SINGLE.fullmatch(text)
    if single and (single[2] in LEFT or single[2] in ("1 block left", "empty")):
        return Workload(single[1], left=single[2])
    raise ValueError(f"no such workload: {text!r}")


def parse_document(text: str) -> list[Figure]:
    """The figures of all tables, in order. ValueError names a row that says nothing."""
    figures = []
    for preset, table in TABLE.findall(text):
        for line in table.splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            try:
                name, published, unit, use, _ = cells
                workload = parse_workload(name)
                value = float(published)
            except ValueError as error:
                raise ValueError(f"{preset}: {line!r}: {error}") from error
            if use not in (FIT, HELD_OUT) or unit not in RESULT:
                raise ValueError(f"{preset}: {line!r}: use or unit")
            figures.append(Figure(preset, name, workload, value, unit, use))
    return figures


def presets(context: Context) -> list[Row]:
    """Every figure of the document: published, modelled, deviation."""
    figures = parse_document(DOCUMENT.read_text())
    with tempfile.TemporaryDirectory(prefix="rsd-bench-") as directory:
        program = Path(directory) / "run_workload"
        with context.progress.step("presets: build") as step:
            run_logged(
                ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", f"-I{CORE}/api", "-o", program, SOURCE]
                + sorted(CORE.rglob("*.c")),
                step=step,
                log=context.cache.log("bench-presets"),
                hint="the first 'error:' in the log is the one to look at",
            )
        with context.progress.step(f"presets: {len(figures)} figures"):
            return [_row(figure, measure(program, figure)) for figure in figures]


def measure(program: Path, figure: Figure) -> float:
    """The model's value, in the figure's unit."""
    capacity = _run(program, figure.preset, ["geometry", "0", "0", "0", "0"])["zone_blocks"]
    result = _run(program, figure.preset, figure.workload.arguments(int(capacity)))
    return result[RESULT[figure.unit]]


def _run(program: Path, preset: str, arguments: list[str]) -> dict[str, float]:
    done = subprocess.run([program, preset, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RsdError(
            f"preset {preset}, {' '.join(arguments)}: {done.stderr.strip()}",
            "is the row in hw/rsd-nvme/PRESETS.md one that this preset can do?",
        )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _row(figure: Figure, value: float) -> Row:
    off = value / figure.published - 1
    return Row(
        f"{figure.preset}: {figure.name}, {figure.use}",
        f"{figure.published:,.6g} {figure.unit} +- {figure.tolerance:.1%}",
        f"{value:,.6g} {figure.unit} ({off:+.1%})",
        value,
        figure.unit,
        "virtual",
        near(value, figure.published, figure.tolerance),
    )
