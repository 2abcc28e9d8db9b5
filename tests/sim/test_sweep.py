# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd sweep`: which cells, which are run, what comes out."""

import argparse
import contextlib
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsd import cli, sim, sweep
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.progress import Progress
from rsd.sim import Simulator
from rsd.sweep import grid

SWEEP = """
[options]
requests = 500
set = { channels = 2, ways = 2, blocks = 16, pages = 8, idle-erase = 0 }

[axes]
pattern = ["uniform", "sequential"]
"set.t-prog" = [100000, 200000]
"""


@pytest.fixture
def simulator(program: Path, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """The program with sanitizers in place of the cache's."""
    found = Simulator(program, "sources")
    monkeypatch.setattr(sim, "ensure", lambda cache, progress: found)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser(epilog="")
    sweep.add_arguments(parser)
    return sweep.main(parser.parse_args([str(argument) for argument in arguments]))


def rows(store: Path) -> list[dict[str, str]]:
    with (store / "results.csv").open() as stream:
        return list(csv.DictReader(stream))


def stamps(store: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (store / "cells").iterdir()}


def test_cells(file: Path) -> None:
    cells = grid.read(file, "sources")
    assert [tuple(cell.axes.values()) for cell in cells] == [
        ("uniform", 100000),
        ("uniform", 200000),
        ("sequential", 100000),
        ("sequential", 200000),
    ]
    assert cells[0].arguments == (
        *("--pattern", "uniform", "--requests", "500", "--set", "blocks=16"),
        *("--set", "channels=2", "--set", "idle-erase=0", "--set", "pages=8"),
        *("--set", "t-prog=100000", "--set", "ways=2"),
    )
    assert len({cell.key for cell in cells}) == 4
    assert {cell.key for cell in grid.read(file, "others")}.isdisjoint(c.key for c in cells)


def test_json_is_the_same(file: Path, tmp_path: Path) -> None:
    options = {"channels": 2, "ways": 2, "blocks": 16, "pages": 8, "idle-erase": 0}
    other = tmp_path / "sweep.json"
    content = {
        "options": {"requests": 500, "set": options},
        "axes": {"pattern": ["uniform", "sequential"], "set.t-prog": [100000, 200000]},
    }
    other.write_text(json.dumps(content))
    assert grid.read(other, "sources") == grid.read(file, "sources")


def test_run_and_go_on(
    simulator: Simulator, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert run(file, "--store", store) == 0
    text = capsys.readouterr().out
    assert "sequential" in text
    assert (store / "results.txt").read_text() == text
    found = rows(store)
    assert [row["pattern"] for row in found] == ["uniform", "uniform", "sequential", "sequential"]
    for row in found:
        alone = subprocess.run(
            [simulator.path, *cell_arguments(file, row["key"]), "--json"],
            capture_output=True,
            check=True,
        )
        results = json.loads(alone.stdout)["results"]
        assert float(row["iops"]) == results["iops"]
        assert int(row["operations.write.requests"]) == results["operations"]["write"]["requests"]
        assert int(row["counters.prog_host"]) == results["counters"]["prog_host"]["after"]
    assert float(found[0]["iops"]) > float(found[1]["iops"])

    # nothing is run again; what is missing, or was torn, is
    before = stamps(store)
    assert run(file, "--store", store) == 0
    assert stamps(store) == before
    first, second = sorted(before)[:2]
    (store / "cells" / first).unlink()
    (store / "cells" / second).write_text('{"results": ')
    assert run(file, "--store", store) == 0
    after = stamps(store)
    assert {name for name in before if before[name] != after[name]} == {first, second}
    assert rows(store) == found


def cell_arguments(file: Path, key: str) -> tuple[str, ...]:
    return next(cell.arguments for cell in grid.read(file, "sources") if cell.key == key)


def test_a_cell_that_fails(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = tmp_path / "sweep.toml", tmp_path / "store"
    file.write_text(SWEEP.replace("[100000, 200000]", "[100000, -1]"))
    assert run(file, "--store", store) == 1
    captured = capsys.readouterr()
    assert captured.err.count("FAILED: ./rsd sim") == 2
    assert "--set t-prog=-1: expected a number of ns" in captured.err
    assert len(rows(store)) == 2
    assert not list(store.rglob("*.partial"))


def command_lines() -> Iterator[bytes]:
    """Of all processes that there are."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


DRIVER = """
import sys
from pathlib import Path
from rsd import cli, sim
sim.ensure = lambda cache, progress: sim.Simulator(Path(sys.argv[1]), "sources")
sys.exit(cli.main(sys.argv[2:]))
"""


def test_an_ended_sweep_leaves_whole_cells(program: Path, tmp_path: Path) -> None:
    """Nothing runs on, nothing is half there, and the next start goes on."""
    file, store = tmp_path / "sweep.toml", tmp_path / "store"
    text = SWEEP.replace("requests = 500", "") + 'requests = [500, 600, "1000G"]\n'
    file.write_text(text)
    arguments = ["sweep", str(file), "--store", str(store), "--jobs", "1"]
    command = [sys.executable, "-c", DRIVER, str(program), *arguments]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "host/tools")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 600
        while len(list(store.glob("cells/*.json"))) < 2:  # the third has no end
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        assert process.wait(600) == cli.INTERRUPTED
    assert not [line for line in command_lines() if str(store).encode() in line]
    done = stamps(store)
    assert not [name for name in done if "partial" in name]
    whole = {name: stamp for name, stamp in done.items() if name.endswith(".json")}
    assert len(whole) == 2
    file.write_text(text.replace('"1000G"', "700"))
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    after = stamps(store)
    assert whole.items() <= after.items()
    assert len(rows(store)) == 12


def test_input_files_are_part_of_a_cell(tmp_path: Path) -> None:
    file, trace = tmp_path / "sweep.toml", tmp_path / "t.csv"
    file.write_text('[options]\ntrace = "t.csv"\nformat = "msr"\n[axes]\ndepth = [1, 2]\n')
    trace.write_text("1,a,0,Read,0,1,1\n")
    first = grid.read(file, "sources")
    assert str(trace) in first[0].arguments
    trace.write_text("2,a,0,Read,0,1,1\n")
    assert {c.key for c in first}.isdisjoint(c.key for c in grid.read(file, "sources"))
    trace.unlink()
    with pytest.raises(RsdError, match="t.csv: No such file"):
        grid.read(file, "sources")


@pytest.mark.parametrize("option", ["--store", "--snakemake"])
def test_where_nothing_can_be_made_is_named(simulator: Simulator, file: Path, option: str) -> None:
    with pytest.raises(RsdError, match=f"{option} /proc/no: No such file"):
        run(file, option, "/proc/no")


def test_list_runs_nothing(
    simulator: Simulator, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [c.key for c in grid.read(file, "sources")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[options", "not TOML"),
        ("[opions]\n", "there is no part 'opions'"),
        ("options = 1\n", "options is 1"),
        ("[axes]\ndepth = 1\n", "axes.depth is 1, expected a list"),
        ("[axes]\ndepth = []\n", "expected a list"),
        ("[axes]\ndepth = [[1]]\n", "depth is \\[1\\]"),
        ("[axes]\ndepth = [1, 1]\n", "the same value twice"),
        ("[options]\ndepth = 1\n[axes]\ndepth = [1]\n", "depth is in both"),
        ("[options]\njson = true\n", "options.json is set by the sweep"),
        ('[options]\nage = "x"\n', "options.age would be shared"),
        (f"[axes]\na = {list(range(2000))}\nb = {list(range(2000))}\n", "4000000 cells"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(RsdError, match=message):
        grid.read(file, "sources")
    with pytest.raises(RsdError, match="No such file"):
        grid.read(tmp_path / "none.toml", "sources")


def test_sim_takes_its_own_options(
    simulator: Simulator, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["sim", "--help"]) == 0
    assert "usage: rsdsim" in capfd.readouterr().out
    assert cli.main(["sim", "--fly"]) == 2
    assert "there is no such option" in capfd.readouterr().err


def test_plot(simulator: Simulator, file: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert run(file, "--store", store, "--plot", "iops") == 0
    picture = (store / "results.svg").read_text()
    for text in ("pattern=uniform", "pattern=sequential", ">t-prog<", ">iops<"):
        assert text in picture
    assert run(file, "--store", store, "--plot", "iops") == 0
    assert (store / "results.svg").read_text() == picture
    with pytest.raises(RsdError, match="--plot nosuch: not every cell has a number of this name"):
        run(file, "--store", store, "--plot", "nosuch")


def test_documents_do_not_make_finished_cells_useless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tool", "core"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "main.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(sim, "REPOSITORY", tmp_path)
    monkeypatch.setattr(sim, "run_logged", lambda *_, **__: None)
    cache = Cache(tmp_path / "cache")

    def identity() -> str:
        return sim.ensure_program(cache, Progress(), "tool", ("tool", "core")).identity

    before = identity()
    (tmp_path / "tool/README.md").write_text("What it does.\n")
    assert identity() == before
    (tmp_path / "core/main.c").write_text("int main(void) { return 1; }\n")
    assert identity() != before
