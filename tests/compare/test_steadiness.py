# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of aged drives and volumes, and that it is by rsdsim's criterion."""

import ctypes
import json
import random
import subprocess
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.compare.steadiness import PAGE, RANGE, SLOPE, Verdict, look, of_drive, of_volume, read

SIM = REPOSITORY / "host" / "tools" / "rsdsim"
FLASH = 1000 * PAGE
ASK = """
#include "steady.h"
int ask(double *values, unsigned n, unsigned first, double *range, double *slope)
{
	struct steady s = { .amplification = values, .rounds = n, .first = first, .range = -1 };
	int steady = steady_look(&s);
	*range = s.range;
	*slope = s.slope;
	return steady;
}
"""


def test_the_criterion_is_that_of_rsdsim(tmp_path: Path) -> None:
    """Random rounds, about half of them steady: the same range, slope and verdict."""
    (tmp_path / "ask.c").write_text(ASK)
    library = tmp_path / "ask.so"
    command = ["cc", "-shared", "-fPIC", "-O2", f"-I{SIM}", "-o", library, tmp_path / "ask.c"]
    subprocess.run([*command, SIM / "steady.c"], check=True)
    ask = ctypes.CDLL(str(library)).ask
    rng = random.Random(1)
    said = {True: 0, False: 0}
    for _ in range(400):
        count, first = rng.randrange(0, 60), rng.randrange(0, 20)
        spread = rng.choice((0.002, 0.01, 0.05))
        values = [rng.uniform(3 - spread, 3 + spread) + 1e-4 * n for n in range(count)]
        found = look(values, first)
        spaces = ctypes.c_double(), ctypes.c_double()
        array = (ctypes.c_double * max(count, 1))(*values)
        steady = bool(ask(array, count, first, *map(ctypes.byref, spaces)))
        assert (found is None) == (spaces[0].value == -1)
        if found:
            assert found == pytest.approx(tuple(space.value for space in spaces))
        assert steady == bool(found and found[0] <= RANGE and abs(found[1]) <= SLOPE)
        said[steady] += 1
    assert min(said.values()) > 100


def volume(tmp_path: Path, amplification: list[float]) -> Verdict:
    """Rounds of a tenth of the flash, the first from 60% of it on."""
    written, programs = FLASH * 6 // 10, 600
    for value in (None, *amplification):
        if value is not None:
            written += FLASH // 10
            programs += round(100 * value)
        reading = {"counters": {"nand_programs": {"value": programs}}}
        (tmp_path / str(written)).write_text(json.dumps(reading))
    return of_volume(tmp_path, FLASH)


def test_a_volume_is_steady(tmp_path: Path) -> None:
    found = volume(tmp_path, [1.0] * 4 + [2.0] * 12)
    assert found == Verdict(True, 2.2, 0.0, 0.0)
    assert str(found) == "steady after 2.2 capacities, range 0.0%, slope +0.0%"


def test_a_volume_is_not_steady(tmp_path: Path) -> None:
    found = volume(tmp_path, [2 + 0.02 * n for n in range(16)])
    assert str(found) == "not steady after 2.2 capacities, range 7.2%, slope +7.2%"


def test_unused_flash_is_used_first(tmp_path: Path) -> None:
    """The first four rounds, which are alike, leave some of it: too few come after them."""
    assert volume(tmp_path, [1.0] * 12).range is None
    found = volume(tmp_path, [1.0] * 12)
    assert str(found) == "not steady after 1.8 capacities: too few rounds to look at"


def test_a_drive_is_what_rsdsim_says(tmp_path: Path) -> None:
    path = tmp_path / "aging.json"
    facts = {"steady": True, "capacities": 11, "range": 0.0022, "slope": -0.0017}
    path.write_text(json.dumps({"precondition": {**facts, "levelling": "ahead"}}))
    said = "steady after 11 capacities, range 0.2%, slope -0.2%, but for static wear levelling"
    assert str(of_drive(path)) == said


def test_it_is_kept(tmp_path: Path) -> None:
    verdict = Verdict(False, 2.0, None, None)
    assert read(tmp_path / "aged.json") is None
    (tmp_path / "aged.json").write_text(json.dumps(verdict.to_json()))
    assert read(tmp_path / "aged.json") == verdict
