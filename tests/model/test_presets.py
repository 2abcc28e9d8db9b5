# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of published figures can be read, and its rows mean what they say."""

import pytest

from rsd.bench.presets import (
    DOCUMENT,
    FIT,
    HELD_OUT,
    Workload,
    parse_document,
    parse_workload,
)


def test_every_drive_has_figures_that_were_fitted_and_figures_that_were_not() -> None:
    """And no figure is both."""
    figures = parse_document(DOCUMENT.read_text())
    presets = {figure.preset for figure in figures}
    assert presets == {"zn540", "980pro", "tlc-2024"}
    for preset in presets:
        of_it = [figure for figure in figures if figure.preset == preset]
        assert {figure.use for figure in of_it} == {FIT, HELD_OUT}
        rows = [(figure.name, figure.unit) for figure in of_it]
        assert len(rows) == len(set(rows))


@pytest.mark.parametrize(
    ("text", "workload", "arguments"),
    [
        ("read 4K QD256", Workload("read", 1, 256), ["read", "1", "256", "1", "0"]),
        ("append 16K QD4", Workload("append", 4, 4), ["append", "4", "4", "1", "0"]),
        ("write 4K QD1 in 14 zones", Workload("write", 1, 1, 14), ["write", "1", "1", "14", "0"]),
        ("finish, 1 block left", Workload("finish", left="1 block left"), ["finish", *"0011"]),
        ("reset, full", Workload("reset", left="full"), ["reset", *"0010"]),
        ("reset, empty", Workload("reset", left="empty"), ["reset", *"001", "160"]),
        (
            "reset, sixteenth full",
            Workload("reset", left="sixteenth full"),
            ["reset", *"001", "150"],
        ),
    ],
)
def test_workloads(text: str, workload: Workload, arguments: list[str]) -> None:
    """A row's words, and what the program is told."""
    assert parse_workload(text) == workload
    assert workload.arguments(160) == arguments


@pytest.mark.parametrize(
    "text", ["read 4K", "trim 4K QD1", "read 6K QD1", "read 4K QD0", "reset, thrice full"]
)
def test_nonsense_is_refused(text: str) -> None:
    """Rather than measured as something else."""
    with pytest.raises(ValueError, match="no such workload"):
        parse_workload(text)


@pytest.mark.parametrize(
    "row",
    [
        "| read 4K QD1 | 70 | us | guess | G |",
        "| read 4K QD1 | 70 | furlongs | fit | G |",
        "| read 4K QD1 | fast | us | fit | G |",
        "| read 4K QD1 | 70 | us | fit |",
    ],
)
def test_a_bad_row_is_named(row: str) -> None:
    """With its preset."""
    text = f"<!-- figures: some -->\n| a |\n| --- |\n{row}\n<!-- end -->\n"
    with pytest.raises(ValueError, match="some"):
        parse_document(text)
