# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/papers.md shows the newest result of `./rsd paper NAME --record`, and its verdicts."""

import pytest

from rsd.artifacts import REPOSITORY
from rsd.paper import record
from rsd.paper.claim import Claim, Limit
from rsd.paper.command import PAPERS

MEASURED = [name for name in PAPERS if record.newest(REPOSITORY, name)]


@pytest.mark.parametrize("name", MEASURED)
def test_the_page_is_of_the_newest_result(name: str) -> None:
    text = (REPOSITORY / "docs" / "papers.md").read_text()
    path = record.newest(REPOSITORY, name)
    assert path is not None
    shown = text.split(record.begin(name) + "\n")[1].split(record.END)[0]
    assert shown == record.table(record.read(path)), f"./rsd paper {name} --record"


@pytest.mark.parametrize("name", MEASURED)
def test_verdicts_follow_from_the_recorded_numbers(name: str) -> None:
    path = record.newest(REPOSITORY, name)
    assert path is not None
    for claims in record.read(path)["figures"].values():
        for fields in claims:
            verdict = fields.pop("verdict")
            claim = Limit(**fields) if "limit" in fields else Claim(**fields)
            assert claim.verdict.value == verdict, claim.what


def test_the_page_has_a_place_for_each_paper_that_can_be_measured() -> None:
    text = (REPOSITORY / "docs" / "papers.md").read_text()
    for name, paper in PAPERS.items():
        measurable = any(entry.run for entry in paper.entries)
        assert text.count(record.begin(name)) == int(measurable), name
