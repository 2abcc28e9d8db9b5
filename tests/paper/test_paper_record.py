# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd paper --record` keeps figures by the day, and shows each as it was measured last."""

import json
from pathlib import Path
from typing import Any

import pytest

from rsd.paper import record


def _run(**values: float) -> dict[str, Any]:
    """A run that has measured one limit a figure."""
    return {
        "schema": record.ONE_RUN,
        "paper": "sfs",
        "command": f"./rsd paper sfs {' '.join(values)}",
        "scale": {},
        "hashes": {},
        "figures": {
            name: [{"what": "w", "limit": 1, "measured": value, "verdict": "v", "note": ""}]
            for name, value in values.items()
        },
    }


@pytest.fixture(name="root")
def fixture_root(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "results").mkdir(parents=True)
    page = f"before\n{record.begin('sfs')}\n{record.END}\nafter\n"
    (tmp_path / "docs" / "papers.md").write_text(page)
    return tmp_path


def _shown(root: Path) -> dict[str, tuple[float, str]]:
    return {
        name: (claims[0]["measured"], run["date"])
        for run in record.newest(root, "sfs")
        for name, claims in run["figures"].items()
    }


def test_a_figure_that_is_measured_again_takes_the_place_of_its_older_one(root: Path) -> None:
    old = root / "docs" / "results" / "paper-sfs-2001-02-03.json"
    old.write_text(json.dumps(_run(figure1=0.1, figure2=0.2, figure3=0.3)))
    record.record(root, _run(figure1=0.4, figure2=0.5))
    path = record.record(root, _run(figure2=0.6))
    today = path.stem.removeprefix("paper-sfs-")
    assert _shown(root) == {
        "figure1": (0.4, today),
        "figure2": (0.6, today),
        "figure3": (0.3, "2001-02-03"),
    }
    assert [list(run["figures"]) for run in json.loads(path.read_text())["runs"]] == [
        ["figure1"],
        ["figure2"],
    ]


def test_the_page_shows_all_figures_and_keeps_what_is_around_them(root: Path) -> None:
    record.record(root, _run(figure1=0.4))
    record.record(root, _run(figure2=0.5))
    text = (root / "docs" / "papers.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.index("| figure2 | w | under 1 | 0.5 |") < text.index("| figure1 | w | under 1 |")
