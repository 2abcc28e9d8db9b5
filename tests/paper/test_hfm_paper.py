# SPDX-License-Identifier: GPL-2.0-or-later
"""HFM's rows: each has the paper's numbers, and is measured with the sections of its table 1."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rsd import sim
from rsd.artifacts import Artifacts
from rsd.bench.base import Context
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.paper import hfm
from rsd.paper.claim import Claim, Verdict
from rsd.paper.entry import DEFAULT
from rsd.progress import Progress

FIGURES = {entry.name: entry for entry in hfm.PAPER.entries}


@pytest.fixture
def context(built: Artifacts, rsd_cache: Cache) -> Context:
    """With what the simulator is kept in."""
    return Context(built, rsd_cache, Progress())


def claims(name: str, context: Context) -> list[Claim]:
    """A figure's."""
    run = FIGURES[name].run
    assert run is not None
    found = run(context, DEFAULT)
    assert all(isinstance(one, Claim) for one in found)
    return [one for one in found if isinstance(one, Claim)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Mapping[str, Any]]]:
    """What the figures ask of hfmsim, which says that larger extents are slower."""
    found: list[Mapping[str, Any]] = []

    def measure(program: Path, options: Mapping[str, Any]) -> Any:
        found.append(options)
        return dict.fromkeys(("done_a_second", "mb_a_second"), 1 / options["extent"])

    monkeypatch.setattr(hfm, "measure", measure)
    yield found


def test_each_figure_is_of_the_papers_sections_and_work(
    context: Context, asked: list[Mapping[str, Any]]
) -> None:
    """Table 1, and what 4.2 to 4.4 say of the work."""
    said = {}
    for name, entry in FIGURES.items():
        if entry.run is None:
            continue
        asked.clear()
        said[name] = claims(name, context)
        sections = {(one["extent"], one["rho"]) for one in asked}
        assert sections == {(8, 1), (64, 2), (512, 3)}, name
        assert all(one["delta"] == 32 for one in asked if one["rho"] == 3)
        work = {
            "figure5": {"work": "tpcc", "clients": 50},
            "figure7": {"work": "postmark", "files": 1000, "transactions": 100_000},
            "figure8": {"work": "postmark", "files": 1000, "transactions": 500_000},
            "figure9": {"work": "iozone-mixed", "files": 10_000},
            "figure10": {"work": "iozone-large", "files": 1000},
            "figure11": {"work": "iozone-one"},
        }[name]
        assert all(one[key] == value for one in asked for key, value in work.items()), name
        # what the paper has faster is slower here
        for claim in said[name]:
            wrong = claim.paper["HFM(3)"] > claim.paper["HFM(1)"]
            assert claim.verdict is (Verdict.NOT if wrong else Verdict.DIRECTION), claim
    assert {one["size"] for one in asked} == {8 << 10, 256 << 20}
    parts = {name: [one.paper["HFM(3)"] for one in found] for name, found in said.items()}
    assert parts == {
        "figure5": [1.11, 1.06],
        "figure7": [1.06],
        "figure8": [2],
        "figure9": [0.88, 0.86],
        "figure10": [1.16, 1.09],
        "figure11": [1, 1.06, 1.03],
    }
    ranked = {name for name, found in said.items() if any(one.ranks for one in found)}
    assert ranked == {"figure8", "figure11"}


def test_large_extents_gain_the_commands_they_save(context: Context) -> None:
    """For large files; and nothing if commands take no time of their own."""
    for claim in claims("figure10", context):
        assert claim.measured["HFM(3)"] > 1.1 * claim.measured["HFM(1)"]
        small, large = (claim.beside[f"HFM({n}), commands free"] for n in (1, 3))
        assert large == pytest.approx(small, rel=0.001)
        json.dumps(dataclasses.asdict(claim))
    small_files, *large_files = claims("figure11", context)
    assert small_files.verdict is Verdict.DIRECTION
    assert all(one.measured["HFM(3)"] > one.measured["HFM(1)"] for one in large_files)


def test_what_hfmsim_refuses_is_said(rsd_cache: Cache) -> None:
    program = sim.ensure_hfmsim(rsd_cache, Progress())
    with pytest.raises(RsdError, match="hfmsim rho=7: hfmsim: rho=7: allowed is"):
        hfm.measure(program, {"rho": 7})
