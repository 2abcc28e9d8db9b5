# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documents show of a comparison: docs/comparing.md's table and README's picture.

Both are made of the newest docs/results/compare-DATE.json, which holds the figures shown.
"""

import datetime
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rsd.compare import results
from rsd.compare.table import print_table
from rsd.errors import RsdError, naming

BEGIN, END = "<!-- table: compare -->", "<!-- end -->"

# Of all that ./rsd compare measures
WORKLOADS = ("randread-4k-qd32", "write-4k-qd1", "append-4k-qd64")
BENCHMARKS = ("small-sqlite-delete", "small-postmark")
PICTURED = "small-postmark"

WIDTH = 150


def shown(content: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a comparison's results that the documents show."""
    configuration = content["configuration"]
    wanted = {*WORKLOADS, *BENCHMARKS}
    present = {*configuration["workloads"], *configuration["benchmarks"]}
    if missing := wanted - present:
        raise RsdError(
            f"--record: {', '.join(sorted(missing))} was not measured",
            "./rsd compare --record, without --quick, --system and --workload",
        )
    return {
        "configuration": {
            **configuration,
            "systems": _without_paths(configuration["systems"]),
            "stacks": _without_paths(configuration["stacks"]),
            "workloads": {name: configuration["workloads"][name] for name in WORKLOADS},
            "benchmarks": {name: configuration["benchmarks"][name] for name in BENCHMARKS},
        },
        "versions": content["versions"],
        "hashes": content["hashes"],
        "records": [one for one in content["records"] if one["workload"] in wanted],
        "repeatability": {
            system: {
                **repeat,
                "values": {k: v for k, v in repeat["values"].items() if k in wanted},
            }
            for system, repeat in content["repeatability"].items()
        },
    }


def _without_paths(systems: Mapping[str, Any]) -> dict[str, Any]:
    """QEMU's command lines name places of one machine; properties and hashes say the rest."""
    return {
        name: {key: value for key, value in system.items() if key != "qemu"}
        for name, system in systems.items()
    }


def record(root: Path, content: Mapping[str, Any]) -> Path:
    """Write today's file, and the table and the picture that show it."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = root / "docs" / "results" / f"compare-{date}.json"
    kept = {"date": date, **shown(content)}
    with naming(path):
        path.write_text(json.dumps(kept, indent=1) + "\n")
    write(root, kept)
    return path


def write(root: Path, kept: Mapping[str, Any]) -> None:
    """The table and the picture of what a dated file has."""
    page = root / "docs" / "comparing.md"
    with naming(page):
        text = page.read_text()
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise RsdError(f"{page}: it needs one line {BEGIN} and one line {END}")
        head, rest = text.split(BEGIN)
        page.write_text(f"{head}{BEGIN}\n{table(kept)}{END}{rest.split(END)[1]}")
    with naming(root / "docs" / "compare.svg"):
        (root / "docs" / "compare.svg").write_text(picture(kept))


def newest(root: Path) -> dict[str, Any]:
    """The latest of the dated files."""
    found = sorted((root / "docs" / "results").glob("compare-*.json"))
    if not found:
        raise RsdError("docs/results has no compare-DATE.json", "./rsd compare --record")
    content: dict[str, Any] = json.loads(found[-1].read_text())
    return content


def table(kept: Mapping[str, Any]) -> str:
    """As ./rsd compare prints it, and whether the runs were the same."""
    stream = io.StringIO()
    print_table(kept, Console(file=stream, width=WIDTH, color_system=None))
    same = [
        f"{name}: {repeat['runs']} runs, every virtual and count record identical\n"
        for name, repeat in kept["repeatability"].items()
        if results.ours(name) and repeat["identical"] and repeat["runs"] > 1
    ]
    return f"Of {kept['date']}:\n```\n{stream.getvalue()}{''.join(same)}```\n"


def picture(kept: Mapping[str, Any]) -> str:
    """The report's plot of one benchmark, as a file of its own."""
    from rsd.report import plots  # matplotlib takes a second to load
    from rsd.report.data import Results

    plot = plots.benchmark(Results(kept), PICTURED)
    assert plot is not None
    return plots.standalone(plot)
