# SPDX-License-Identifier: GPL-2.0-or-later
"""Random scripts on the core and on the reference model: all that is seen must be equal.

The time of each completion to the nanosecond, the content of each page and its OOB, every
counter, write pointers, statuses. Configurations come from a table that has every pair of option
values. Each script is made from a seed: 0 to 799 for zones, 0 to 199 for page maps without a write
buffer, and as many for those that have one, the same ones on every machine. To look further,
RSD_MODEL_SEED is the first seed and RSD_MODEL_SCRIPTS how many (a multiple of 100, and a fourth as
many of each kind of page map; 20 a second):

    RSD_MODEL_SEED=1000 RSD_MODEL_SCRIPTS=10000 ./rsd test tests/model/test_model.py
"""

import itertools
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from page_reference import PageDrive
from page_script import BUFFER_OPTIONS, PAGE_OPTIONS, make_page_script
from script import (
    Config,
    difference,
    good_blocks,
    make_script,
    minimise,
    pairwise_rows,
    parse_open,
    parse_outcomes,
    run_model,
)

HERE = Path(__file__).resolve().parent
FIRST_SEED = int(os.environ.get("RSD_MODEL_SEED", "0"))
SCRIPTS = int(os.environ.get("RSD_MODEL_SCRIPTS", "800"))
PAGE_SCRIPTS = SCRIPTS // 4
BATCH = 25  # scripts a process of the core runs: starting it costs more than a script
# What the scripts must have made the drive do, or they do not test it.
MUST_COUNT = set(
    "host_read_cmds host_write_cmds flush_cmds zone_resets zone_finishes formats read_host "
    "read_wear prog_host prog_wear prog_pad erase_host erase_wear erase_on_demand erase_idle "
    "unwritten_reads queue_wait_ns blocks_bad blocks_dirty spares_left wear_min wear_moves "
    "nand_reads nand_programs read_retries suspends buffer_reads zrwa_overwrites zrwa_explicit "
    "zrwa_implicit".split()
)

PAGE_MUST_COUNT = set(
    "host_read_cmds host_write_cmds flush_cmds formats trim_cmds host_zero_pages read_host "
    "read_clean read_wear prog_host prog_clean prog_wear erase_clean erase_wear erase_on_demand "
    "erase_idle unwritten_reads queue_wait_ns wear_moves read_retries suspends".split()
)

# buffer_reads: what waits to be programmed is read; prog_pad: a flush or FUA fills up a unit
BUFFER_MUST_COUNT = PAGE_MUST_COUNT | {"buffer_reads", "prog_pad", "nand_reads", "nand_programs"}


def run_core(replay: Path, scripts: list[tuple[Path, list[str]]]) -> tuple[str, list[str]]:
    """Runs scripts one after the other; what went wrong (or ""), and what each printed."""
    text = ""
    for media, lines in scripts:
        media.unlink(missing_ok=True)
        text += "\n".join(lines).replace("MEDIA", str(media)) + "\nend\n"
    done = subprocess.run(
        [replay], input=text, capture_output=True, text=True, timeout=600, check=False
    )
    wrong = f"exit {done.returncode}: {done.stderr}" if done.returncode else ""
    return wrong, done.stdout.split('{"end": true}\n')


def compare_output(media: Path, lines: list[str], output: str) -> str | None:
    """The first difference between what the core printed and the model, or None."""

    def good(cfg: Config) -> list[int]:
        return good_blocks(media, cfg)

    return difference(run_model(lines, good), parse_outcomes(output))


def compare(replay: Path, media: Path, lines: list[str]) -> str | None:
    """Runs a script on both; the first difference, or None."""
    wrong, outputs = run_core(replay, [(media, lines)])
    return wrong or compare_output(media, lines, outputs[0])


def creatable(replay: Path, media: Path, lines: list[str]) -> list[str]:
    """The script with a seed of bad blocks that leaves each die enough good ones.

    If some seed below 60 leaves a drive that has bad blocks at all, then that one.
    """
    if not int(parse_open(lines[0]).get("bad-blocks-ppm", 0)):
        return lines
    found: list[str] = []
    for seed in range(60):
        changed = [re.sub(r" seed=\d+", f" seed={seed}", line) for line in lines]
        what = compare(replay, media, changed[:1])
        assert what is None or "bad-blocks-ppm" in what, what
        if what is not None:
            continue
        found = found or changed
        cfg = parse_open(lines[0])
        if min(good_blocks(media, cfg)) < int(cfg["blocks"]) + int(cfg["spare-blocks"]):
            return changed
        if cfg["spare-blocks"] == 0:
            break
    assert found, f"no seed makes a drive: {lines[0]}"
    return found


def kind(what: str) -> str:
    """What a difference is about, numbers apart."""
    return re.sub(r"[0-9]+", "", what)[:40]


def explain(replay: Path, media: Path, seed: int, lines: list[str], what: str) -> str:
    """A failure: the seed, what differs, and the shortest script found that shows it."""
    tries = iter(range(1000))

    def fails(candidate: list[str]) -> bool:
        if next(tries, None) is None:
            return False
        found = compare(replay, media, candidate)
        return found is not None and kind(found) == kind(what)

    short = minimise(lines, fails)
    return "\n".join(
        [
            f"seed {seed} (RSD_MODEL_SEED={seed}): {what}",
            "minimised:",
            *short,
            f"which shows: {compare(replay, media, short)}",
        ]
    )


def test_zones_do_what_the_model_says(replay: Path) -> None:
    """Random scripts, for every row of the table in turn."""
    rows = pairwise_rows(0)
    counted = check_scripts(replay, range(FIRST_SEED, FIRST_SEED + SCRIPTS), rows, make_script)
    if len(rows) <= SCRIPTS:
        assert counted >= MUST_COUNT, f"never counted: {sorted(MUST_COUNT - counted)}"


def test_page_maps_do_what_the_model_says(replay: Path) -> None:
    """The same of ftl=page."""
    rows = pairwise_rows(0, PAGE_OPTIONS)
    seeds = range(FIRST_SEED, FIRST_SEED + PAGE_SCRIPTS)
    counted = check_scripts(replay, seeds, rows, make_page_script)
    if len(rows) <= PAGE_SCRIPTS:
        assert counted >= PAGE_MUST_COUNT, f"never: {sorted(PAGE_MUST_COUNT - counted)}"


def test_buffered_page_maps_do_what_the_model_says(replay: Path) -> None:
    """The same of ftl=page with a write buffer, and with units of several pages."""
    rows = pairwise_rows(0, BUFFER_OPTIONS)
    seeds = range(FIRST_SEED, FIRST_SEED + PAGE_SCRIPTS)
    counted = check_scripts(replay, seeds, rows, make_page_script)
    if len(rows) <= PAGE_SCRIPTS:
        assert counted >= BUFFER_MUST_COUNT, f"never: {sorted(BUFFER_MUST_COUNT - counted)}"


def test_large_trims_do_what_the_model_says(
    replay_steps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, with steps of 16 pages: nearly all trims of these scripts are large."""
    monkeypatch.setattr(PageDrive, "trim_step", 16)
    seeds = range(FIRST_SEED, FIRST_SEED + PAGE_SCRIPTS // 2)
    for options in (PAGE_OPTIONS, BUFFER_OPTIONS):
        check_scripts(replay_steps, seeds, pairwise_rows(0, options), make_page_script)


def check_scripts(
    replay: Path, seeds: range, rows: list[Config], make: Callable[[int, Config], list[str]]
) -> set[str]:
    """Scripts of these seeds; the counters that were not zero in some of them."""
    counted: set[str] = set()
    # Media in memory where there is such a place: these are thousands of small files.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        media = Path(directory)
        for first in seeds[::BATCH]:
            scripts = {}
            for number in range(first, first + BATCH):
                lines = make(number, rows[number % len(rows)])
                scripts[number] = creatable(replay, media / "one", lines)
            counted |= check_batch(replay, media, scripts)
    return counted


@pytest.mark.parametrize("script", sorted((HERE / "cases").glob("*.txt")), ids=lambda p: p.stem)
def test_written_case(replay: Path, tmp_path: Path, script: Path) -> None:
    """Scripts on which the core was wrong once, or that chance would seldom make."""
    what = compare(replay, tmp_path / "media", script.read_text().splitlines())
    assert what is None, what


def test_a_drive_in_memory_is_the_same_without_payload(replay: Path, tmp_path: Path) -> None:
    """Times, statuses and counters of a drive without a file are those of one with a file."""
    rows = pairwise_rows(0)
    for seed, row in enumerate(rows):
        lines = creatable(replay, tmp_path / "one", make_script(seed, row))
        lines = [*itertools.takewhile(lambda line: line != "close", lines), f"adv {10**15}"]
        lines.append("counters")
        in_memory = [lines[0].replace("MEDIA", "-"), *lines[1:]]
        runs = [(tmp_path / str(seed), lines), (tmp_path / "none", in_memory)]
        wrong, outputs = run_core(replay, runs)
        assert not wrong, f"seed {seed}: {wrong}"
        with_file, without = (parse_outcomes(output) for output in outputs[:2])
        for outcome in with_file:
            outcome.pop("pages", None)
        assert not (tmp_path / "none").exists()
        assert difference(with_file, without) is None, f"seed {seed}"


def check_batch(replay: Path, directory: Path, scripts: dict[int, list[str]]) -> set[str]:
    """Fails with the first script, by seed, on which core and model differ.

    The counters that were not zero in some script.
    """
    runs = [(directory / str(seed), lines) for seed, lines in scripts.items()]
    wrong, outputs = run_core(replay, runs)
    for (media, lines), output, seed in zip(runs, outputs, scripts, strict=False):
        # Once the core has stopped, a run of its own shows where.
        what = compare(replay, media, lines) if wrong else compare_output(media, lines, output)
        assert what is None, explain(replay, media, seed, lines, what)
    assert not wrong, f"seeds {list(scripts)} together: {wrong}"
    for media, _ in runs:
        media.unlink()
    return {
        name
        for output in outputs
        for outcome in parse_outcomes(output)
        for name, value in outcome.get("counters", {}).items()
        if value
    }
