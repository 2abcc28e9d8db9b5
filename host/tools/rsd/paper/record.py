# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/papers.md and the dated files under docs/results that its tables are of.

A file has the runs of one day; a figure is shown from the latest run that measured it.
"""

import datetime
import json
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from rsd.errors import RsdError, naming

END = "<!-- end -->"
SCHEMA = 2
ONE_RUN = 1  # of files that are one run

Run = dict[str, Any]


def begin(paper: str) -> str:
    """The line of docs/papers.md after which a paper's tables are."""
    return f"<!-- table: paper {paper} -->"


def record(root: Path, run: Run) -> Path:
    """Adds a run to today's file of its paper, and shows the paper's newest figures.

    `run` has the paper, the command, the scale, hashes, and figures by their names. Today's file is
    under docs/results; a figure that was recorded earlier today is replaced. The figures are shown
    in docs/papers.md. Raises RsdError if one of them cannot be written.
    """
    paper = run["paper"]
    path = _path(root, paper, datetime.datetime.now(datetime.UTC).date().isoformat())
    runs = [*_without(_read(path) if path.exists() else [], run["figures"]), run]
    page = root / "docs" / "papers.md"
    with naming(path):
        path.write_text(json.dumps({"schema": SCHEMA, "runs": runs}, indent=1) + "\n")
    with naming(page):
        text = page.read_text()
        if text.count(begin(paper)) != 1:
            raise RsdError(f"{page}: it needs one line {begin(paper)}, and {END} after it")
        head, rest = text.split(begin(paper))
        tail = rest.split(END, 1)[1]
        page.write_text(f"{head}{begin(paper)}\n{tables(newest(root, paper))}{END}{tail}")
    return path


def newest(root: Path, paper: str) -> list[Run]:
    """The runs that have a paper's figures as they were recorded last, the latest run first.

    Each has the day of its file as `date`, and only those of its figures that no later run has.
    """
    found: list[Run] = []
    seen: dict[str, Any] = {}
    for path in sorted((root / "docs" / "results").glob(f"paper-{paper}-*.json"), reverse=True):
        date = path.stem.removeprefix(f"paper-{paper}-")
        for run in reversed(_read(path)):
            found += [{**one, "date": date} for one in _without([run], seen)]
            seen |= run["figures"]
    return found


def _path(root: Path, paper: str, date: str) -> Path:
    return root / "docs" / "results" / f"paper-{paper}-{date}.json"


def _read(path: Path) -> list[Run]:
    """The runs of a file, the latest last."""
    content = json.loads(path.read_text())
    return [content] if content["schema"] == ONE_RUN else list(content["runs"])


def _without(runs: Iterable[Run], names: Container[str]) -> list[Run]:
    """Runs without these figures, and without runs that then have none."""
    left = [
        {**run, "figures": {n: claims for n, claims in run["figures"].items() if n not in names}}
        for run in runs
    ]
    return [run for run in left if run["figures"]]


def tables(runs: Iterable[Run]) -> str:
    """What the page shows of runs: a table each, with a row a claim."""
    return "\n".join(_table(run) for run in runs)


def _table(run: Run) -> str:
    lines = [
        f"Of {run['date']}, `{run['command']}`:",
        "",
        "| figure | what | the paper | here | beside | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    notes = []
    for name, claims in run["figures"].items():
        for claim in claims:
            cells = [name, claim["what"], *_values(claim), claim["verdict"]]
            lines.append("| " + " | ".join(cells) + " |")
            if claim["note"]:
                notes.append(f"- {name}, {claim['what']}: {claim['note']}")
    if notes:
        lines += ["", *notes]
    return "\n".join(lines) + "\n"


def _values(claim: dict[str, Any]) -> tuple[str, str, str]:
    if "limit" in claim:
        return f"under {claim['limit']:g}", f"{claim['measured']:.3g}", ""
    paper, measured, beside = (claim[key] for key in ("paper", "measured", "beside"))
    reference = claim["reference"]

    def shown(values: dict[str, float], base: float | None) -> str:
        return "; ".join(
            f"{system} {number(value)}" + (f" ({value / base:.2f})" if base else "")
            for system, value in values.items()
        )

    base = measured.get(reference)
    theirs = order(paper) if claim["ranks"] else shown(paper, paper.get(reference))
    return theirs, shown(measured, base), shown(beside, base)


def order(ranks: dict[str, float]) -> str:
    """What a paper shows without numbers."""
    return "from most to least: " + ", ".join(sorted(ranks, key=lambda name: -ranks[name]))


def number(value: float) -> str:
    """A value with as many digits as say something."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
