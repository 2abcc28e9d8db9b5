# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a run: one HTML file without anything from outside."""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rsd.crash import timeline
from rsd.crash.campaign import Campaign
from rsd.report import plots

# Failures whose timeline is shown, and how much of each
SHOWN, EVENTS = 20, 16
# The strip of operations, in the units of its SVG; so many columns at most
WIDTH, HEIGHT, COLUMNS = 1000, 64, 500
GOOD, BAD, NONE = "var(--good)", "var(--bad)", "var(--grid)"


def page(campaign: Campaign, results: Mapping[str, Any]) -> str:
    """Equal results give equal bytes."""
    body = "\n".join(_body(campaign, results))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>rsd crash</title>\n<style>\n{plots.style()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(campaign: Campaign, results: Mapping[str, Any]) -> Iterator[str]:
    failed, explored = results["failed"], results["explored"]
    yield f"<h1>Power cuts under {_text(results['system'])}</h1>"
    yield (
        f'<p class="lead">{_text(campaign.title)}: {results["operations"]:,} operations of the '
        f"drive. A power cut after any of them leaves one of {results['states']:,} states, "
        "by what became of the operations in flight.</p>"
    )
    verdict = f"{failed:,} of {explored:,} states fail" if failed else "No state fails"
    yield f'<p class="verdict{" bad" if failed else ""}">{verdict}.</p>'
    if not results["complete"]:
        left = results["states"] - explored
        yield f'<p class="verdict bad">{left:,} states were not explored: there was no time.</p>'
    yield (
        '<p class="note">Checked in each state that was mounted: '
        f"{_text(', '.join(results['checked']))}.</p>"
    )
    for what in results["unchecked"]:
        yield f'<p class="verdict bad">Not checked: {_text(what)}.</p>'
    tiles = (
        ("states explored", explored),
        (
            "of them mounted; each other state equals one of these in every block that was read",
            results["mounted"],
        ),
        ("fail", failed),
    )
    yield '<div class="tiles">'
    for what, count in tiles:
        yield f'<div class="tile"><small>{what}</small><b>{count:,}</b></div>'
    yield "</div>"
    yield from _strip(results)
    yield from _failures(campaign, results)
    yield from _again(results)
    yield from _marks(campaign)
    yield from _how(results)


def _strip(results: Mapping[str, Any]) -> Iterator[str]:
    """Where in the work states fail: a column for each operation, or for some that are adjacent.

    The table has a row for each column that was explored.
    """
    last = results["operations"]
    columns = min(COLUMNS, last + 1)
    passed, wrong = [0] * columns, [0] * columns
    for _, op, _, _, good in results["verdicts"]:
        (passed if good else wrong)[op * columns // (last + 1)] += 1
    width = WIDTH / columns
    bars, rows = [], []
    for column, (good, bad) in enumerate(zip(passed, wrong, strict=True)):
        at = f'x="{column * width:.2f}" width="{width:.2f}"'
        share = HEIGHT * bad / max(1, good + bad)
        colour = GOOD if good + bad else NONE
        bars.append(f'<rect {at} y="0" height="{HEIGHT}" fill="{colour}"/>')
        if bad:
            bars.append(f'<rect {at} y="{HEIGHT - share:.1f}" height="{share:.1f}" fill="{BAD}"/>')
        if good + bad:
            where = _operations(column, columns, last)
            rows.append(f"<tr><td>{where}</td><td>{good:,}</td><td>{bad:,}</td></tr>")
    yield (
        "<section><h2>Where in the work</h2>"
        '<p class="note">From the first operation to the last. Green: states pass; red: this share '
        "of them fails; grey: not explored.</p><figure>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" preserveAspectRatio="none" '
        f'style="height:{HEIGHT}px" aria-label="{results["failed"]} states fail">'
        f"{''.join(bars)}</svg></figure><details><summary>The table of this plot</summary>"
        '<div class="scroll"><table><tr><th>power cut after operation</th><th>states that pass</th>'
        f"<th>that fail</th></tr>{''.join(rows)}</table></div></details></section>"
    )


def _operations(column: int, columns: int, last: int) -> str:
    """The operations that are in a column: those `op` of which op * columns // (last + 1) is it."""
    first, end = (-(-at * (last + 1) // columns) for at in (column, column + 1))
    return f"{first:,}" if end == first + 1 else f"{first:,} to {end - 1:,}"


def _failures(campaign: Campaign, results: Mapping[str, Any]) -> Iterator[str]:
    if not results["failures"]:
        return
    all_events = timeline.events(campaign)
    yield "<section><h2>What fails</h2>"
    for failure in results["failures"][:SHOWN]:
        state = campaign.states[failure["state"]]
        letters = f", outcomes {failure['outcomes']}" if failure["outcomes"] else ""
        alike = f", and {len(failure['same']):,} like it" if failure["same"] else ""
        events = timeline.before(campaign, state, all_events, EVENTS)
        yield (
            f"<details><summary>State {failure['state']}{alike}: operation "
            f"{failure['operation']}{letters}; {_text(failure['stage'])}</summary>"
            f"<p>Durable by then: {_text(failure['holds'])}</p><pre>{_text(failure['said'])}</pre>"
            f"<pre>{_text(chr(10).join(events))}</pre></details>"
        )
    if len(results["failures"]) > SHOWN:
        yield f"<p>{len(results['failures']) - SHOWN:,} more are in results.json.</p>"
    yield "</section>"


def _again(results: Mapping[str, Any]) -> Iterator[str]:
    """A row for each state whose recovery was cut again."""
    if not results["again"]:
        return
    names = ("operations", "explored", "mounted", "failed")
    head = "".join(f"<th>{name}</th>" for name in ("state", *names))
    rows = "".join(
        f"<tr><td>{one['state']}</td>"
        + "".join(f"<td>{one.get(name, 'no time')}</td>" for name in names)
        + "</tr>"
        for one in results["again"]
    )
    yield (
        "<section><h2>Cut again, within the recovery</h2>"
        '<p class="note">Of these states, mounting and unmounting was recorded, and the power was '
        "cut after each operation of it. The directory again-N has the report of state N.</p>"
        f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div></section>'
    )


def _marks(campaign: Campaign) -> Iterator[str]:
    names = campaign.marks.names
    if not names:
        return
    rows = "".join(f"<tr><td>{_text(name)}</td><td>{op:,}</td></tr>" for op, name in names)
    yield (
        "<section><h2>What had to hold</h2><details><summary>From which operation on</summary>"
        '<div class="scroll"><table><tr><th>durable</th><th>operation</th></tr>'
        f"{rows}</table></div></details></section>"
    )


def _how(results: Mapping[str, Any]) -> Iterator[str]:
    names = ("properties", "mount_options", "patch", "points", "outcomes", "seed")
    facts = {name: results[name] for name in names} | results["hashes"]
    rows = "".join(
        f'<tr><td>{_text(name)}</td><td class="name"><code>{_text(_plain(value))}</code></td></tr>'
        for name, value in facts.items()
    )
    yield (
        "<section><h2>What was run</h2><p>Equal settings and hashes give these bytes again, on any "
        f'machine.</p><div class="scroll"><table>{rows}</table></div></section>'
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(value: Any) -> str:
    return html.escape(str(value))
