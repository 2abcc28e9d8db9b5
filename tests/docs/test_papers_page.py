# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/papers.md shows the newest result of `./rsd paper NAME --record`, and its verdicts."""

import itertools

import pytest

from rsd.artifacts import REPOSITORY
from rsd.paper import record
from rsd.paper.claim import Claim, Limit
from rsd.paper.command import PAPERS

MEASURED = [name for name in PAPERS if record.newest(REPOSITORY, name)]


@pytest.mark.parametrize("name", MEASURED)
def test_the_page_is_of_the_newest_result(name: str) -> None:
    text = (REPOSITORY / "docs" / "papers.md").read_text()
    shown = text.split(record.begin(name) + "\n")[1].split(record.END)[0]
    assert shown == record.tables(record.newest(REPOSITORY, name)), f"./rsd paper {name} --record"


@pytest.mark.parametrize("name", MEASURED)
def test_verdicts_follow_from_the_recorded_numbers(name: str) -> None:
    for run in record.newest(REPOSITORY, name):
        for fields in itertools.chain.from_iterable(run["figures"].values()):
            verdict = fields.pop("verdict")
            claim = Limit(**fields) if "limit" in fields else Claim(**fields)
            assert claim.verdict.value == verdict, claim.what


def test_the_page_has_a_place_for_each_paper_that_can_be_measured() -> None:
    text = (REPOSITORY / "docs" / "papers.md").read_text()
    for name, paper in PAPERS.items():
        measurable = any(entry.run for entry in paper.entries)
        assert text.count(record.begin(name)) == int(measurable), name
