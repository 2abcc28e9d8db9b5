# SPDX-License-Identifier: GPL-2.0-or-later
"""What rsdsim reports, against what its trace says, computed here by brute force."""

import json
import math
import os
import pty
import re
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest
from simulator import DONE, READ, RESET, SMALL, SUBMIT, WRITE, Record, Simulator, records

OPS = {READ: "read", WRITE: "write", RESET: "zone reset"}


def latencies(found: list[Record], op: int, start: int) -> list[int]:
    submits = {r.order: r for r in found if r.kind == SUBMIT and r.op == op and r.order >= start}
    dones = {r.order: r.time for r in found if r.kind == DONE}
    return sorted(dones[order] - record.time for order, record in submits.items())


def recorded(sim: Simulator, path: Path, *arguments: str) -> tuple[Any, list[Record]]:
    result = sim.json(*SMALL, *arguments, "--record", path)
    return result["results"], list(records(path))


def test_figures(sim: Simulator, tmp_path: Path) -> None:
    arguments = ("--precondition", "fill", "--reads", "50", "--requests", "3000", "--depth", "8")
    result, found = recorded(sim, tmp_path / "trace", *arguments)
    start = 16  # the fill's requests, of a zone each
    submits = [record for record in found if record.kind == SUBMIT][start:]
    dones = [record for record in found if record.kind == DONE][start:]
    assert result["requests"] == len(submits) == 3000
    begin = submits[0].time
    seconds = (max(record.time for record in dones) - begin) / 1e9
    assert result["seconds"] == pytest.approx(seconds, abs=1e-9)
    assert result["iops"] == pytest.approx(3000 / seconds, rel=1e-6)
    assert set(result["operations"]) == set(OPS.values())
    for op, name in OPS.items():
        expected = latencies(found, op, start)
        got = result["operations"][name]
        assert got["requests"] == len(expected)
        assert got["failed"] == 0
        ns = got["latency_ns"]
        assert ns["min"] == expected[0]
        assert ns["max"] == expected[-1]
        assert ns["mean"] == pytest.approx(sum(expected) / len(expected), abs=0.001)
        for percentile, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
            exact = expected[max(math.ceil(part * len(expected)), 1) - 1]
            assert exact <= ns[percentile] <= exact * (1 + 1 / 256)
    writes = result["operations"]["write"]["blocks"]
    programs = result["counters"]["prog_host"]
    assert programs["after"] - programs["before"] == writes
    assert result["write_amplification"]["host"] == result["write_amplification"]["total"] == 1
    erases = result["counters"]["erase_host"]
    assert result["erases"]["host"] == erases["after"] - erases["before"] > 0
    blocks = 4 * 20
    assert sum(result["wear"]["blocks"]) == blocks
    assert result["wear"]["max"] == result["counters"]["wear_max"]["after"]
    assert result["wear"]["mean"] == result["counters"]["wear_sum"]["after"] / blocks


@pytest.mark.parametrize("depth", [1, 7])
def test_closed_loop(sim: Simulator, tmp_path: Path, depth: int) -> None:
    """So many are in flight, no more, and no fewer until the end."""
    arguments = ("--depth", str(depth), "--requests", "500", "--reads", "10")
    _, found = recorded(sim, tmp_path / "trace", *arguments)
    in_flight = submitted = now = 0
    for record in found:
        if record.kind not in (SUBMIT, DONE):
            continue
        if record.time > now:
            assert in_flight == depth or submitted == 500
            now = record.time
        in_flight += 1 if record.kind == SUBMIT else -1
        submitted += record.kind == SUBMIT
        assert in_flight <= depth
    assert submitted == 500


def test_open_loop(sim: Simulator, tmp_path: Path) -> None:
    """Requests come at the trace's times, however long the ones before take."""
    text = "".join(f"{5000 + 1000 * i} 0 {8 * i} 8 0\n" for i in range(20))
    (tmp_path / "mqsim").write_text(text)
    arguments = ("--trace", "mqsim", "--format", "mqsim")
    _, found = recorded(sim, tmp_path / "trace", *arguments)
    times = [record.time for record in found if record.kind == SUBMIT]
    assert times == list(range(0, 20000, 1000))


def test_output_is_repeatable(sim: Simulator) -> None:
    arguments = (*SMALL, "--precondition", "steady", "--requests", "2000", "--reads", "20")
    first = sim.run(*arguments)
    assert first.returncode == 0
    assert first.stderr == b""
    assert sim.run(*arguments).stdout == first.stdout
    assert sim.json(*arguments) == sim.json(*arguments)


def test_precondition(sim: Simulator) -> None:
    arguments = (*SMALL, "--requests", "0")
    assert sim.json(*arguments)["precondition"]["filled_blocks"] == 0
    fill = sim.json(*arguments, "--precondition", "fill")
    assert fill["precondition"]["filled_blocks"] == 512
    assert fill["results"]["counters"]["prog_host"]["before"] == 512
    twice = sim.json(*arguments, "--precondition", "2")["precondition"]
    assert twice["filled_blocks"] == 512
    # resets are requests, too
    assert 2 * 512 * 0.9 < twice["written_blocks"] <= 2 * 512
    steady = sim.json(*arguments, "--precondition", "steady")["precondition"]
    assert steady["steady"] is True
    assert steady["write_amplification"] == 1


def test_throughput_is_of_what_was_transferred(sim: Simulator) -> None:
    """What is trimmed, or read without ever having been written, has figures of its own."""
    page = ("--set", "ftl=page", "--set", "blocks=32", "--precondition", "fill")
    work = ("--reads", "30", "--trims", "30", "--requests", "2000", "--size", "8K")
    done = sim.run(*SMALL, *page, *work, "--json")
    result = json.loads(done.stdout)["results"]
    blocks = {name: op["blocks"] for name, op in result["operations"].items()}
    unwritten = result["unwritten_blocks_read"]
    assert 0 < unwritten < blocks["read"]
    counter = result["counters"]["unwritten_reads"]
    assert unwritten == counter["after"] - counter["before"]
    moved = (blocks["read"] - unwritten + blocks["write"]) * 4096
    assert result["bytes_per_s"] == pytest.approx(moved / result["seconds"], rel=1e-6)
    trimmed = blocks["trim"] * 4096
    assert result["trimmed_bytes_per_s"] == pytest.approx(trimmed / result["seconds"], rel=1e-6)
    read = f"{unwritten} of {blocks['read']} blocks read were never written, or trimmed"
    assert done.stderr.decode().startswith(f"rsdsim: warning: {read}")
    text = sim.run(*SMALL, *page, *work).stdout.decode()
    assert re.search(rf"trimmed, or written as zeroes: {blocks['trim']} blocks, [0-9.]+ MB/s", text)
    assert f"after a trim: {unwritten} blocks" in text


def test_a_drive_that_was_never_written(sim: Simulator, tmp_path: Path) -> None:
    work = (*SMALL, "--set", "ftl=page", "--reads", "80", "--requests", "1000")
    done = sim.run(*work)
    assert b"nothing was ever written to the drive" in done.stdout
    assert b"rsdsim: warning: the drive was never written before the measurement" in done.stderr
    assert sim.json(*work)["precondition"]["never_written"] is True
    filled = sim.run(*work, "--precondition", "fill")
    assert (b"never" in filled.stdout, filled.stderr) == (False, b"")
    assert sim.json(*work, "--precondition", "fill")["precondition"]["never_written"] is False
    # one that a file has from before was
    media = tmp_path / "media"
    sim.json(*SMALL, "--set", "ftl=page", "--age", media, "--precondition", "fill")
    again = sim.json("--media", media, "--set", "ftl=page", "--requests", "10")
    assert again["precondition"]["never_written"] is False


def test_age(sim: Simulator, tmp_path: Path) -> None:
    """The file that is left has the drive's state: a run on it goes on from there."""
    media = tmp_path / "media"
    aged = sim.json(*SMALL, "--age", media, "--precondition", "3")
    assert "File exists" in sim.fails(*SMALL, "--age", media)
    after = sim.json("--media", media, "--requests", "0")["results"]["counters"]
    for name, counter in aged["results"]["counters"].items():
        if name != "ram_bytes":
            assert after[name]["before"] == counter["after"], name
    assert sim.json("--media", media, "--requests", "100")["results"]["requests"] == 100
    message = sim.fails("--media", media, "--set", "channels=1")
    assert "channels: the file has 2, 1 was asked for" in message


def test_table(sim: Simulator) -> None:
    done = sim.run(*SMALL, "--precondition", "fill", "--reads", "50", "--host-time")
    text = done.stdout.decode()
    for part in ("Drive", "Throughput", "Latency", "Flash, by cause", "Wear", "Host"):
        assert f"\n{part}" in f"\n{text}"
    assert "rsd, 2 channels x 2 ways x 20 blocks x 8 pages of 4096 bytes" in text


@pytest.mark.parametrize("ftl", ["page", "rsd"])
def test_a_drive_that_wears_out(sim: Simulator, ftl: str) -> None:
    """Its refusals are counted; they have no latency and move no data."""
    worn = ("--set", "endurance=5", "--set", "life-spread=10", "--set", f"ftl={ftl}")
    size = ("--set", "blocks=32", "--set", "over-provision=40")
    done = sim.run(*SMALL, *size, *worn, "--requests", "30000", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["results"]
    writes = result["operations"]["write"]
    failed = result["failed"]
    assert 0 < failed < 30000
    # a zone's reset may fail, too, when the drive is read-only
    others = [op for name, op in result["operations"].items() if name != "write"]
    assert failed == writes["failed"] + sum(op["failed"] for op in others)
    assert writes["requests"] - writes["failed"] == writes["blocks"]
    assert result["counters"]["host_write_pages"]["after"] == writes["blocks"]
    assert writes["latency_ns"]["min"] > 100_000
    assert result["iops"] == pytest.approx((30000 - failed) / result["seconds"], rel=1e-6)
    text = sim.run(*SMALL, *size, *worn, "--requests", "30000").stdout.decode()
    assert re.search(r"failed +\d+ the last one with: (the drive is read-only|no good)", text)
    again = sim.run(*SMALL, *size, *worn, "--precondition", "30", "--requests", "0")
    assert again.returncode == 0
    assert b"writes before the measurement failed, the last one with" in again.stderr


def test_progress_is_for_terminals(sim: Simulator) -> None:
    """A bar on a terminal, which is gone at the end; nothing elsewhere, nothing in the output."""
    arguments = (*SMALL, "--precondition", "fill", "--requests", "300K", "--json")
    plain = sim.run(*arguments)
    assert plain.stderr == b""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sim.program, *arguments], stdout=subprocess.PIPE, stderr=slave, cwd=sim.directory
    )
    os.close(slave)
    assert process.stdout is not None
    shown = b""
    out = process.stdout.read()
    while select.select([master], [], [], 0)[0]:
        try:
            shown += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.wait() == 0
    assert out == plain.stdout
    assert re.search(rb"\r\x1b\[Krunning +\[#* *\] +\d+% \d+, \d+ a second, \d+ s left", shown)
    assert shown.endswith(b"\r\x1b[K")


def test_over_provisioning_is_the_real_one(sim: Simulator) -> None:
    """Of a preset that was made smaller, too: good flash, spares included, beyond the capacity."""
    smaller = ("--preset", "980pro", "--set", "blocks=64", "--set", "pages=96")
    for arguments in (smaller, (*smaller, "--set", "bad-blocks-ppm=20000"), ("--set", "ftl=page")):
        result = sim.json(*arguments, "--pattern", "uniform", "--requests", "10")
        drive, counters = result["drive"], result["results"]["counters"]
        settings = result["settings"]
        block = settings["pages"] * settings["page-size"] * settings["planes"]
        good = counters["blocks_total"]["after"] - counters["blocks_bad"]["after"]
        assert drive["flash_bytes"] == good * block == counters["flash_bytes"]["after"]
        assert drive["capacity_bytes"] == counters["capacity_bytes"]["after"]
        percent = 100 * (drive["flash_bytes"] / drive["capacity_bytes"] - 1)
        assert drive["over_provision_percent"] == pytest.approx(percent, abs=1e-4)
        assert percent == pytest.approx(settings["over-provision"], abs=0.03)
        assert (
            f"{percent:.2f}% of it beyond"
            in sim.run(*arguments, "--requests", "10").stdout.decode()
        )
