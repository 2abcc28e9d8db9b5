# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents' tables and lines of benches are of the newest `./rsd bench NAME --record`."""

from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.bench import page
from rsd.bench.base import Row
from rsd.bench.command import BENCHES
from rsd.errors import RsdError

ROWS = [
    Row("a|b", "under 1", "0.5", 0.5, "", "count", True),
    Row("slow", "at most 2 us", "3 us", 3, "us", "wall", False, "memory"),
    Row("free", "", "7", 7, "", "count", None),
]


@pytest.mark.parametrize("document", page.documents(REPOSITORY), ids=lambda path: path.name)
def test_documents_show_the_newest_results(document: Path) -> None:
    for _, kind, name, body in page.parts(document, document.read_text()):
        if name:
            assert name in BENCHES
            assert body == page.shown(kind, page.newest(REPOSITORY, name)), (
                f"{document} is out of date: ./rsd bench {name} --record"
            )


def test_a_table_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    text = "# Before\n<!-- table: bench core -->\n{}<!-- end -->\nafter\n<!-- end -->\n"
    document.write_text(text.format("old\n"))
    page.record(tmp_path, "core", ROWS, {"qemu": "1"})
    page.record(tmp_path, "core-9", ROWS, {})  # its file would be the last of all by name
    newest = page.newest(tmp_path, "core")
    assert newest["hashes"] == {"qemu": "1"}
    table = page.shown("table", newest)
    assert document.read_text() == text.format(table)
    assert table.splitlines()[2:] == [
        "| figure | must be | measured |",
        "| --- | --- | --- |",
        r"| a\|b | under 1 | 0.5 |",
        "| slow | at most 2 us | 3 us: **missed** (memory) |",
        "| free |  | 7 |",
    ]


def test_a_table_without_an_end_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text("<!-- table: bench core -->\n")
    with pytest.raises(RsdError, match="has no <!-- end -->"):
        page.record(tmp_path, "core", ROWS, {})
    assert document.read_text() == "<!-- table: bench core -->\n"
