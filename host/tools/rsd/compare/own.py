# SPDX-License-Identifier: GPL-2.0-or-later
"""A benchmark that a file describes, for ./rsd compare --benchmark FILE.

    name = "own-copies"         what results call it
    title = "..."               what it does, in a line
    run = "..."                 shell, measured; in a fresh directory of the file system, $out is
                                where output goes
    work = 50                   how much that does, in
    unit = "copies"
    setup, teardown = "..."     shell before and after it, not measured
    inputs = "work"             a directory beside FILE, /in in the guest
    scale = "small"             the drive: small, redo or risa (stacks.py)
    live_mib = 1                about what its files hold at the most
    written = 4096000           bytes that it writes to files, where that is known

    [[figures]]                 any number
    metric = "latency.mean"     latency.p99 has a column; all are in results.csv
    unit = "us"
    file = "report"             in $out
    pattern = '...'             a regular expression with one group, a number; of several matches,
                                the last counts

name, title, run, work and unit have to be there.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from rsd.compare.benchmarks import BENCHMARKS, Benchmark, Described, Output
from rsd.compare.cells import Level
from rsd.compare.stacks import REDO, RISA, SMALL
from rsd.errors import RsdError, words

SCALES = {scale.name: scale for scale in (SMALL, REDO, RISA)}
NEEDED: dict[str, tuple[type, ...]] = {
    **{name: (str,) for name in ("name", "title", "run", "unit")},
    "work": (int, float),
}
OPTIONAL: dict[str, tuple[type, ...]] = {
    **{name: (str,) for name in ("setup", "teardown", "inputs", "scale")},
    **{"live_mib": (int,), "written": (int,), "figures": (list,)},
}
FIGURE_NEEDED = ("metric", "unit", "pattern")
HOW = "docs/comparing.md has an example, and a table of the fields"


def read(path: Path) -> Benchmark:
    """The benchmark of a file. Raises RsdError that names what is wrong with it."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise RsdError(f"--benchmark {words(error)}", HOW) from error
    except ValueError as error:
        raise RsdError(f"--benchmark {path}: {error}", HOW) from error
    _check(path, content)
    scale = content.pop("scale", SMALL.name)
    if scale not in SCALES:
        raise RsdError(f"{path}: scale is {scale!r}, must be one of {', '.join(SCALES)}", HOW)
    inputs = content.pop("inputs", None)
    if inputs is not None and not (path.parent / inputs).is_dir():
        raise RsdError(f"{path}: inputs: {path.parent / inputs} is not a directory", HOW)
    figures = tuple(_figure(path, one) for one in content.pop("figures", []))
    content.setdefault("live_mib", 1)
    return Benchmark(
        scale=SCALES[scale],
        level=Level.QUICK,
        output=Output.DESCRIBED,
        inputs=None if inputs is None else path.parent / inputs,
        figures=figures,
        **content,
    )


def _check(path: Path, content: dict[str, Any]) -> None:
    known = NEEDED | OPTIONAL
    for name, value in content.items():
        if name not in known:
            raise RsdError(f"{path}: there is no field {name!r}: there is {', '.join(known)}", HOW)
        if not isinstance(value, known[name]) or isinstance(value, bool):
            kinds = " or ".join(kind.__name__ for kind in known[name])
            raise RsdError(f"{path}: {name} is {value!r}, must be of type {kinds}", HOW)
    for name in NEEDED:
        if name not in content:
            raise RsdError(f"{path}: {name} is missing", HOW)
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", content["name"]):
        raise RsdError(f"{path}: name is {content['name']!r}, must be of a-z, 0-9, - and .", HOW)
    if content["name"] in {benchmark.name for benchmark in BENCHMARKS}:
        raise RsdError(f"{path}: compare has a benchmark {content['name']!r}", "another name")
    if content["work"] <= 0:
        raise RsdError(f"{path}: work is {content['work']}, must be above 0", HOW)


def _figure(path: Path, content: dict[str, str]) -> Described:
    if unknown := set(content) - {*FIGURE_NEEDED, "file"}:
        raise RsdError(
            f"{path}: a figure has no field {min(unknown)!r}: there is"
            f" {', '.join(FIGURE_NEEDED)}, file",
            HOW,
        )
    for name in FIGURE_NEEDED:
        if not isinstance(content.get(name), str):
            raise RsdError(f"{path}: a figure's {name} is missing, or no text", HOW)
    try:
        groups = re.compile(content["pattern"]).groups
    except re.error as error:
        raise RsdError(f"{path}: pattern {content['pattern']!r}: {error}", HOW) from error
    if groups != 1:
        raise RsdError(
            f"{path}: pattern {content['pattern']!r}: it has {groups} groups, not 1", HOW
        )
    return Described(**content)
