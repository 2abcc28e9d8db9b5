# SPDX-License-Identifier: GPL-2.0-or-later
"""README stays short: what else there is to say is in docs/."""

from rsd.artifacts import REPOSITORY

LINES = 120


def test_it_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= LINES
