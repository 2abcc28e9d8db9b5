# SPDX-License-Identifier: GPL-2.0-or-later
"""rsdview shows, without the device, what the device shows after a rewind: the same bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from drive import Drive, OpenDrive, digest
from nvme import Status
from test_power import log, rewind
from zns import Action, blocks_of, pattern

from programs import made
from rsd.cache import Cache

ZONES, PAGES = 6, 16


@pytest.fixture(scope="module")
def rsdview(rsd_cache: Cache) -> Path:
    sources = ["host/tools/rsdview/*", "hw/rsd-nvme/core/**/*.[ch]"]
    command = ["host/tools/rsdview", "CFLAGS=-O1 -g -Werror"]
    return made(rsd_cache, "rsdview", sources, command) / "rsdview"


def run(*args: object, status: int = 0, told: str = "") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [str(arg) for arg in args],
        input=told.encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == status, done.stderr.decode()
    return done


def blocks(d: Drive) -> tuple[bytes, bytes, list[int]]:
    """Data and OOB of all blocks, and which of them are torn; of these zeroes."""
    data, oob, torn = b"", b"", []
    for zone in range(ZONES):
        for page in range(PAGES):
            request, block, meta = d.ns.get(d.ns.start(zone) + page)
            if request.status == Status.UNRECOVERED_READ:
                torn.append(d.ns.start(zone) + page)
                block, meta = bytes(4096), bytes(16)
            data, oob = data + block, oob + meta
    return data, oob, torn


def test_the_same_bytes(drive: OpenDrive, media: Path, tmp_path: Path, rsdview: Path) -> None:
    log_path = tmp_path / "log"
    shown = {}
    with drive(op_log=log_path, oob=16) as d:
        for zone, count in enumerate((16, 9, 4)):
            tags = range(50 * zone, 50 * zone + count)
            d.ns.write(d.ns.start(zone), blocks_of(tags), pattern(zone, 16 * count)).expect()
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(0, blocks_of(range(7)), pattern(9, 16 * 7)).expect()
        ops = log(d).ops
        assert ops == 37
        for op in range(0, ops + 1, 3):
            rewind(d, op, seed=op)
            written = [zone.wp or 0 for zone in d.ns.report()]
            shown[op] = (written, *blocks(d))
        d.qemu.quit()
    before = digest(media), digest(log_path)
    assert run(rsdview, media, log_path, "ops").stdout == b"37\n"
    for op, (written, data, oob, torn) in shown.items():
        state = [rsdview, "--op", op, "--outcomes", op]
        lines = run(*state, media, log_path, "zones").stdout.decode().splitlines()
        got = [int(line.split()[3]) for line in lines]
        assert [wp if wp < PAGES else 0 for wp in got] == written, op
        done = run(*state, media, log_path, "read", 0, ZONES * PAGES)
        assert done.stdout == data, op
        named = [int(line.split()[2][:-1]) for line in done.stderr.decode().splitlines()]
        assert named == torn, op
        assert run(*state, "--oob", media, log_path, "read", 0, ZONES * PAGES).stdout == oob, op
    assert sum(len(torn) for _, _, _, torn in shown.values()) > 3
    assert b"38 states" in run(rsdview, media, log_path, "speed").stdout
    assert (digest(media), digest(log_path)) == before, "a view changed a file"


def test_refusals(drive: OpenDrive, media: Path, tmp_path: Path, rsdview: Path) -> None:
    log_path = tmp_path / "log"
    with drive(op_log=log_path) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        assert b"in use by another process" in run(rsdview, media, log_path, "ops", status=1).stderr
        d.qemu.quit()
    flying = run(rsdview, "--op", 4, media, log_path, "in-flight").stdout.decode().splitlines()
    assert len(flying) == 4
    assert all(line.startswith("program of block") for line in flying)
    for args, status, message in [
        (["--op", 9, media, log_path, "zones"], 1, "there is no operation 9: the log has 8"),
        (["--op", 1, "--outcomes", "z", media, log_path, "zones"], 1, "outcomes are a number"),
        ([media, media, "zones"], 1, "is not an operation log"),
        ([media, tmp_path / "none", "zones"], 1, "cannot open the operation log"),
        ([tmp_path / "none", log_path, "zones"], 1, "cannot open it"),
        ([media, log_path, "read", 1 << 40, 1], 1, "Invalid argument"),
        ([media, log_path, "read", 0], 2, "usage: rsdview"),
        ([media, log_path, "nonsense"], 2, "usage: rsdview"),
        (["--op", "x", media, log_path, "zones"], 2, "usage: rsdview"),
        ([media], 2, "usage: rsdview"),
    ]:
        assert message in run(rsdview, *args, status=status).stderr.decode()
    assert b"Example" in run(rsdview, "--help").stdout


def test_which_states_are_the_same(
    drive: OpenDrive, media: Path, tmp_path: Path, rsdview: Path
) -> None:
    """As host/tools/rsdview/match.h has it."""
    log_path = tmp_path / "log"
    with drive(op_log=log_path) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        d.qemu.quit()
    listed = run(rsdview, media, log_path, "list").stdout.decode().splitlines()
    assert [line.split()[1] for line in listed if line.startswith("op ")] == list("012345678")
    after_4 = listed[listed.index(next(x for x in listed if x.startswith("op 4 "))) + 1 :][:4]
    assert all(line.startswith("flying program ") and line.endswith(" -") for line in after_4)

    states = ["8 - 1", "8 - 1", "4 aaaa 1", "4 cccc 1", "4 taaa 1", "8 - 2", "3 - 1"]
    told = "".join(f"state {number} {state}\n" for number, state in enumerate(states))
    # one of a key first, and of an operation; 3 has all that 0 has, 5 has it for another key
    rounds = [
        ("next 9", ["look 0", "."]),
        ("looked 0 0 0 8\nnext 9", ["same 1 0", "same 3 0", "look 2", "look 5", "look 6", "."]),
        # 2 may have read anything; a torn block is not one that was never written
        ("looked 2\nlooked 5 0 0 8\nlooked 6 0 0 2\nnext 9", ["look 4", "."]),
        ("looked 4 0 0 8\nnext 9", ["."]),
    ]
    told += "".join(f"{asked}\n" for asked, _ in rounds)
    answer = run(rsdview, media, log_path, "same", told=told).stdout.decode().splitlines()
    assert answer == [line for _, lines in rounds for line in lines]

    # of two that were read alike, what was not read does not count
    told = "state 0 1 - 1\nstate 1 1 aaaa 1\nstate 2 0 aaaa 1\nlooked 0 0 1 1\nnext 9\n"
    assert "same 1 0" in run(rsdview, media, log_path, "same", told=told).stdout.decode()
    for line in ("state 1 1 - 1", "looked 0", "nonsense", "next"):
        said = run(rsdview, media, log_path, "same", status=1, told=f"{line}\n").stderr
        assert f"at the line: {line}" in said.decode()
    said = run(rsdview, media, log_path, "same", status=1, told="state 0 9 - 1\nlooked 0 0 0 1\n")
    assert "there is no operation 9" in said.stderr.decode()
