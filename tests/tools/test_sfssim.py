# SPDX-License-Identifier: GPL-2.0-or-later
"""sfssim: what it prints is right in cases that can be known."""

import json
import subprocess
from array import array
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL = ("segments=256", "blocks=128", "age=2", "writes=1")
OLTP = ("work=oltp", "blocks=512")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulator, built."""
    directory = tmp_path_factory.mktemp("sfssim")
    subprocess.run(
        ["make", "-C", REPOSITORY / "host/tools/sfssim", f"BUILD={directory}"],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return directory / "sfssim"


def run(program: Path, *options: str) -> Any:
    """Its result."""
    done = subprocess.run(
        [program, *SMALL, *options], capture_output=True, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


def test_same_bytes(program: Path) -> None:
    texts = {subprocess.check_output([program, *SMALL, *OLTP]) for _ in range(2)}
    assert len(texts) == 1
    assert run(program, "seed=2")["copies"] != run(program, "seed=1")["copies"]


def test_figures_agree(program: Path) -> None:
    found = run(program)
    assert found["copies_a_write"] == pytest.approx(found["copies"] / found["writes"], abs=1e-4)
    # SFS 4.1 with table 1: new data at 87 MB/s, copies read at 10.6 and written at 87
    cost = 1 + found["copies_a_write"] * (87 / 10.6 + 1)
    assert found["write_cost"] == pytest.approx(cost, rel=1e-3)
    assert sum(found["histogram"]) == pytest.approx(1, abs=1e-3)
    assert sum(found["in_group"]) == found["copies"] + found["writes"]
    # each victim gives what is not live in it; some segments empty by themselves
    u = found["victim_utilization"]
    assert 0.5 * u / (1 - u) < found["copies_a_write"] < 1.01 * u / (1 - u)


def test_uniform_greedy_is_as_the_formula_says(program: Path) -> None:
    """All is rewritten uniformly: the utilization of victims, a(1 - u) = -ln u."""
    found = run(program, "work=uniform", "set=79", "fill=80", "gc=greedy", "groups=1", "cache=0")
    # 80% is live of the 95% that cleaning leaves in use
    u = found["victim_utilization"]
    assert 0.65 < u < 0.75


def test_trace(program: Path, tmp_path: Path) -> None:
    """What is written does not depend on what cleaning does with it."""
    traces = []
    for groups in (1, 4):
        path = tmp_path / f"{groups}"
        found = run(program, f"groups={groups}", f"trace={path}")
        traces.append(array("I", path.read_bytes()))
        assert len(traces[-1]) == found["aged"] + found["writes"]
    blocks = found["file_blocks"][1]
    assert traces[0] == traces[1]
    assert 0.8 * blocks < max(traces[0]) < blocks
    # no block twice in what the page cache holds
    cache = 256 * 128 * 5 // 1000
    assert len(set(traces[0][:cache])) == cache


def test_groups_help_with_skew_only(program: Path) -> None:
    skewed, uniform = (
        [run(program, f"work={work}", f"groups={n}")["copies"] for n in (1, 4)]
        for work in ("zipf", "uniform")
    )
    assert skewed[1] < 0.85 * skewed[0]
    assert uniform[1] > 0.9 * uniform[0]


def test_policies_differ(program: Path) -> None:
    copies = [
        run(program, *options)["copies"]
        for options in (
            (),
            ("gc=cost-benefit",),
            ("gc=greedy",),
            ("quantize=equi-width",),
            ("quantize=equi-height",),
            ("quantize=logarithmic",),
        )
    ]
    assert len(set(copies)) == len(copies)


@pytest.mark.parametrize(
    "word",
    ["groups=7", "gc=best", "fill=x", "nonsense", "work=tpcc", "set=90", "theta=-1", "trace=/"],
)
def test_refuses(program: Path, word: str) -> None:
    done = subprocess.run([program, word], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert done.stderr.startswith("sfssim: ")
