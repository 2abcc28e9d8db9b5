# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/papers.md and the dated files under docs/results that its tables are of."""

import datetime
import json
from pathlib import Path
from typing import Any

from rsd.errors import RsdError, naming

END = "<!-- end -->"


def begin(paper: str) -> str:
    """The line of docs/papers.md after which a paper's tables are."""
    return f"<!-- table: paper {paper} -->"


def record(root: Path, content: dict[str, Any]) -> Path:
    """Writes today's file of a paper under docs/results, and its tables into docs/papers.md."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    paper = content["paper"]
    path = root / "docs" / "results" / f"paper-{paper}-{today}.json"
    page = root / "docs" / "papers.md"
    with naming(path):
        path.write_text(json.dumps({"date": today, **content}, indent=1) + "\n")
    with naming(page):
        text = page.read_text()
        if text.count(begin(paper)) != 1:
            raise RsdError(f"{page}: it needs one line {begin(paper)}, and {END} after it")
        head, rest = text.split(begin(paper))
        tail = rest.split(END, 1)[1]
        shown = table(read(path))
        page.write_text(f"{head}{begin(paper)}\n{shown}{END}{tail}")
    return path


def newest(root: Path, paper: str) -> Path | None:
    """The latest of a paper's files, if there is one."""
    found = sorted((root / "docs" / "results").glob(f"paper-{paper}-*.json"))
    return found[-1] if found else None


def read(path: Path) -> dict[str, Any]:
    """What record() wrote."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def table(content: dict[str, Any]) -> str:
    """The page's table of a file's content: a row a claim."""
    lines = [
        f"Of {content['date']}, `{content['command']}`:",
        "",
        "| figure | what | the paper | here | beside | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    notes = []
    for name, claims in content["figures"].items():
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
