# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/laws.md shows the newest result of `./rsd bench laws --record`, of all laws there are."""

from rsd.artifacts import REPOSITORY
from rsd.bench.laws import page
from rsd.bench.laws.table import LAWS


def test_the_page_is_of_the_newest_result() -> None:
    newest = page.read(page.newest(REPOSITORY))
    text = (REPOSITORY / "docs" / "laws.md").read_text()
    shown = text.split(f"{page.BEGIN}\n")[1].split(page.END)[0]
    assert shown == page.table(newest), "docs/laws.md is out of date: ./rsd bench laws --record"


def test_the_result_is_of_all_laws() -> None:
    newest = page.read(page.newest(REPOSITORY))
    recorded = {one["law"]: one["says"] for one in newest["laws"]}
    current = {law.name: law.says for law in LAWS.values()}
    assert recorded == current, "there are other laws now: ./rsd bench laws --record"
