# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmarks that a file describes: what is refused, what their figures are, what keeps them."""

from pathlib import Path

import pytest

from rsd.artifacts import Artifacts
from rsd.compare import own, selection
from rsd.compare.cells import Level
from rsd.compare.figures import BadOutput
from rsd.compare.stack_figures import _described
from rsd.compare.stack_run import cell_key, stack_plans
from rsd.errors import RsdError

GOOD = """
name = "own-copies"
title = "copies"
run = "true"
work = 50
unit = "copies"
inputs = "work"
[[figures]]
metric = "latency.mean"
unit = "us"
pattern = 'took ([\\\\d.]+) us'
"""


def write(directory: Path, text: str) -> Path:
    (directory / "work").mkdir(exist_ok=True)
    (directory / "own.toml").write_text(text.replace("\\\\", "\\"))
    return directory / "own.toml"


def test_a_file_is_a_benchmark(tmp_path: Path) -> None:
    benchmark = own.read(write(tmp_path, GOOD))
    assert (benchmark.name, benchmark.work, benchmark.scale.name) == ("own-copies", 50, "small")
    assert benchmark.inputs == tmp_path / "work"
    (tmp_path / "report").write_text("warming up took 9 us\neach took 12.5 us\n")
    (figure,) = _described(benchmark, tmp_path)
    assert (figure.metric, figure.value, figure.unit) == ("latency.mean", 12.5, "us")
    for content, why in (
        ("one\nthe end\n\n", r"pattern of latency.mean, took .*; raw/ .* ends so: the end$"),
        ("", r"ends so: \(it is empty\)$"),
        ("each took ... us\n", r"finds '...', which is no number$"),
    ):
        (tmp_path / "report").write_text(content)
        with pytest.raises(BadOutput, match=why):
            list(_described(benchmark, tmp_path))
    (tmp_path / "report").unlink()
    with pytest.raises(BadOutput, match=r"report, for latency.mean: .*No such file"):
        list(_described(benchmark, tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "own-copies"\n', "", "name is missing"),
        ("own-copies", "Own copies", "must be of a-z, 0-9"),
        ("own-copies", "small-postmark", "compare has a benchmark 'small-postmark'"),
        ("work = 50", 'work = "50"', "work is '50', must be of type int or float"),
        ("work = 50", "work = 0", "work is 0, must be above 0"),
        ("work = 50", "work = true", "work is True, must be of type"),
        ('inputs = "work"', 'inputs = "nowhere"', "nowhere is not a directory"),
        ('inputs = "work"', 'colour = "blue"', "there is no field 'colour': there is name"),
        ('inputs = "work"', 'scale = "huge"', "must be one of small, redo, risa"),
        ("took (", "took ((", "pattern"),
        ("took ([\\\\d.]+)", "took", "it has 0 groups, not 1"),
        ('unit = "us"', "", "a figure's unit is missing"),
        ("name =", "name", "own.toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RsdError, match=message.replace("(", r"\(")) as error:
        own.read(write(tmp_path, GOOD.replace(old, new)))
    assert "own.toml" in str(error.value)


def test_it_is_measured_alone_or_with_others(tmp_path: Path) -> None:
    benchmark = own.read(write(tmp_path, GOOD))
    alone = selection.select(Level.QUICK, [], [], [benchmark])
    assert {one.name for _, one in alone.benchmarks} == {"own-copies"} and not alone.drives
    assert [name for name, _ in alone.benchmarks] == ["ext4-page", "f2fs-rsd", "rfs+rsd"]
    both = selection.select(Level.DEFAULT, ["rfs+rsd"], ["small-postmark"], [benchmark])
    assert [one.name for _, one in both.benchmarks] == ["small-postmark", "own-copies"]


def test_other_inputs_are_another_run(tmp_path: Path) -> None:
    built = Artifacts(*[tmp_path] * 6, (), {"qemu": "12ab"})  # type: ignore[arg-type]
    (tmp_path / "work").mkdir()

    def key() -> str:
        benchmark = own.read(write(tmp_path, GOOD))
        (plan, *_) = stack_plans([("rfs+rsd", benchmark)], tmp_path, keep=True)
        return cell_key(plan, built)

    first = key()
    assert key() == first
    (tmp_path / "work" / "program").write_text("#!/bin/sh\n")
    assert key() != first
