# SPDX-License-Identifier: GPL-2.0-or-later
"""The dated files of `./rsd bench --record` under docs/results, and the documents' tables of them.

A document has a line `<!-- table: bench NAME -->`, or `<!-- line: bench NAME -->` for a sentence,
and after it what record() writes up to `<!-- end -->`.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rsd.bench.base import Row
from rsd.errors import RsdError, naming

__all__ = ["documents", "newest", "parts", "record", "shown"]

PART = re.compile(r"(?P<head><!-- (?P<kind>table|line): bench (?P<name>[\w-]+) -->\n)")
END = "<!-- end -->"


def record(root: Path, name: str, rows: Sequence[Row], hashes: Mapping[str, str]) -> Path:
    """Writes today's file of a bench, and brings the documents' tables and lines of it up to date.

    Returns the file. `hashes` say what was measured.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = root / "docs" / "results" / f"bench-{name}-{today}.json"
    content = {
        "schema": 1,
        "date": today,
        "bench": name,
        "rows": [asdict(row) for row in rows],
        "hashes": dict(hashes),
    }
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")
    for document in documents(root):
        with naming(document):
            text = document.read_text()
            changed = "".join(
                f"{head}{shown(kind, content) if of == name else body}"
                for head, kind, of, body in parts(document, text)
            )
            if changed != text:
                document.write_text(changed)
    return path


def documents(root: Path) -> list[Path]:
    """The documents of the repository that may show figures."""
    places = ("*.md", "docs/*.md", "host/fs/*.md", "host/tools/*/*.md", "hw/rsd-nvme/*.md")
    return sorted(path for place in (*places, "qemu-patches/*.md") for path in root.glob(place))


def parts(document: Path, text: str) -> Iterator[tuple[str, str, str, str]]:
    """A document in pieces: what comes before, then `table` or `line`, the bench, and its text.

    All pieces joined are the document; the last of them is of no bench.
    """
    at = 0
    for match in PART.finditer(text):
        end = text.find(END, match.end())
        if end < 0:
            raise RsdError(f"{document}: {match[0].strip()} has no {END} after it")
        yield text[at : match.end()], match["kind"], match["name"], text[match.end() : end]
        at = end
    yield text[at:], "", "", ""


def newest(root: Path, name: str) -> dict[str, Any]:
    """The latest of a bench's dated files."""
    date = "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2))
    found = sorted((root / "docs" / "results").glob(f"bench-{name}-{date}.json"))
    if not found:
        raise RsdError(
            f"docs/results has no bench-{name}-DATE.json", f"./rsd bench {name} --record"
        )
    content: dict[str, Any] = json.loads(found[-1].read_text())
    return content


def shown(kind: str, content: Mapping[str, Any]) -> str:
    """What a document says of a bench's dated file, as a table or as a line."""
    return _table(content) if kind == "table" else LINES[content["bench"]](content)


def _table(content: Mapping[str, Any]) -> str:
    lines = [
        f"`./rsd bench {content['bench']}`, {content['date']}:",
        "",
        "| figure | must be | measured |",
        "| --- | --- | --- |",
    ]
    for row in content["rows"]:
        missed = ": **missed**" if row["passed"] is False else ""
        why = f" ({row['why']})" if row["why"] else ""
        cells = (row["what"], row["must"], f"{row['measured']}{missed}{why}")
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([|<>])", r"\\\1", text)


def _speed(content: Mapping[str, Any]) -> str:
    """What a second of a user's time brings in a guest in virtual time."""
    rows = {row["what"]: row["measured"] for row in content["rows"]}
    what = "host CPU time of a 4 KiB random read in virtual time, queue depth"
    said = [f"{rows[f'{what} {depth}'].split(': ')[1]} at depth {depth}" for depth in (1, 32)]
    return f"Expect this much of 4 KiB random reads: {'; '.join(said)} ({content['date']}).\n"


LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {"guest-cost": _speed}
