# SPDX-License-Identifier: GPL-2.0-or-later
"""One HTML page a paper: each figure with the paper's bars, ours beside them, and a table."""

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper
from rsd.report import plots

# The paper's bars and ours
PAPER_COLOUR, OURS_COLOUR = plots.GRID, plots.SYSTEM_COLOURS["rsd"]


def write(paper: Paper, found: Mapping[str, Sequence[Claim | Limit]], path: Path) -> None:
    """Write the page. Equal claims give equal bytes."""
    body = "\n".join(_body(paper, found))
    path.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>rsd paper {paper.name}</title>\n<style>\n{plots.style()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(paper: Paper, found: Mapping[str, Sequence[Claim | Limit]]) -> Iterator[str]:
    yield f"<h1>{paper.name.upper()}, measured again</h1>"
    yield f'<p class="lead">{html.escape(paper.reference)}</p>'
    for entry in paper.entries:
        yield f"<section>\n<h2>{html.escape(entry.name)}</h2>\n<p>{html.escape(entry.shows)}</p>"
        yield from _entry(entry, found.get(entry.name))
        yield "</section>"


def _entry(entry: Entry, claims: Sequence[Claim | Limit] | None) -> Iterator[str]:
    if claims is None:
        yield f"<p>Not measured{f': {html.escape(entry.missing)}' if entry.missing else ''}.</p>"
        return
    compared = [
        claim for claim in claims if isinstance(claim, Claim) and claim.measured and not claim.ranks
    ]
    if compared:
        yield f"<figure>{bars(compared)}</figure>"
    yield '<div class="scroll"><table><thead><tr><th>what</th><th>system</th><th>the paper</th>'
    yield "<th>here</th><th>verdict</th></tr></thead><tbody>"
    for claim in claims:
        yield from _rows(claim)
    yield "</tbody></table></div>"
    for claim in claims:
        if claim.note:
            yield f"<p>{html.escape(f'{claim.what}: {claim.note}')}</p>"


def _rows(claim: Claim | Limit) -> Iterator[str]:
    if isinstance(claim, Limit):
        yield _row(claim.what, "", f"under {claim.limit:g}", f"{claim.measured:.3g}", claim)
        return
    for at, system in enumerate((*claim.paper, *claim.beside)):
        paper = claim.paper.get(system)
        value = claim.measured.get(system, claim.beside.get(system))
        yield _row(
            claim.what if at == 0 else "",
            system,
            "" if paper is None else f"rank {paper:g}" if claim.ranks else f"{paper:,.6g}",
            "" if value is None else f"{value:,.6g}",
            claim if at == 0 else None,
        )


def _row(what: str, system: str, paper: str, ours: str, claim: Claim | Limit | None) -> str:
    verdict = claim.verdict.value if claim else ""
    cells = (what, system, paper, ours, verdict)
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def bars(claims: Sequence[Claim]) -> str:
    """Per claim a group of bars, a pair a system: the paper's value, and ours."""
    rows = [
        (claim.what, system, claim.parts(claim.paper)[system], ours)
        for claim in claims
        for system in claim.paper
        if (ours := claim.parts(claim.measured).get(system)) is not None
    ]
    with matplotlib.rc_context(plots.STYLE):
        figure = Figure(figsize=(plots.WIDTH, 1.0 + 0.42 * len(rows)))
        axes = figure.add_subplot()
        for at, (_, _, paper, ours) in enumerate(rows):
            axes.barh(at - 0.2, paper, height=0.36, color=PAPER_COLOUR)
            axes.barh(at + 0.2, ours, height=0.36, color=OURS_COLOUR)
            for place, value in ((at - 0.2, paper), (at + 0.2, ours)):
                axes.text(value, place, f" {value:.2f}", va="center", size=8.5, color=plots.MUTED)
        axes.set_yticks(range(len(rows)), [f"{what}\n{system}" for what, system, _, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel("in parts of what each is compared with; grey: the paper, colour: here")
        axes.set_xlim(left=0, right=1.15 * max(max(row[2:]) for row in rows))
        axes.grid(axis="y", visible=False)
        figure.tight_layout()
        return plots.svg(figure)
