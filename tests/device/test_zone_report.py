# SPDX-License-Identifier: GPL-2.0-or-later
"""Zone Management Receive: filters, partial reports, extended reports, bad requests."""

from __future__ import annotations

import pytest
from drive import NAMESPACE_PATH, OpenDrive, reach_all
from nvme import Status
from zns import Action, Filter, Zs, blocks_of, pattern


@pytest.mark.parametrize("select", list(Filter), ids=lambda f: f.name.lower())
def test_filter(drive: OpenDrive, select: Filter) -> None:
    with drive(blocks=9) as d:
        reach_all(d)
        request, data = d.ns.receive(4096, select=select)
        request.expect()
        count, zones = d.ns.parse_report(data)
        states = [*Zs, Zs.EMPTY, Zs.EMPTY]
        expected = [
            index
            for index, state in enumerate(states)
            if select == Filter.ALL or state.name == select.name
        ]
        assert count == len(expected)
        assert [zone.start // d.ns.zone_size for zone in zones] == expected


def test_partial_bit(drive: OpenDrive) -> None:
    with drive() as d:
        size = 64 + 2 * 64
        request, data = d.ns.receive(size, partial=True)
        request.expect()
        assert (d.ns.parse_report(data)[0], len(d.ns.parse_report(data)[1])) == (2, 2)
        request, data = d.ns.receive(size, partial=False)
        request.expect()
        assert (d.ns.parse_report(data)[0], len(d.ns.parse_report(data)[1])) == (6, 2)


def test_report_from_a_zone_on(drive: OpenDrive) -> None:
    with drive() as d:
        for slba in (d.ns.start(4), d.ns.start(4) + 3):
            request, data = d.ns.receive(4096, slba=slba, partial=False)
            request.expect()
            count, zones = d.ns.parse_report(data)
            assert (count, [zone.start for zone in zones]) == (2, [64, 80])


def test_header_alone(drive: OpenDrive) -> None:
    with drive() as d:
        request, data = d.ns.receive(64, partial=False)
        request.expect()
        assert d.ns.parse_report(data) == (6, [])


def test_extended(drive: OpenDrive) -> None:
    with drive(zd_ext=128) as d:
        assert d.ns.extension_size == 128
        d.ns.set_extension(1, pattern(1, 128)).expect()
        zones = d.ns.report(extended=True)
        assert [zone.extension for zone in zones] == [
            pattern(1, 128) if index == 1 else bytes(128) for index in range(6)
        ]
        # A descriptor that does not fit with its extension is left out.
        request, data = d.ns.receive(64 + 2 * 192 - 4, extended=True)
        request.expect()
        assert d.ns.parse_report(data, extended=True)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"size": 60}, Status.INVALID_FIELD),
        ({"size": 4096, "action": 2}, Status.INVALID_FIELD),
        ({"size": 4096, "select": 8}, Status.INVALID_FIELD),
        ({"size": 4096, "slba": 96}, Status.LBA_RANGE),
        ({"size": 129 * 4096}, Status.INVALID_FIELD),  # above MDTS
    ],
)
def test_bad_request(drive: OpenDrive, arguments: dict[str, int], status: Status) -> None:
    with drive() as d:
        d.ns.receive(**arguments)[0].expect(status)  # type: ignore[arg-type]


def test_capacity_below_size(drive: OpenDrive) -> None:
    """3 channels make zones of 12 blocks at every 16th block."""
    with drive(channels=3, ways=1) as d:
        assert d.ns.zone_size == 16
        assert [(zone.start, zone.capacity) for zone in d.ns.report()] == [
            (16 * index, 12) for index in range(6)
        ]
        start = d.ns.start(1)
        d.ns.write(start, blocks_of(range(10))).expect()
        d.ns.write(start + 10, blocks_of(range(3))).expect(Status.ZONE_BOUNDARY)
        d.ns.append(start, blocks_of(range(3))).expect(Status.ZONE_BOUNDARY)
        assert d.ns.zone(1).wp == 10
        d.ns.write(start + 10, blocks_of([10, 11])).expect()
        assert d.ns.zone(1).state == Zs.FULL
        d.ns.write(start + 12, pattern(1)).expect(Status.ZONE_FULL)
        # Above the capacity there is nothing, up to the next zone.
        assert d.ns.read(start + 8, 8)[0] == blocks_of([8, 9, 10, 11]) + bytes(4 * 4096)
        d.ns.get(start + 8, 9)[0].expect(Status.ZONE_BOUNDARY)
        d.ns.send(Action.RESET, 1).expect()
        assert d.ns.read(start, 16)[0] == bytes(16 * 4096)


@pytest.mark.parametrize(("channels", "ways"), [(2, 3), (3, 2)])
def test_a_segment_of_one_way(drive: OpenDrive, channels: int, ways: int) -> None:
    """segment=way: a zone is a block of every channel of one way."""
    with drive(channels=channels, ways=ways, segment="way", blocks=2) as d:
        assert len(d.ns.report()) == 2 * ways
        assert d.ns.zone(0).capacity == 4 * channels
        for zone in range(2 * ways):
            data = blocks_of(range(100 * zone, 100 * zone + 4 * channels))
            d.ns.write(d.ns.start(zone), data).expect()
        for zone in range(2 * ways):
            data = blocks_of(range(100 * zone, 100 * zone + 4 * channels))
            assert d.ns.read(d.ns.start(zone), 4 * channels)[0] == data


def test_reads_across_zones_where_they_are_allowed(drive: OpenDrive) -> None:
    """zoned.cross_read=on; the gap above a zone's capacity reads as zeroes."""
    with drive(channels=3, ways=1, zoned_cross_read="on") as d:
        assert d.controller.identify(0x05, 1, csi=2)[2] & 1
        d.ns.write(0, blocks_of(range(12))).expect()
        d.ns.write(32, blocks_of(range(32, 36))).expect()
        expected = blocks_of([10, 11]) + bytes(20 * 4096) + blocks_of(range(32, 36))
        assert d.ns.read(10, 26)[0] == expected
        d.qemu.qom_set(NAMESPACE_PATH, "zone-offline", 1)
        d.ns.get(10, 26)[0].expect(Status.ZONE_OFFLINE)
        d.ns.get(90, 7)[0].expect(Status.LBA_RANGE)
