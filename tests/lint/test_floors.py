# SPDX-License-Identifier: GPL-2.0-or-later
"""The core of RFS is a house with floors: a file calls those of floors below it, never one above.

Who calls whom is read from the object files: a symbol that one needs and another one has. What has
to go up goes through a table of callbacks (struct rfs_upcalls), which is data and not in there.
"""

import re

import pytest
from calls import Calls, calls_between, circles

from programs import fs_programs
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache

CORE = REPOSITORY / "host/fs/core"

# The lowest first; each is a folder of host/fs/core.
FLOORS = (
    "plat",
    "format",
    "policy",
    "volume",
    "buffer",
    "space",
    "home",
    "tree",
    "log",
    "checkpoint",
    "clean",
    "ops",
    "tools",
)


# The module's headers, the lowest first, and the files whose floor each is.
MODULE = {
    "memory": "",
    "lock": "",
    "dev": "",
    "rfsm": "mem trace",
    "error": "error fetch",
    "flush": "flush bdev",
    "slow": "slow",
    "wake": "wake",
    "checkpoint": "checkpoint",
    "update": "",
    "blocks": "blocks split",
    "reserve": "reserve",
    "append": "append compact",
    "bypass": "fill bypass",
    "read": "read direct",
    "pages": "pages atomic",
    "inode": "node attr session setattr export shift file namei",
    "super": "quota reclaim stats fs",
}


@pytest.fixture(scope="module")
def core_calls(rsd_cache: Cache) -> Calls:
    build = fs_programs(rsd_cache)
    sources = sorted(CORE.glob("*/*.c"))
    names = [path.stem for path in sources]
    assert len(set(names)) == len(names), "two files of the core have one name"
    return calls_between({name: build / f"fast-{name}.o" for name in names})


def test_each_folder_is_a_floor() -> None:
    assert {path.name for path in CORE.iterdir() if path.is_dir()} == set(FLOORS)


def test_floors_call_downwards(core_calls: Calls) -> None:
    height = {path.stem: FLOORS.index(path.parent.name) for path in CORE.glob("*/*.c")}
    upwards = [
        f"{FLOORS[height[name]]}/{name}.c calls {', '.join(sorted(symbols))} of"
        f" {FLOORS[height[other]]}/{other}.c, which is higher"
        for name, others in core_calls.items()
        for other, symbols in others.items()
        if height[other] > height[name]
    ]
    assert not upwards, "\n".join(upwards)


def test_no_files_call_each_other_in_a_circle(core_calls: Calls) -> None:
    assert sum(map(len, core_calls.values())) > 100, "the calls were not found"
    round_and_round = circles(core_calls)
    assert not round_and_round, f"{len(round_and_round)} files: {', '.join(round_and_round)}"


def test_floors_include_downwards() -> None:
    """A header is not included by a floor below its own."""
    for path in sorted(CORE.glob("*/*.[ch]")):
        height = FLOORS.index(path.parent.name)
        for folder in re.findall(r'^#include "(\w+)/', path.read_text(), re.M):
            assert FLOORS.index(folder) <= height, f"{path.relative_to(CORE)} includes {folder}/"


def test_module_includes_downwards() -> None:
    """Each file of the module has a floor, and includes no header of a higher one."""
    floors = list(MODULE)
    of = {f"{name}.c": floor for floor, names in MODULE.items() for name in names.split()}
    module = CORE.parent
    assert {path.name for path in module.glob("*.c")} == set(of)
    headers = {f"{floor}.h" for floor in floors}
    assert {path.name for path in module.glob("*.h")} == headers | {"trace.h"}
    for path in sorted(module.glob("*.[ch]")):
        height = floors.index(of.get(path.name, path.stem)) if path.name != "trace.h" else 0
        for name in re.findall(r'^#include "(\w+)\.h"', path.read_text(), re.M):
            if f"{name}.h" in headers:
                assert floors.index(name) <= height, f"{path.name} includes {name}.h"
