# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cuts and rewinding: the vendor commands, what they refuse, what the host then sees."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from drive import SMALL, Drive, OpenDrive, device_args, open_drive
from nvme import Command, Io, Request, Status
from qtest import start_error
from test_zrwa import AREAS, ZRWA, expect, has_area, open_area, put
from zns import Action, Zs, blocks_of, pattern

POWER, OPLOG = 0xC1, 0xC2
CUT, REWIND, RESTART = range(3)
STATE, OPS, IN_FLIGHT = range(3)
ON, BRANCH, OFF = 1, 4, 8
NS_ATTACHMENT = 0x15
CFS = 2
MAGIC = 0x72776F70


@dataclass
class Log:
    flags: int
    ops: int
    at: int
    entries: list[tuple[int, int, int, int, int, int, int]]


def power(
    d: Drive, what: int, op: int = 0, outcomes: str | None = None, seed: int = 0, nsid: int = 1
) -> Request:
    data = struct.pack("<QQII", op, seed, outcomes is not None, MAGIC) + (outcomes or "").encode()
    with d.controller.memory.buffer(4096, data.ljust(4096, b"\0")) as at:
        return d.controller.admin.run(Command(POWER, nsid=nsid, prp1=at, cdw10=what))


def query(d: Drive, what: int = STATE, op: int = 0) -> tuple[Request, bytes]:
    with d.controller.memory.buffer(4096) as at:
        command = Command(OPLOG, nsid=1, prp1=at, cdw10=what, cdw12=op & 0xFFFFFFFF, cdw13=op >> 32)
        request = d.controller.admin.run(command)
        return request, d.qemu.read(at, 4096)


def log(d: Drive, what: int = STATE, op: int = 0) -> Log:
    request, data = query(d, what, op)
    request.expect()
    version, flags, ops, at, _bytes, nsid, second, count = struct.unpack_from("<IIQQQIII", data)
    assert (version, nsid, second) == (1, 1, 0)
    entries = [struct.unpack_from("<QQQIIII", data, 96 + 40 * i) for i in range(count)]
    return Log(flags, ops, at, entries)


def attach(d: Drive, *, detach: bool = False) -> Request:
    with d.controller.memory.buffer(4096, struct.pack("<HH", 1, 0).ljust(4096, b"\0")) as at:
        return d.controller.admin.run(Command(NS_ATTACHMENT, nsid=1, prp1=at, cdw10=int(detach)))


def rewind(d: Drive, op: int, outcomes: str | None = None, seed: int = 0) -> None:
    attach(d, detach=True).expect()
    power(d, REWIND, op, outcomes, seed).expect()
    d.reset_controller()
    state = log(d)
    assert state.flags == ON | BRANCH
    assert state.at == op


def write_two_zones(d: Drive) -> None:
    """24 programs: 16 pages of zone 0, then 8 of zone 1."""
    d.ns.write(0, blocks_of(range(16))).expect()
    d.ns.write(d.ns.start(1), blocks_of(range(100, 108))).expect()


def test_the_power_needs_a_word(drive: OpenDrive) -> None:
    """No command of zeroes, or of random data, cuts the power."""
    with drive() as d:
        for data in (bytes(4096), bytes(range(256)) * 16):
            for what in (CUT, REWIND, RESTART):
                with d.controller.memory.buffer(4096, data) as at:
                    request = d.controller.admin.run(Command(POWER, nsid=1, prp1=at, cdw10=what))
                request.expect(Status.INVALID_FIELD if what == CUT else Status.INVALID_OPCODE)
        assert not d.controller.csts() & CFS
        d.ns.write(0, pattern(1)).expect()


def test_commands_can_be_turned_off(drive: OpenDrive, log_path: str) -> None:
    """For a guest that is not trusted; the log can still be read."""
    with drive(op_log=log_path, vendor_commands="off") as d:
        for what in (CUT, REWIND, RESTART):
            power(d, what).expect(Status.INVALID_OPCODE)
        d.controller.admin.run(Command(0xC4, nsid=1)).expect(Status.INVALID_OPCODE)
        assert log(d).flags == ON
        assert d.ns.states()[0] == Zs.EMPTY


@pytest.fixture
def log_path(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def test_rewinding(drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path) as d:
        write_two_zones(d)
        d.ns.send(Action.RESET, 0).expect()
        d.ns.write(0, blocks_of([7])).expect()
        # 24 programs, the reset, a program
        state = log(d)
        assert (state.flags, state.ops, state.at) == (ON, 26, 26)
        for op, wp in [(26, 1), (25, 0), (24, 16), (16, 16), (3, 3), (0, 0), (25, 0), (20, 16)]:
            rewind(d, op, "")
            zone = d.ns.zone(0)
            full = wp == 16
            assert zone.wp == (None if full else wp), op
            assert zone.state == (Zs.FULL if full else Zs.CLOSED if wp else Zs.EMPTY)
            if op == 26:
                assert d.ns.read(0)[0] == pattern(7)
            elif wp:
                assert d.ns.read(0, wp)[0] == blocks_of(range(wp))
            # It goes on from there, which is forgotten at the next rewind.
            if not full:
                d.ns.write(wp, blocks_of([99])).expect()
                assert d.ns.read(wp)[0] == pattern(99)
        assert log(d).ops == 26


def test_outcomes(drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        # After the first four pages the other four are being programmed.
        flying = log(d, IN_FLIGHT, 4).entries
        assert len(flying) == 4
        assert {entry[3] for entry in flying} == {0}, "programs"
        rewind(d, 4, "ctac")
        assert d.ns.zone(0).wp == 8
        seen = [d.ns.get(page)[0].status for page in range(8)]
        torn = [page for page in range(8) if seen[page] == Status.UNRECOVERED_READ]
        assert len(torn) == 1 and torn[0] >= 4
        assert seen.count(Status.SUCCESS) == 7
        contents = [d.ns.get(page)[1] for page in range(8) if page not in torn]
        assert contents.count(bytes(4096)) == 1, "the absent one was filled in"
        assert d.ns.get(0, 8)[0].status == Status.UNRECOVERED_READ
        # The same seed, the same outcomes
        states = []
        for _ in range(2):
            rewind(d, 4, seed=5)
            states.append([(d.ns.get(page)[0].status, d.ns.get(page)[1]) for page in range(8)])
        assert states[0] == states[1]


def test_power_cut(drive: OpenDrive) -> None:
    """The controller is dead until it is reset; without a log, too."""
    with drive(oob=16) as d:
        d.ns.write(0, blocks_of(range(4)), pattern(1, 64)).expect()
        with d.controller.memory.buffer(4096, pattern(9)) as at:
            command = Command(Io.WRITE, nsid=1, prp1=at, mptr=at, cdw10=4)
            d.ns.queue.submit(command)
            power(d, CUT, outcomes="a").expect()
            assert d.controller.csts() & CFS
            assert power(d, CUT, outcomes="a").status == Status.COMMAND_SEQUENCE_ERROR
            d.controller.advance(100_000_000)
            assert not d.controller.poll(), "nothing completes"
        d.reset_controller()
        assert not d.controller.csts() & CFS
        assert d.ns.zone(0).wp == 4
        assert d.ns.read(0, 4) == (blocks_of(range(4)), pattern(1, 64))
        d.ns.write(4, pattern(4), pattern(4, 16)).expect()


@pytest.mark.parametrize(
    ("props", "pages"),
    [
        ({"cut_at_op": 3, "cut_outcomes": "aaaa"}, 3),
        ({"cut_at_op": 3, "cut_outcomes": "cccc"}, 6),
        # the first programs end at 402,100 and 404,100 ns, two of each
        ({"cut_at_time": 403_000, "cut_outcomes": "aaaa"}, 2),
    ],
)
def test_cut_by_property(drive: OpenDrive, props: dict[str, str | int], pages: int) -> None:
    with drive(**props) as d:
        transfer = d.ns.transfer(16)
        transfer.fill(blocks_of(range(16)))
        d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 16, transfer))
        d.controller.advance(10_000_000)
        assert d.controller.csts() & CFS
        d.reset_controller()
        assert d.ns.zone(0).wp == pages
        assert d.ns.read(0, min(pages, 2))[0] == blocks_of(range(min(pages, 2)))


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"cut_at_op": 3}, "'cut-at-op' is 3, but QEMU ended before"),
        ({"cut_at_time": 10**9}, "'cut-at-time' is 1000000000 ns, but QEMU ended at "),
        ({}, ""),
    ],
)
def test_a_cut_that_does_not_come_is_told(
    drive: OpenDrive, props: dict[str, str | int], said: str
) -> None:
    with drive(**props) as d:
        d.ns.write(0, pattern(1)).expect()
        d.qemu.quit()
        assert said in d.qemu.stderr() if said else "cut-at" not in d.qemu.stderr()


def test_a_cut_that_came_is_not_told(drive: OpenDrive) -> None:
    with drive(cut_at_op=1) as d:
        d.ns.queue.submit(d.ns.io(Io.WRITE, 0, 1, d.ns.transfer(1)))
        d.controller.advance(10_000_000)
        assert d.controller.csts() & CFS
        d.qemu.quit()
        assert "cut-at" not in d.qemu.stderr()


def test_refusals(qemu: str, drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path) as d:
        d.ns.write(0, pattern(1)).expect()
        assert power(d, REWIND, 0).status == Status.COMMAND_SEQUENCE_ERROR, "it is attached"
        attach(d, detach=True).expect()
        assert power(d, REWIND, 2).status == Status.INVALID_FIELD
        assert power(d, REWIND, 0, "x").status == Status.INVALID_FIELD
        assert power(d, 3).status == Status.INVALID_FIELD
        assert power(d, REWIND, 0, nsid=2).status == Status.INVALID_OPCODE
        assert query(d, 3)[0].status == Status.INVALID_FIELD
        assert query(d, OPS, 2)[0].status == Status.INVALID_FIELD
        assert d.controller.admin.run(Command(0xC5, nsid=1)).status == Status.INVALID_OPCODE
        # one that was told to rewind and is attached again does not
        power(d, REWIND, 0).expect()
        attach(d).expect()
        d.reset_controller()
        assert log(d).flags == ON
        assert d.ns.zone(0).wp == 1
        power(d, RESTART).expect()
        assert (log(d).ops, log(d).at) == (0, 0)
    with open_drive(qemu, Path(log_path).parent / "other.rsd") as d:
        assert query(d)[0].status == Status.INVALID_OPCODE
        assert power(d, REWIND, 0).status == Status.INVALID_OPCODE
        assert power(d, RESTART).status == Status.INVALID_OPCODE


def test_effects_log_names_the_commands(drive: OpenDrive) -> None:
    with drive() as d:
        effects = struct.unpack_from("<256I", d.controller.get_log(5, 1024))
        assert [code for code in range(0xC0, 256) if effects[code]] == [POWER, OPLOG, 0xC4]


def test_formats_are_rewound(drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path, oob=64) as d:
        d.ns.write(0, pattern(1), pattern(1, 64)).expect()
        d.controller.format(0).expect()
        d.ns.refresh()
        d.ns.write(0, pattern(2)).expect()
        rewind(d, 1, "")
        assert d.ns.read(0) == (pattern(1), pattern(1, 64))
        rewind(d, log(d).ops, "")
        assert d.ns.read(0)[0] == pattern(2)


def test_the_log_goes_on(drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path) as d:
        write_two_zones(d)
        d.qemu.kill()
    with drive(op_log=log_path) as d:
        assert log(d).ops == 24
        rewind(d, 5, "")
        assert d.ns.zone(0).wp == 5
        d.qemu.kill()
    with drive(op_log=log_path) as d:
        assert log(d).at == 5
        assert d.ns.zone(0).wp == 5
        rewind(d, 24, "")
        assert d.ns.zone(1).wp == 8


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"cut-outcomes": "12x"}, "'cut-outcomes' is '12x', must be a number"),
        ({"cut-outcomes": "q"}, "'cut-outcomes' is 'q'"),
        ({"trace": "t", "cut-at-op": 1}, "'trace' records no power cuts"),
        ({"trace": "t", "op-log": "l"}, "'trace' records no power cuts"),
        ({"op-log": "/"}, "cannot open the operation log"),
    ],
)
def test_bad_properties(
    qemu: str, tmp_path: Path, props: dict[str, str | int], message: str
) -> None:
    media = tmp_path / "drive.rsd"
    said = start_error(qemu, device_args(media, SMALL | props))
    assert message in said
    assert not media.exists()


def test_used_without_its_log(qemu: str, drive: OpenDrive, tmp_path: Path, log_path: str) -> None:
    media = tmp_path / "drive.rsd"
    with open_drive(qemu, media, {"op-log": log_path}) as d:
        write_two_zones(d)
    with open_drive(qemu, media) as d:
        d.ns.write(d.ns.start(1) + 8, pattern(1)).expect()
    said = start_error(qemu, device_args(media, SMALL | {"op-log": log_path}))
    assert "is not the log of this media file as it is now" in said
    assert media.exists()


def test_conventional(drive: OpenDrive, log_path: str) -> None:
    with drive(op_log=log_path, ftl="page", blocks=24, over_provision=50) as d:
        d.ns.write(0, blocks_of(range(8))).expect()
        before = log(d).ops
        d.ns.write(0, blocks_of(range(50, 58))).expect()
        rewind(d, before, "")
        assert d.ns.read(0, 8)[0] == blocks_of(range(8))
        rewind(d, before, "tttt")
        assert d.ns.read(0, 8)[0] == blocks_of(range(8)), "a torn page is none"
        rewind(d, log(d).ops)
        assert d.ns.read(0, 8)[0] == blocks_of(range(50, 58))


def test_random_write_areas(drive: OpenDrive, log_path: str) -> None:
    """What is in an area is protected; all areas are there again after a rewind to before them."""
    with drive(op_log=log_path, **ZRWA) as d:
        open_area(d, 0).expect()
        put(d, 1, 7).expect()
        d.ns.write(d.ns.start(1), blocks_of(range(8))).expect()
        put(d, 1, 8).expect()
        put(d, 0, 9).expect()
        ops = log(d).ops
        rewind(d, ops, "")
        assert has_area(d, 0)
        expect(d, 0, 9, 8)
        put(d, 1, 10).expect()
        expect(d, 0, 9, 10)
        rewind(d, 0, "")
        for zone in range(AREAS):
            open_area(d, zone).expect()
        rewind(d, ops, "")
        expect(d, 0, 9, 8)
        open_area(d, 2).expect()
        assert open_area(d, 3).status != Status.SUCCESS, "one area of two is zone 0's"
