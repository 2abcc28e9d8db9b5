# SPDX-License-Identifier: GPL-2.0-or-later
"""results.json, the comparison of runs, the table and the report."""

import copy
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rsd.artifacts import Artifacts
from rsd.compare import results, table
from rsd.compare.cells import ALL_CELLS, SYSTEMS, applies
from rsd.compare.figures import Figure, cell_figures
from rsd.compare.run import Plan, Run, differing, plans
from rsd.machine import GuestResult, Outcome
from rsd.report import page, plots

DATA = Path(__file__).parent / "data"
STORED = json.loads((DATA / "results.json").read_text())
CELLS = tuple(cell for cell in ALL_CELLS if (DATA / "raw" / cell.name).is_dir())


def a_run(number: int, wall_s: float = 1.0) -> Run:
    """A run of our drive, with the stored raw output."""
    result = GuestResult(
        outcome=Outcome.EXITED,
        status=0,
        out_dir=DATA,
        output="",
        console="",
        virtual_s=1.0,
        wall_s=wall_s,
        qemu_cpu_s=wall_s,
        hashes={},
        qemu_command=("qemu",),
    )
    run = Run(Plan("rsd", number, CELLS, DATA), [result])
    for cell in CELLS:
        run.figures[cell.name] = cell_figures(cell, SYSTEMS["rsd"], DATA / "raw" / cell.name)
        run.wall_s[cell.name] = wall_s
    return run


@pytest.fixture
def built(tmp_path: Path) -> Artifacts:
    """A QEMU that can tell its version, and no more."""
    qemu = tmp_path / "qemu"
    qemu.write_text("#!/bin/sh\necho 'QEMU emulator version 10.0.0'\n")
    qemu.chmod(0o755)
    return Artifacts(qemu, qemu, qemu, qemu, qemu, qemu, (), {"qemu": "12ab"})


def test_equal_runs_are_identical(built: Artifacts) -> None:
    runs = [a_run(1, wall_s=1.0), a_run(2, wall_s=9.0)]
    assert differing(runs) == []
    content = results.results(runs, CELLS, built)
    assert content["repeatability"]["rsd"]["identical"] is True


def test_one_run_is_not_called_identical(built: Artifacts) -> None:
    content = results.results([a_run(1)], CELLS, built)
    assert content["repeatability"]["rsd"]["identical"] is False


def test_any_difference_is_found(built: Artifacts) -> None:
    changed = a_run(2)
    name = CELLS[-1].name
    last = changed.figures[name][-1]
    changed.figures[name][-1] = Figure(last.metric, last.value + 1, last.unit, last.clock)
    runs = [a_run(1), changed]
    assert differing(runs) == [f"{name} {last.metric}: {last.value}, {last.value + 1}"]
    content = results.results(runs, CELLS, built)
    assert content["repeatability"]["rsd"]["identical"] is False


def test_a_cell_that_failed_in_one_run_is_a_difference() -> None:
    changed = a_run(2)
    del changed.figures[CELLS[-1].name]
    assert differing([a_run(1), changed])


def test_records_do_not_depend_on_wall_time(built: Artifacts, tmp_path: Path) -> None:
    texts = []
    for wall_s in (1.0, 7.0):
        runs = [a_run(1, wall_s), a_run(2, wall_s + 1)]
        results.write(results.results(runs, CELLS, built), tmp_path / "results.json")
        lines = (tmp_path / "results.json").read_text().splitlines()
        texts.append([line for line in lines if re.search(r'"clock": "(virtual|count)"', line)])
    assert texts[0] == texts[1]
    assert len(texts[0]) > 50


def test_the_file_is_json_with_the_documented_fields(built: Artifacts, tmp_path: Path) -> None:
    results.write(results.results([a_run(1)], CELLS, built), tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["schema"] == 1
    assert {"records", "configuration", "versions", "hashes"} <= content.keys()
    for record in content["records"]:
        assert list(record) == ["system", "workload", "metric", "value", "unit", "clock"]
        assert record["clock"] in ("virtual", "count", "wall")
        assert isinstance(record["value"], int | float)


def test_the_stored_results_say_that_our_runs_were_identical() -> None:
    for name, repeat in STORED["repeatability"].items():
        assert repeat["identical"] is SYSTEMS[name].ours
    assert STORED["failures"] == []


def test_repetitions_are_apart(tmp_path: Path) -> None:
    found = plans(["stock", "rsd"], ALL_CELLS, tmp_path)
    assert [(plan.system, plan.number) for plan in found] == [
        ("stock", 1),
        ("rsd", 1),
        ("stock", 2),
        ("rsd", 2),
        ("stock", 3),
    ]
    assert all(applies(cell, "stock") for cell in found[0].cells)
    assert not any(plan.cold for plan in found)


def test_only_the_second_run_of_ours_is_cold(tmp_path: Path) -> None:
    found = plans(["stock", "rsd"], ALL_CELLS, tmp_path, cold=True)
    assert [(plan.system, plan.number) for plan in found if plan.cold] == [("rsd", 2)]


def test_the_table_has_every_load_and_no_control_codes_when_piped() -> None:
    stream = io.StringIO()
    table.print_table(STORED, Console(file=stream, width=140))
    text = stream.getvalue()
    assert "\x1b" not in text
    for name, facts in STORED["configuration"]["workloads"].items():
        assert (name in text) == bool(facts["ios"])
    assert "identical (2)" in text


def report(content: Any, path: Path) -> str:
    page.write(content, path)
    return path.read_text()


def test_the_report_is_self_contained_and_repeatable(tmp_path: Path) -> None:
    text = report(STORED, tmp_path / "report.html")
    assert text == report(STORED, tmp_path / "again.html")
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert not re.search(r"(?:src|href)=[\"'](?!#)|url\((?!#)|@import|https?://", without_names)
    assert text.count("<svg") == text.count("</svg>") == 5
    for colour in plots.VARIABLES:
        assert colour not in text


def test_every_drive_has_a_colour_and_a_marker() -> None:
    style = plots.style()
    assert plots.SYSTEM_COLOURS.keys() == plots.MARKERS.keys() == SYSTEMS.keys()
    for name in SYSTEMS:
        assert style.count(f"--{name}: #") == 2  # light and dark


def test_a_drive_of_ones_own_is_in_the_report(tmp_path: Path) -> None:
    """It has no colour of its own yet, which is not to cost the report after a long run."""
    text = report(json.loads(json.dumps(STORED).replace('"rsd"', '"mine"')), tmp_path / "own.html")
    assert text.count("<svg") == 5
    assert ">mine<" in text


def test_the_report_names_what_it_shows(tmp_path: Path) -> None:
    text = report(STORED, tmp_path / "report.html")
    for name in STORED["repeatability"]:
        assert f"<b>{name}</b>" in text
    for digest in STORED["hashes"].values():
        assert digest in text
    assert text.count("records identical. Spread 0.") == 2


def test_the_report_does_not_claim_what_was_not_found(tmp_path: Path) -> None:
    content = copy.deepcopy(STORED)
    content["repeatability"]["rsd"] |= {"identical": False, "differences": ["cell iops: 1, 2"]}
    content["failures"] = [{"system": "rsd", "run": 2, "workload": "<cell>", "why": "status 1"}]
    text = report(content, tmp_path / "report.html")
    assert text.count("records identical. Spread 0.") == 1
    assert "cell iops: 1, 2" in text
    assert "&lt;cell&gt;: status 1" in text


def test_a_report_of_one_cell(tmp_path: Path) -> None:
    content = copy.deepcopy(STORED)
    content["configuration"]["workloads"] = {
        "admin": content["configuration"]["workloads"]["admin"]
    }
    assert "Virtual SSDs" in report(content, tmp_path / "report.html")
