# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency of one operation at queue depth 1, to the nanosecond, and of a few at once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from drive import OpenDrive
from nvme import Io, Request
from zns import Action, Zs, blocks_of, pattern


@dataclass(frozen=True)
class Timing:
    """Durations in ns."""

    cmd: int
    xfer: int
    read: int
    prog: int
    erase: int

    def props(self) -> dict[str, int]:
        return {
            "t_cmd": self.cmd,
            "t_xfer": self.xfer,
            "t_read": self.read,
            "t_prog": self.prog,
            "t_erase": self.erase,
        }

    @property
    def one_read(self) -> int:
        return self.cmd + self.read + self.xfer

    @property
    def one_program(self) -> int:
        return self.cmd + self.xfer + self.prog

    @property
    def one_erase(self) -> int:
        return self.cmd + self.erase


TIMINGS = [
    Timing(100, 2_000, 30_000, 400_000, 5_000_000),
    Timing(2_500, 30_833, 60_000, 444_278, 3_500_000),  # preset risa
    Timing(7, 13, 1_009, 100_003, 1_000_003),
    Timing(0, 1, 1, 1, 1),
    Timing(40_000, 900_000, 11, 17, 23),  # slower on the bus than in the array
]

timings = pytest.mark.parametrize("timing", TIMINGS, ids=lambda t: f"{t.cmd}-{t.xfer}-{t.read}")
geometries = pytest.mark.parametrize(("channels", "ways"), [(1, 1), (2, 2), (3, 4)])


@timings
@geometries
def test_program_and_read(drive: OpenDrive, timing: Timing, channels: int, ways: int) -> None:
    with drive(channels=channels, ways=ways, **timing.props()) as d:
        for index in range(4):
            assert d.ns.write(index, pattern(index)).expect().latency_ns == timing.one_program
        for index in range(4):
            request, data, _ = d.ns.get(index)
            assert request.expect().latency_ns == timing.one_read
            assert data == pattern(index)


@timings
def test_append(drive: OpenDrive, timing: Timing) -> None:
    with drive(**timing.props()) as d:
        for index in range(3):
            request = d.ns.append(d.ns.start(1), pattern(index)).expect()
            assert request.latency_ns == timing.one_program
            assert request.result == d.ns.start(1) + index


@pytest.mark.parametrize("oob", [0, 16, 64, 128])
def test_metadata_costs_no_time(drive: OpenDrive, oob: int) -> None:
    timing = TIMINGS[0]
    with drive(oob=oob, **timing.props()) as d:
        assert d.ns.oob == oob
        assert d.ns.write(0, pattern(1), bytes(oob)).expect().latency_ns == timing.one_program
        assert d.ns.get(0)[0].expect().latency_ns == timing.one_read


@timings
def test_reset_by_mark_takes_no_time(drive: OpenDrive, timing: Timing) -> None:
    with drive(reset="mark", **timing.props()) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.ns.send(Action.RESET, 0).expect().latency_ns == 0
        assert d.ns.send(Action.RESET, 1).expect().latency_ns == 0
        assert d.log()["erase_host"] == 0


@timings
def test_reset_by_erase(drive: OpenDrive, timing: Timing) -> None:
    with drive(reset="erase", channels=1, ways=1, **timing.props()) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.ns.send(Action.RESET, 0).expect().latency_ns == timing.one_erase
        # Nothing was programmed in this zone, so nothing is to be erased.
        assert d.ns.send(Action.RESET, 1).expect().latency_ns == 0
        assert d.log()["erase_host"] == 1


def test_reset_by_erase_shares_the_bus(drive: OpenDrive) -> None:
    timing = TIMINGS[0]
    with drive(reset="erase", channels=2, ways=3, blocks=2, **timing.props()) as d:
        d.ns.write(0, blocks_of(range(6))).expect()
        latency = d.ns.send(Action.RESET, 0).expect().latency_ns
        assert latency == 3 * timing.cmd + timing.erase
        assert d.log()["erase_host"] == 6


@timings
def test_first_program_on_an_unerased_block(drive: OpenDrive, timing: Timing) -> None:
    with drive(reset="mark", channels=1, ways=1, blocks=1, spare_blocks=0, **timing.props()) as d:
        assert d.ns.write(0, pattern(1)).expect().latency_ns == timing.one_program
        d.ns.send(Action.RESET, 0).expect()
        request = d.ns.write(0, pattern(2)).expect()
        assert request.latency_ns == timing.one_erase + timing.one_program
        # The erasure was for the whole block.
        assert d.ns.write(1, pattern(3)).expect().latency_ns == timing.one_program
        assert d.ns.read(0, 2)[0] == blocks_of([2, 3])
        log = d.log()
        assert (log["erase_host"], log["erase_on_demand"], log["erase_idle"]) == (1, 1, 0)


def test_idle_erasure_takes_the_erase_out_of_the_program(drive: OpenDrive) -> None:
    timing = TIMINGS[0]
    with drive(
        channels=1, ways=1, blocks=1, spare_blocks=0, idle_erase=1_000_000, **timing.props()
    ) as d:
        d.ns.write(0, pattern(1)).expect()
        d.ns.send(Action.RESET, 0).expect()
        d.controller.advance(1_000_000 + timing.one_erase)
        assert d.ns.write(0, pattern(2)).expect().latency_ns == timing.one_program
        log = d.log()
        assert (log["erase_host"], log["erase_on_demand"], log["erase_idle"]) == (1, 0, 1)


@timings
def test_finish_by_mark_takes_no_time(drive: OpenDrive, timing: Timing) -> None:
    with drive(finish="mark", **timing.props()) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.ns.send(Action.FINISH, 0).expect().latency_ns == 0
        assert d.ns.zone(0).state == Zs.FULL
        assert d.log()["prog_pad"] == 0


@timings
def test_finish_by_padding(drive: OpenDrive, timing: Timing) -> None:
    with drive(finish="pad", channels=1, ways=1, pages=4, **timing.props()) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.ns.send(Action.FINISH, 0).expect().latency_ns == 3 * timing.one_program
        assert d.ns.zone(0).state == Zs.FULL
        assert d.log()["prog_pad"] == 3
        assert d.ns.read(0, 4)[0] == pattern(1) + bytes(3 * 4096)


@timings
def test_unwritten_read_takes_no_time(drive: OpenDrive, timing: Timing) -> None:
    with drive(oob=16, **timing.props()) as d:
        request, data, oob = d.ns.get(3, 2)
        assert request.expect().latency_ns == 0
        assert (data, oob) == (bytes(8192), bytes(32))
        log = d.log()
        assert (log["unwritten_reads"], log["read_host"]) == (2, 0)


@timings
def test_flush_takes_no_time(drive: OpenDrive, timing: Timing) -> None:
    with drive(**timing.props()) as d:
        d.ns.write(0, pattern(1)).expect()
        assert d.ns.flush().expect().latency_ns == 0


@timings
def test_channels_work_in_parallel_and_ways_share_the_bus(drive: OpenDrive, timing: Timing) -> None:
    with drive(channels=2, ways=2, **timing.props()) as d:
        # A page on each channel.
        assert d.ns.write(0, blocks_of([1, 2])).expect().latency_ns == timing.one_program
        assert d.ns.get(0, 2)[0].expect().latency_ns == timing.one_read
    with drive(channels=2, ways=2, **timing.props()) as d:
        # A page on each die, from the second page of the first stripe on.
        latency = d.ns.write(d.ns.start(1), blocks_of([1, 2, 3, 4])).expect().latency_ns
        bus = timing.cmd + timing.xfer
        assert latency == 2 * bus + timing.prog
        latency = d.ns.get(d.ns.start(1), 4)[0].expect().latency_ns
        # Both commands go out first; the second page waits for whatever is last to be ready.
        first_out = timing.cmd + timing.read + timing.xfer
        assert latency >= first_out + timing.cmd
        assert latency <= first_out + timing.cmd + timing.xfer


@timings
def test_one_die_works_in_sequence(drive: OpenDrive, timing: Timing) -> None:
    with drive(channels=1, ways=1, pages=8, **timing.props()) as d:
        assert d.ns.write(0, blocks_of(range(5))).expect().latency_ns == 5 * timing.one_program
        assert d.ns.get(0, 5)[0].expect().latency_ns == 5 * timing.one_read


def test_each_command_completes_at_its_own_time(drive: OpenDrive) -> None:
    timing = TIMINGS[0]
    with drive(channels=1, ways=1, pages=8, **timing.props()) as d:
        second = d.controller.create_queue(2)
        other = d.ns.on(second)
        transfers = [d.ns.transfer(1) for _ in range(4)]
        requests: list[Request] = []
        for index, transfer in enumerate(transfers):
            transfer.fill(pattern(index))
            queue = d.ns.queue if index % 2 else second
            requests.append(queue.submit(d.ns.io(Io.WRITE, index, 1, transfer)))
        d.controller.wait(*requests)
        assert [request.expect().latency_ns for request in requests] == [
            timing.one_program * count for count in (1, 2, 3, 4)
        ]
        assert other.read(0, 4)[0] == blocks_of(range(4))


def test_the_second_queue_is_as_fast(drive: OpenDrive) -> None:
    timing = TIMINGS[1]
    with drive(**timing.props()) as d:
        other = d.ns.on(d.controller.create_queue(2, depth=2))
        assert other.write(0, pattern(1)).expect().latency_ns == timing.one_program
        assert other.get(0)[0].expect().latency_ns == timing.one_read


@pytest.mark.parametrize("queue", ["way", "global"])
def test_head_of_line_blocking_of_the_global_queue(drive: OpenDrive, queue: str) -> None:
    """Two pages for one die, then one for another (RISA figure 6)."""
    timing = TIMINGS[0]
    with drive(channels=1, ways=2, pages=8, queue=queue, **timing.props()) as d:
        d.ns.write(0, blocks_of(range(6))).expect()
        transfers = [d.ns.transfer(1) for _ in range(3)]
        requests = [
            d.ns.queue.submit(d.ns.io(Io.READ, lba, 1, transfer))
            for lba, transfer in zip((0, 2, 1), transfers, strict=True)
        ]
        d.controller.wait(*requests)
        first, second, other = (request.latency_ns for request in requests)
        assert first == timing.one_read or queue == "way"
        if queue == "way":
            assert other < second
        else:
            assert other > second - timing.one_read + timing.cmd
            assert other >= timing.one_read + timing.cmd + timing.read + timing.xfer


def test_times_of_zero_complete_without_the_clock(drive: OpenDrive) -> None:
    with drive(t_cmd=0, t_xfer=0, t_read=0, t_prog=0, t_erase=0) as d:
        assert d.ns.write(0, blocks_of(range(16))).expect().latency_ns == 0
        request, data, _ = d.ns.get(0, 16)
        assert request.expect().latency_ns == 0
        assert data == blocks_of(range(16))
