# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/laws.md and the dated files under docs/results that its table is of."""

import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rsd.bench.laws.trial import Record, figure
from rsd.errors import RsdError, naming

__all__ = ["newest", "read", "record", "table"]

BEGIN, END = "<!-- table: laws -->", "<!-- end -->"


def record(root: Path, records: Sequence[Record], drawn: Sequence[Record], identity: str) -> Path:
    """Writes today's file under docs/results, and its table into docs/laws.md."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = root / "docs" / "results" / f"laws-{today}.json"
    content = {
        "schema": 1,
        "date": today,
        "simulator": identity,
        "laws": [one.as_json() for one in records],
        "random": _families(drawn),
    }
    page = root / "docs" / "laws.md"
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")
    with naming(page):
        text = page.read_text()
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise RsdError(f"{page}: it needs one line {BEGIN} and one line {END}")
        head, rest = text.split(BEGIN)
        page.write_text(f"{head}{BEGIN}\n{table(content)}{END}{rest.split(END)[1]}")
    return path


def newest(root: Path) -> Path:
    """The latest of the dated files."""
    found = sorted((root / "docs" / "results").glob("laws-*.json"))
    if not found:
        raise RsdError("docs/results has no laws-DATE.json", "./rsd bench laws --record")
    return found[-1]


def read(path: Path) -> dict[str, Any]:
    """What record() wrote."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def table(content: dict[str, Any]) -> str:
    """The page's tables of a file's content."""
    records = [Record.of(one) for one in content["laws"]]
    violated = sum(not one.holds for one in records)
    lines = [
        f"Of {content['date']}: {len(records)} laws, {sum(one.points for one in records):,} "
        f"figures; {violated or 'none'} violated.",
    ]
    for subject in dict.fromkeys(one.subject for one in records):
        lines += [
            "",
            f"### {subject[0].upper()}{subject[1:]}",
            "",
            "| law | what it says | source | must be | measured | figures | |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(one) for one in records if one.subject == subject]
    if content["random"]:
        lines += [
            "",
            "### Random settings",
            "",
            "| law | what it says | settings | figures | violated |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| `{one['law']}` | {_escaped(one['says'])} | {one['settings']} | {one['points']} "
            f"| {one['violated'] or 'none'} |"
            for one in content["random"]
        ]
    return "\n".join(lines) + "\n\n"


def _row(one: Record) -> str:
    got = "refused" if one.error else figure(one.got)
    return (
        f"| `{one.law}` | {_escaped(one.says)} | {_escaped(one.source)} | {_escaped(one.must())} "
        f"| {got} | {one.points} | {'holds' if one.holds else '**violated**'} |"
    )


def _escaped(text: str) -> str:
    return re.sub(r"([|<>])", r"\\\1", text)


def _families(drawn: Sequence[Record]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in drawn:
        entry = found.setdefault(
            one.law.split("/")[0],
            {
                "law": one.law.split("/")[0],
                "says": one.says,
                "settings": 0,
                "points": 0,
                "violated": 0,
            },
        )
        entry["settings"] += 1
        entry["points"] += one.points
        entry["violated"] += not one.holds
    return list(found.values())
