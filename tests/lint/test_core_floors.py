# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive's core is a house with floors: a file calls those of its floor or below, never above.

Who calls whom is read from the object files, as in test_floors.py. What has to go up goes through
tables of functions that are handed over when the drive is made: RsdJournal of the media, ArrayUp,
BufferUp, and Personality, what a translation layer is. drive.c, on top, hands them over.
"""

import re
from pathlib import Path

import pytest
from calls import Calls, calls_between, circles

from programs import core_programs
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache

CORE = REPOSITORY / "hw/rsd-nvme/core"

# The lowest first; each is a folder. Translation layers are beside each other.
FLOORS = ("api", "media", "array", "buffer", "ftl", "ftl/*", "power", "front", ".")
SOURCES = sorted(CORE.rglob("*.c"))


def folder(path: Path) -> str:
    return path.parent.relative_to(CORE).as_posix()


def height(name: str) -> int:
    return FLOORS.index("ftl/*" if name.startswith("ftl/") else name)


def may_use(name: str, other: str) -> bool:
    """May a file of that folder call one of the other?"""
    return name == other or height(other) < height(name)


@pytest.fixture(scope="module")
def core_calls(rsd_cache: Cache) -> Calls:
    build = core_programs(rsd_cache)
    names = [path.stem for path in SOURCES]
    assert len(set(names)) == len(names), "two files of the core have one name"
    return calls_between({name: build / f"core-{name}.o" for name in names})


def test_each_folder_is_a_floor() -> None:
    assert {folder(path) for path in CORE.rglob("*.[ch]")} == {
        *(floor for floor in FLOORS if floor != "ftl/*"),
        *(folder(path) for path in CORE.glob("ftl/*/*.c")),
    }


def test_a_floor_has_one_header() -> None:
    """But the interface (api), which has one for each kind of reader."""
    for place in sorted({path.parent for path in SOURCES} - {CORE, CORE / "api"}):
        headers = [path.name for path in place.glob("*.h")]
        assert len(headers) == 1, f"{place.relative_to(CORE)} has {', '.join(headers)}"


def test_floors_call_downwards(core_calls: Calls) -> None:
    assert sum(map(len, core_calls.values())) > 60, "the calls were not found"
    where = {path.stem: folder(path) for path in SOURCES}
    upwards = [
        f"{where[name]}/{name}.c calls {', '.join(sorted(symbols))} of {where[other]}/{other}.c"
        for name, others in core_calls.items()
        for other, symbols in others.items()
        if not may_use(where[name], where[other])
    ]
    assert not upwards, "\n".join(upwards)


def test_no_files_call_each_other_in_a_circle(core_calls: Calls) -> None:
    round_and_round = circles(core_calls)
    assert not round_and_round, ", ".join(round_and_round)


@pytest.mark.parametrize("top", ["ftl/page/page-ftl.c", "ftl/zone/segment.c"])
def test_a_layers_files_call_downwards(core_calls: Calls, top: str) -> None:
    """In the order in which the layer's uppermost file lists them."""
    comment = (CORE / top).read_text().partition("*/")[0]
    order = re.findall(r"^ \*   (\S+)\.c  ", comment, re.M)
    assert set(order) == {path.stem for path in (CORE / top).parent.glob("*.c")}
    upwards = [
        f"{name}.c calls {', '.join(sorted(symbols))} of {other}.c"
        for name in order
        for other, symbols in core_calls[name].items()
        if other in order[: order.index(name)]
    ]
    assert not upwards, "\n".join(upwards)


def test_floors_include_downwards() -> None:
    for path in sorted(CORE.rglob("*.[ch]")):
        for header in re.findall(r'^#include "(.*)"', path.read_text(), re.M):
            place = folder((path.parent / header).resolve())
            assert may_use(folder(path), place), f"{path.relative_to(CORE)} includes {header}"
