# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturated sequential bandwidth against the closed form, within 1%."""

from __future__ import annotations

from pathlib import Path

import pytest
from drive import Drive, OpenDrive, device_args
from nvme import Io, Request
from qtest import Qemu
from zns import BLOCK

T_CMD, T_XFER, T_READ, T_PROG = 2_500, 30_833, 60_000, 444_278  # preset risa
ROUNDS = 48  # pages a die
WARM_UP = 8

POINTS = [(1, 1), (1, 8), (2, 2), (3, 2), (4, 8), (8, 1), (8, 4), (16, 3), (16, 8)]
FAST_BUS = {"t_xfer": 5_000, "t_prog": 200_000, "t_read": 50_000, "t_cmd": 1_000}
SLOW_BUS = {"t_xfer": 100_000, "t_prog": 200_000, "t_read": 50_000, "t_cmd": 1_000}


def stream(d: Drive, opcode: Io, channels: int, ways: int) -> float:
    """Bytes per virtual ns of a sequential stream of stripes, start and end left out."""
    depth = 4 * ways
    transfers = [d.ns.transfer(channels) for _ in range(depth)]
    requests: list[Request] = []
    total = ROUNDS * ways
    for index in range(total):
        if index >= depth:
            d.controller.wait(requests[index - depth])
        command = d.ns.io(opcode, index * channels, channels, transfers[index % depth])
        requests.append(d.ns.queue.submit(command))
    d.controller.wait(*requests)
    done = sorted(request.expect().completed_ns for request in requests)
    first, last = WARM_UP * ways - 1, (ROUNDS - WARM_UP) * ways - 1
    return (last - first) * channels * BLOCK / (done[last] - done[first])


@pytest.mark.parametrize(("channels", "ways"), POINTS)
@pytest.mark.parametrize("timing", [{}, FAST_BUS, SLOW_BUS], ids=["risa", "fast-bus", "slow-bus"])
def test_sequential_bandwidth(
    drive: OpenDrive, channels: int, ways: int, timing: dict[str, int]
) -> None:
    times = {"t_cmd": T_CMD, "t_xfer": T_XFER, "t_read": T_READ, "t_prog": T_PROG} | timing
    with drive(channels=channels, ways=ways, pages=ROUNDS, blocks=1, **times) as d:
        assert d.ns.zone(0).capacity == ROUNDS * channels * ways
        slot = times["t_cmd"] + times["t_xfer"]
        for opcode, array in ((Io.WRITE, times["t_prog"]), (Io.READ, times["t_read"])):
            expected = channels * BLOCK * min(1 / slot, ways / (slot + array))
            measured = stream(d, opcode, channels, ways)
            assert measured == pytest.approx(expected, rel=0.01), opcode.name


def test_preset_risa(qemu: str, media: Path) -> None:
    """240,000 reads and 67,000 writes of 4 KiB a second (RISA section 4.1), within 2%."""
    count, depth = 8_000, 1_000
    with Qemu(qemu, device_args(media, {"preset": "risa"})) as machine:
        d = Drive(machine)
        transfer = d.ns.transfer(1)
        for opcode, rate in ((Io.WRITE, 67_000), (Io.READ, 240_000)):
            requests: list[Request] = []
            while len(requests) < count:
                room = depth - len(d.ns.queue.in_flight)
                lbas = range(len(requests), min(count, len(requests) + room))
                requests += d.ns.queue.submit_all(d.ns.io(opcode, lba, 1, transfer) for lba in lbas)
                d.controller.step()
            d.controller.wait(*requests)
            done = sorted(request.expect().completed_ns for request in requests)
            measured = 5_120 / (done[6_144] - done[1_024]) * 1e9  # whole rounds of the 32 dies
            assert measured == pytest.approx(rate, rel=0.02)
