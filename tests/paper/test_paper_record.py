# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd paper --record` keeps figures by the day, and shows each as it was measured last."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rsd.cache import Cache
from rsd.cluster.unit import Unit
from rsd.compare import kept
from rsd.paper import command, record
from rsd.paper.cost import cpu_minutes


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


def test_the_cost_is_of_all_guests_and_shared_volumes_count_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def build(seconds: float, rounds: int = 1) -> Callable[[Path], None]:
        def fill(target: Path) -> None:
            for number in range(rounds):
                (target / str(number)).mkdir()
                (target / str(number) / kept.HOST).write_text(json.dumps({"qemu_cpu_s": seconds}))

        return fill

    cache.entry("aged", "a", build(60))
    units = [
        Unit("", "rounds", key, build(seconds, 2), (("aged", "a"),))
        for key, seconds in (("b", 30.0), ("c", 15.0))
    ]
    for unit in units:
        unit.run(cache)
    assert cpu_minutes(units, cache) == 1 + 1 + 0.5
    assert cpu_minutes(units[1:], cache) == 1 + 0.5
    missing = Unit("", "rounds", "d", build(1))
    assert cpu_minutes([*units, missing], cache) == 2.5


def test_the_list_shows_what_a_figure_cost_when_it_was_recorded_last() -> None:
    # as newest() gives them: the older run without the figure that was measured again
    older = {"figures": {"figure7": []}, "date": "2026-01-01"}
    newer = {"figures": {"table1": [], "table2": []}, "date": "2026-01-02"}
    runs: list[dict[str, Any]] = [
        {**newer, "cpu_minutes": {"table1": 8.0, "all": 8.0}},
        {**older, "cpu_minutes": {"table1": 9.0, "figure7": 3.25, "all": 12.0}},
    ]
    assert command._recorded_cost("table1", runs) == "; 8.0 CPU minutes on 2026-01-02"
    assert command._recorded_cost("figure7", runs) == "; 3.2 CPU minutes on 2026-01-01"
    assert command._recorded_cost("table2", runs) == ""
