# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: what it offers is what the drive has, and errors say what to do."""

import re
from pathlib import Path

import pytest
from simulator import SMALL, Simulator

from rsd.bench import steady, write_amp
from rsd.compare.aged import sim_arguments

ROOT = Path(__file__).resolve().parents[2]


def test_help(sim: Simulator) -> None:
    done = sim.run("--help")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    source = (ROOT / "host/tools/rsdsim/options.c").read_text()
    options = re.findall(r'^\t\{ "([\w-]+)",', source, re.MULTILINE)
    assert len(options) > 20
    for option in options:
        assert f"\n  --{option}" in text
    document = (ROOT / "host/tools/rsdsim/README.md").read_text()
    for option in options:
        assert f"`--{option}" in document


def test_list_has_every_property(sim: Simulator) -> None:
    text = sim.run("--list").stdout.decode()
    source = (ROOT / "hw/rsd-nvme/core/api/rsd-props.h").read_text()
    table = source[source.index("#define RSD_PROPS(") :]
    properties = re.findall(r'RSD_(?:NUM|SIZE|ENUM)\(\w+, "([\w-]+)"', table)
    assert len(properties) > 20
    for name in properties:
        assert re.search(rf"^{name} ", text, re.MULTILINE), name
    for preset in ("custom", "redo", "risa", "zn540"):
        assert re.search(rf"^{preset} ", text, re.MULTILINE)


def test_settings_reach_the_drive(sim: Simulator) -> None:
    settings = sim.json(
        *("--preset=redo", "--set", "reset=erase", "--set", "zd-ext=1K", "--requests", "0")
    )["settings"]
    assert settings["channels"] == 2
    assert settings["blocks"] == 256
    assert settings["reset"] == "erase"
    assert settings["zd-ext"] == 1024


@pytest.mark.parametrize(
    ("text", "ns"),
    [("60000", 60_000), ("60000ns", 60_000), ("25us", 25_000), ("1.5ms", 1_500_000), ("1s", 10**9)],
)
def test_times_have_units(sim: Simulator, text: str, ns: int) -> None:
    settings = sim.json("--set", f"t-read={text}", "--requests", "0")["settings"]
    assert settings["t-read"] == ns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "fly: expected an option"),
        (["--fly"], "--fly: there is no such option"),
        (["--json=1"], "--json: it takes no value"),
        (["--size"], "--size: BYTES is missing"),
        (["--size", "4097"], "--size 4097: allowed is a multiple of 4096 bytes"),
        (["--size", "0"], "--size 0: allowed is a number from 4096 to"),
        (["--size", "2G"], "--size 2G: allowed is"),
        (["--depth", "0"], "--depth 0: allowed is a number from 1 to 1000000"),
        (["--requests", "-1"], "--requests -1: allowed is a number from 0"),
        (["--requests", "1x"], "with or without K, M, G or T (powers of 1024)"),
        (["--depth", "1k"], "--depth 1k: allowed is a number from 1 to 1000000;"),
        (["--set", "write-buffer=1x"], "with or without K, M, G or T (powers of 1024)"),
        (["--requests", "99999999999999999999"], "allowed is a number from 0"),
        (["--requests", "18446744073709551615K"], "allowed is a number from 0"),
        (["--reads", "101"], "--reads 101: allowed is 0 to 100 percent"),
        (["--reads", "nan"], "--reads nan: allowed is 0 to 100 percent"),
        (["--reads", "60", "--trims", "41"], "together they are above 100 percent"),
        (["--rate", "0"], "--rate 0: allowed is above 0"),
        (["--pattern", "zipf"], "--pattern zipf: allowed is sequential, uniform"),
        (["--pattern", "zipf=21"], "--pattern zipf=21: allowed is"),
        (["--pattern", "zipf=1x"], "--pattern zipf=1x: allowed is"),
        (["--pattern", "hotcold=90"], "--pattern hotcold=90: allowed is"),
        (["--pattern", "hotcold=90/101"], "--pattern hotcold=90/101: allowed is"),
        (["--precondition", "often"], "--precondition often: allowed is none, fill, steady"),
        (["--preset", "x"], "--preset x: allowed is custom, redo, risa"),
        (["--set", "ways=2", "--preset", "redo"], "--preset redo: it comes after --set"),
        (["--set", "ways"], "expected PROPERTY=VALUE"),
        (["--set", "wings=2"], "there is no such property"),
        (["--set", "ways=two"], "--set ways=two: expected a whole number"),
        (["--set", "ways=2us"], "--set ways=2us: expected a whole number"),
        (["--set", "t-read=2m"], "--set t-read=2m: expected a number of ns, or one with a unit"),
        (["--set", "t-read=1.5"], "--set t-read=1.5: expected a number of ns"),
        (["--set", "t-read=1.2345us"], "--set t-read=1.2345us: expected a number of ns"),
        (["--set", "t-read=99999999999s"], "--set t-read=99999999999s: expected a number of ns"),
        (["--fill", "0"], "--fill 0: allowed is above 0 to 100 percent"),
        (["--fill", "101"], "--fill 101: allowed is above 0 to 100 percent"),
        (["--set", "queue=fast"], "--set queue=fast: allowed is way, global"),
        (["--format", "csv"], "--format csv: allowed is native, iolog"),
        (["--format", "msr"], "name one by --trace"),
        (["--trace", "x", "--reads", "1"], "of generated work; leave them out"),
        (["--trace", "-"], "a native trace cannot come from a pipe"),
        (["--depth", "1", "--rate", "1"], "choose one of them"),
        (["--age", "x", "--media", "y"], "choose one of them"),
        (["--replay", "x", "--depth", "1"], "on the drive of the trace"),
        (["--replay", "x", "--set", "ways=2"], "on the drive of the trace"),
        (["--check"], "nothing to compare with without --replay"),
        (["--namespace", "2"], "--namespace 2: allowed is a number from 0 to 1"),
        (["--namespace", "1"], "the drive has only 0"),
    ],
)
def test_wrong_usage(sim: Simulator, arguments: list[str], message: str) -> None:
    assert message in sim.fails(*arguments, status=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "ways=65"], "ways=65: allowed is 1 to 64"),
        (["--trims", "1"], "--trims: zones have no trim"),
        (["--set", "ftl=page", "--append"], "--append: the namespace has no zones"),
        (["--media", "nowhere"], "nowhere: cannot open it"),
        (["--output", "/no/where"], "--output /no/where: No such file"),
        (
            [*SMALL, "--requests", "0", "--output", "/dev/full"],
            "/dev/full: No space left on device",
        ),
        (["--replay", "nowhere"], "nowhere: cannot open it"),
    ],
)
def test_failures(sim: Simulator, arguments: list[str], message: str) -> None:
    assert message in sim.fails(*arguments)


def test_output(sim: Simulator, tmp_path: Path) -> None:
    printed = sim.run(*SMALL, "--json")
    done = sim.run(*SMALL, "--json", "--output", "file")
    assert done.stdout == b""
    assert (tmp_path / "file").read_bytes() == printed.stdout


def test_progress_without_a_terminal_is_a_line_by_the_clock(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each stage; standard output does not change."""
    work = ("--set", "ftl=page", "--precondition", "0.01", "--requests", "5000", "--json")
    monkeypatch.setenv("RSD_HEARTBEAT_S", "1000")
    quiet = sim.run(*work)
    assert quiet.stderr == b""
    monkeypatch.setenv("RSD_HEARTBEAT_S", "0.001")
    told = sim.run(*work)
    assert told.stdout == quiet.stdout
    lines = told.stderr.decode().splitlines()
    for stage in ("filling", "overwriting", "running"):
        found = [line for line in lines if line.startswith(f"rsdsim: {stage} ")]
        assert found, stage
        assert all(re.fullmatch(r".* \d+% \d+, \d+ a second, \d+ s left", line) for line in found)


def test_the_benchs_settings_are_accepted(sim: Simulator) -> None:
    for case in write_amp.CASES:
        done = sim.run(*case.arguments, "--precondition", "none", "--requests", "1")
        assert done.returncode == 0, done.stderr.decode()


def test_the_settings_that_are_to_become_steady_are_accepted(sim: Simulator) -> None:
    for arguments in steady.settings(steady.SETTINGS):
        done = sim.run(*arguments, "--requests", "1")
        assert done.returncode == 0, (arguments, done.stderr)


def test_steady_is_judged() -> None:
    """Of four that are called steady, one is off by more than 5%; what is not called so may be."""
    figures = [(True, 2.0, 2.03), (True, 1, 1), (True, 2.0, 2.2), (True, 3, 3), (False, 1, 2)]
    trials = [steady.Trial((), called, False, 12, *off) for called, *off in figures]
    # nor does one count that says that levelling is still to come
    trials.append(steady.Trial((), True, True, 12, 1, 2))
    good = [*trials[:2], *trials[3:]]
    called, ahead, near, far, *unlevelled = steady.rows(trials, good)
    assert (called.value, near.value, far.value) == (4, 0.75, 1)
    assert ahead.value == 1
    assert (near.passed, far.passed) == (False, False)
    assert [row.value for row in unlevelled] == [3, 1, 0]
    assert [row.passed for row in unlevelled] == [None, True, True]
    *_, called, near, far = steady.rows(good, trials)
    assert (near.passed, far.passed) == (False, False)


@pytest.mark.parametrize("system", ["page-ftl", "block-ftl", "fast-ftl", "dftl"])
def test_the_options_that_age_a_drive_are_accepted(sim: Simulator, system: str) -> None:
    done = sim.run(*sim_arguments(system), "--precondition", "none", "--requests", "1")
    assert done.returncode == 0, done.stderr.decode()
