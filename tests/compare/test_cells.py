# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of cells, and the script made of it."""

import shlex
import subprocess

import pytest

from rsd.compare import selection
from rsd.compare.cells import ALL_CELLS, SYSTEMS, Cell, Level, Tool, applies
from rsd.compare.script import command_line, guest_script
from rsd.errors import RsdError


def select(level: Level, workloads: list[str]) -> tuple[Cell, ...]:
    return selection.select(level, [], workloads).cells


def test_names_are_unique() -> None:
    names = [cell.name for cell in ALL_CELLS]
    assert len(set(names)) == len(names)


def test_levels_include_each_other() -> None:
    quick, default, full = (set(select(level, [])) for level in Level)
    assert quick < default < full == set(ALL_CELLS)


def test_what_was_asked_for_is_covered() -> None:
    default = select(Level.DEFAULT, [])
    reads = {cell.depth for cell in default if cell.family.name == "randread"}
    assert reads == {1, 8, 32, 128}
    sizes = {cell.block for cell in default if cell.family.tool is Tool.FIO}
    assert sizes == {4096, 16384, 131072}
    appends = {cell.depth for cell in default if cell.family.name == "append"}
    assert appends == {1, 2, 4, 8, 16, 32, 64}


def test_a_family_and_a_cell_can_be_selected() -> None:
    assert {cell.family.name for cell in select(Level.QUICK, ["append"])} == {"append"}
    # A cell that is named is measured, whatever its level.
    (cell,) = select(Level.QUICK, ["randread-16k-qd1"])
    assert cell.level is Level.FULL


def test_unknown_names_are_refused_with_the_list() -> None:
    with pytest.raises(RsdError, match="unknown workload 'randraed'.*randread"):
        select(Level.FULL, ["randraed"])
    with pytest.raises(RsdError, match="unknown system 'none'.*stock-zns"):
        selection.select(Level.FULL, ["none"], [])


def test_the_order_of_systems_is_the_tables() -> None:
    assert selection.select(Level.QUICK, ["rsd", "stock"], []).drives == ("stock", "rsd")
    assert selection.select(Level.FULL, [], []).drives == tuple(SYSTEMS)
    quick = tuple(name for name, traits in SYSTEMS.items() if not traits.aged)
    assert selection.select(Level.QUICK, [], []).drives == quick


def test_an_aged_drive_is_neither_filled_nor_emptied() -> None:
    """What ages it is rsdsim, and each cell has the whole drive, as it was aged, to itself."""
    for name in ("page-ftl", "block-ftl", "fast-ftl", "dftl"):
        assert SYSTEMS[name].aged
        cells = [cell for cell in ALL_CELLS if applies(cell, name)]
        assert {"randread", "read", "write", "randwrite", "mixed"} == {
            cell.family.name for cell in cells
        }
        script = guest_script(name, cells).split("# randread-4k-qd1\n")[1]
        for word in ("fill ", "empty_", "--size="):
            assert word not in script


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_script_is_shell(system: str) -> None:
    cells = [cell for cell in ALL_CELLS if applies(cell, system)]
    script = guest_script(system, cells)
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert script.count("@begin ") == script.count("@end ") == len(cells)


def test_a_filled_region_is_used_until_something_is_written() -> None:
    reads = select(Level.QUICK, ["randread-4k-qd1", "randread-4k-qd32"])
    assert guest_script("rsd", reads).count("\nfill 64\n") == 1
    mixed = select(Level.QUICK, ["mixed-4k-qd32", "rewrite-128k-qd8"])
    assert guest_script("rsd", mixed).count("\nfill ") == 2
    # a larger region is filled anew
    larger = select(Level.QUICK, ["randread-4k-qd1", "read-128k-qd8"])
    assert guest_script("rsd", larger).count("\nfill ") == 2


def test_drives_without_zones_get_no_zone_options() -> None:
    for cell in ALL_CELLS:
        if cell.ios and applies(cell, "stock"):
            words = command_line(cell, SYSTEMS["stock"])
            assert not any("zone" in word for word in words), shlex.join(words)


def test_every_load_fits_the_smallest_drive() -> None:
    assert max(cell.region for cell in ALL_CELLS) <= 512 << 20
    for cell in ALL_CELLS:
        assert cell.ios * cell.block <= cell.region
        assert cell.region % (16 << 20) == 0
