# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/first-run.md shows the newest recorded set-up, which has every step there is."""

from rsd import first_run
from rsd.artifacts import REPOSITORY


def test_the_table_is_of_the_newest_result() -> None:
    newest = first_run.newest(REPOSITORY)
    text = (REPOSITORY / "docs" / "first-run.md").read_text()
    shown = text.split(f"{first_run.BEGIN}\n")[1].split(first_run.END)[0]
    if newest is None:
        assert shown == "Not measured yet: `./rsd setup --record`.\n"
        return
    assert shown == first_run.table(newest), "docs/first-run.md is out of date"
    assert {one["step"] for one in newest["steps"]} == set(first_run.STEPS)
