# SPDX-License-Identifier: GPL-2.0-or-later
"""Native traces: recorded, replayed to the nanosecond, refused when they do not fit."""

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulator import (
    COUNTER,
    DONE,
    END,
    RECORD,
    SMALL,
    SUBMIT,
    Record,
    Simulator,
    header_bytes,
    pack,
    records,
)

WORK = ("--precondition", "fill", "--requests", "2000", "--reads", "40", "--size", "8K")


@pytest.fixture
def recorded(sim: Simulator, tmp_path: Path) -> Path:
    path = tmp_path / "trace"
    sim.json(*SMALL, *WORK, "--record", path)
    return path


def test_the_trace_says_what_happened(sim: Simulator, recorded: Path) -> None:
    found = list(records(recorded))
    submits = [record for record in found if record.kind == SUBMIT]
    dones = {record.order: record for record in found if record.kind == DONE}
    assert [record.order for record in submits] == list(range(len(submits)))
    assert sorted(dones) == list(range(len(submits)))
    assert all(dones[record.order].time >= record.time for record in submits)
    assert [record.kind for record in found[-2:]] == [COUNTER, END]


def test_replay_gives_everything_again(sim: Simulator, recorded: Path) -> None:
    result = sim.json("--replay", recorded, "--check")
    assert result["commands"] > 2000
    assert result["completions"] == result["commands"]
    assert result["completions_different"] == result["counters_different"] == 0
    # ram_bytes is not comparable in memory
    counters = sum(1 for record in records(recorded) if record.kind == COUNTER)
    assert result["counters"] == counters - 1 > 50


@pytest.mark.parametrize(
    "settings",
    [
        "page-size=8192 planes=2 write-buffer=64K",
        "page-size=8192 cell=tlc one-shot=on pages=12 write-buffer=1M ack=buffer plp=off",
        "cores=3 t-fw-read=2000 t-fw-write=3000 t-lat-read=900 t-link=200",
        "cache=on suspend=on cell=mlc t-prog-msb=900000 t-read-msb=90000",
        "life-spread=20 endurance=8 read-retries=4",
        "queue=global reset=erase finish=pad segment=way",
        "ftl=block blocks=64 over-provision=28",
        "ftl=fast blocks=64 over-provision=28",
        "ftl=dftl blocks=64 over-provision=28 map-cache=4K",
        "ftl=page blocks=64 over-provision=28 gc-unit=all gc-policy=cost-benefit",
    ],
)
def test_replay_of_every_part(sim: Simulator, tmp_path: Path, settings: str) -> None:
    """Whatever takes part in the drive's time, a replay takes it, too."""
    chosen = [word for setting in settings.split() for word in ("--set", setting)]
    trace = tmp_path / "trace"
    work = ("--precondition", "1", "--requests", "1500", "--reads", "40", "--rate", "3000")
    sim.json(*SMALL, *chosen, *work, "--record", trace)
    result = sim.json("--replay", trace, "--check")
    assert result["completions"] == result["commands"] > 1500
    assert result["completions_different"] == result["counters_different"] == 0


def test_replay_on_media(sim: Simulator, tmp_path: Path) -> None:
    media, copy, trace = tmp_path / "media", tmp_path / "copy", tmp_path / "trace"
    sim.json(*SMALL, "--age", media, "--precondition", "1")
    shutil.copy(media, copy)
    sim.json("--media", media, "--set", "idle-erase=0", *WORK[2:], "--record", trace)
    assert "this is not the media" in sim.fails("--replay", trace, "--media", media)
    assert "was not recorded on a new drive" in sim.fails("--replay", trace)
    result = sim.json("--replay", trace, "--media", copy, "--check")
    assert result["completions_different"] == result["counters_different"] == 0
    # with what the drive's memory holds
    assert result["counters"] == sum(1 for record in records(trace) if record.kind == COUNTER)


@pytest.mark.parametrize(
    ("prog", "message"), [(444279, b"not yet here"), (444277, b"at 3854213 ns (ok) here")]
)
def test_a_difference_is_found(sim: Simulator, recorded: Path, prog: int, message: bytes) -> None:
    """The same work on a drive that is a little slower, or faster."""
    content = recorded.read_bytes()
    assert b"t-prog=444278\n" in content
    other = recorded.with_name("other")
    sim.json(*SMALL, *WORK, "--set", f"t-prog={prog}", "--record", other)
    start = header_bytes(recorded)
    assert start == header_bytes(other)
    mixed = recorded.with_name("mixed")
    mixed.write_bytes(other.read_bytes()[:start] + content[start:])
    done = sim.run("--replay", mixed, "--check")
    assert done.returncode == 1
    assert b"first difference: record" in done.stderr
    assert message in done.stderr
    assert done.stderr.count(b"first difference") == 1
    assert b"counter die_busy_ns is" in done.stderr
    assert sim.run("--replay", mixed).returncode == 0


def rewritten(recorded: Path, change: Callable[[Record], Record]) -> Path:
    """The trace with records that are other ones, but whole."""
    start = header_bytes(recorded)
    content = recorded.read_bytes()
    assert b"".join(map(pack, records(recorded))) == content[start:]
    other = recorded.with_name("other")
    other.write_bytes(content[:start] + b"".join(pack(change(r)) for r in records(recorded)))
    return other


def test_another_status_is_a_difference(sim: Simulator, recorded: Path) -> None:
    def change(record: Record) -> Record:
        last = record.kind == DONE and record.order == 2000
        return replace(record, status=record.status ^ last)

    done = sim.run("--replay", rewritten(recorded, change), "--check")
    assert done.returncode == 1
    assert b"command 2000: done at" in done.stderr
    assert b"(out of range) in the trace" in done.stderr
    assert b"compared, 1 differ; " in done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lba": 1 << 40}, "record 1: the request is of block 1099511627776 and"),
        ({"nlb": 0}, "record 1: the request has 0 blocks of 4096 bytes"),
        ({"nlb": 0xFFFFFFFF}, "record 1: the request has 4294967295 blocks"),
        ({"op": 99}, "record 1: operation is 99, allowed is 0 to 9"),
        ({"order": 5}, "record 1: order of a submission is 5"),
        ({"kind": 0}, "record 1: kind is 0"),
    ],
)
def test_whole_records_that_are_wrong(
    sim: Simulator, recorded: Path, change: dict[str, int], message: str
) -> None:
    first = iter([change])
    other = rewritten(recorded, lambda record: replace(record, **next(first, {})))
    assert message in sim.fails(*SMALL, "--trace", other)
    done = sim.run("--replay", other, "--check")
    assert done.returncode == 1
    assert done.stderr.startswith(b"rsdsim: ")


def test_a_directory_is_no_trace(sim: Simulator, tmp_path: Path) -> None:
    for option in ("--trace", "--replay"):
        assert "is a directory: name the trace in it" in sim.fails(option, tmp_path)


def test_a_namespace_that_is_not_there(sim: Simulator, recorded: Path) -> None:
    other = rewritten(recorded, lambda record: replace(record, ns=7))
    assert "record 1 is for namespace 7" in sim.fails("--replay", other)


def test_a_native_trace_is_work_for_another_drive(sim: Simulator, recorded: Path) -> None:
    result = sim.json(*SMALL, "--set", "t-read=1", "--trace", recorded)
    commands = sum(1 for record in records(recorded) if record.kind == SUBMIT)
    assert result["results"]["requests"] == commands


def test_zones_on_a_drive_without(sim: Simulator, tmp_path: Path) -> None:
    """A page map takes what was written in zones; a reset is a trim of the zone's blocks."""
    trace = tmp_path / "trace"
    zoned = sim.json(*SMALL, "--requests", "3000", "--append", "--record", trace)
    before = {name: one["after"] for name, one in zoned["results"]["counters"].items()}
    assert before["zone_resets"] > 10
    page = ("--set", "ftl=page", "--set", "blocks=40")
    result = sim.json(*SMALL, *page, "--trace", trace)["results"]
    after = {name: one["after"] for name, one in result["counters"].items()}
    assert result["requests"] == 3000
    assert result["operations"]["trim"]["requests"] == before["zone_resets"]
    assert after["host_write_pages"] == before["host_write_pages"]
    # What is written and trimmed a zone at a time leaves nothing to copy.
    assert after["prog_clean"] == 0
    assert result["erases"]["clean"] == after["erase_clean"] > 0


def test_a_torn_trace_ends_before_the_tear(sim: Simulator, recorded: Path) -> None:
    content = recorded.read_bytes()
    start = header_bytes(recorded)
    recorded.write_bytes(content[: start + 100 * RECORD.size + 17])
    done = sim.run("--replay", recorded, "--check")
    assert done.returncode == 0
    assert b"its last record has 17 bytes of 48" in done.stderr
    assert b"The trace has no counters" in done.stdout
    done = sim.run(*SMALL, "--trace", recorded)
    assert done.returncode == 0
    assert b"its last record has 17 bytes of 48" in done.stderr


def test_a_killed_recorder(sim: Simulator, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    process = subprocess.Popen(
        [sim.program, *SMALL, "--requests", "100M", "--record", trace],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        deadline = time.monotonic() + 600
        while not trace.exists() or trace.stat().st_size < 100_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = sim.json("--replay", trace, "--check")
    assert result["completions"] > 900
    assert result["counters"] == 0


@pytest.mark.parametrize("how", ["--replay", "--trace"])
def test_damage_ends_in_a_message(sim: Simulator, recorded: Path, how: str) -> None:
    content = recorded.read_bytes()
    chance = random.Random(how)
    arguments = () if how == "--replay" else SMALL
    for _ in range(40):
        damaged = bytearray(content)
        at = chance.randrange(len(damaged))
        damaged[at] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            del damaged[chance.randrange(at, len(damaged)) :]
        recorded.write_bytes(damaged)
        done = sim.run(*arguments, how, recorded)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1:
            assert str(recorded).encode() in done.stderr


def test_existing_files_are_kept(sim: Simulator, recorded: Path) -> None:
    before = recorded.read_bytes()
    assert "File exists" in sim.fails(*SMALL, "--record", recorded)
    assert recorded.read_bytes() == before
