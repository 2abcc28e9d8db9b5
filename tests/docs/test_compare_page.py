# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/comparing.md's table and README's picture are of the newest recorded comparison."""

from rsd.artifacts import REPOSITORY
from rsd.compare import record

STALE = "out of date: ./rsd compare --record"


def test_the_table_is_of_the_newest_result() -> None:
    text = (REPOSITORY / "docs" / "comparing.md").read_text()
    shown = text.split(f"{record.BEGIN}\n")[1].split(record.END)[0]
    assert shown == record.table(record.newest(REPOSITORY)), f"docs/comparing.md is {STALE}"


def test_the_picture_is_of_the_newest_result() -> None:
    picture = (REPOSITORY / "docs" / "compare.svg").read_text()
    assert picture == record.picture(record.newest(REPOSITORY)), f"docs/compare.svg is {STALE}"
    assert "var(--" not in picture


def test_every_column_is_explained() -> None:
    text = (REPOSITORY / "docs" / "comparing.md").read_text()
    table = record.table(record.newest(REPOSITORY))
    heads = [line for line in table.splitlines() if line.startswith("|workload")]
    explained = "".join(line for line in text.splitlines() if line.startswith("| "))
    assert len(heads) == 2
    for head in heads:
        for title in head.strip("|").split("|")[2:]:
            assert title.strip().removesuffix(" us").removesuffix(" of IOPS") in explained, title


def test_no_result_names_a_place_of_one_machine() -> None:
    for path in (REPOSITORY / "docs" / "results").glob("*.json"):
        assert ".cache/" not in path.read_text(), path.name
