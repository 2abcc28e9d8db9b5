# SPDX-License-Identifier: GPL-2.0-or-later
"""Random commands, restarts and kills against a model of a zoned namespace in Python.

The model knows the zone state machine, the open and active limits and the content of every block.
It is written from the specification, not from the device.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from drive import Drive, OpenDrive
from nvme import Io, Request, Status
from zns import Action, Zs, blocks_of, pattern

MAX_OPEN, MAX_ACTIVE = 3, 5
OPEN = (Zs.IMPLICITLY_OPEN, Zs.EXPLICITLY_OPEN)
ACTIVE = (*OPEN, Zs.CLOSED)


@dataclass
class ModelZone:
    capacity: int
    state: Zs = Zs.EMPTY
    wp: int = 0
    tags: list[int] = field(default_factory=list)  # of the blocks written, from the start


class Model:
    def __init__(self, zones: int, capacity: int) -> None:
        self.zones = [ModelZone(capacity) for _ in range(zones)]
        self.opened: list[ModelZone] = []  # implicitly, longest ago first

    def count(self, states: tuple[Zs, ...]) -> int:
        return sum(zone.state in states for zone in self.zones)

    def _set(self, zone: ModelZone, state: Zs) -> None:
        if zone in self.opened:
            self.opened.remove(zone)
        zone.state = state
        if state == Zs.IMPLICITLY_OPEN:
            self.opened.append(zone)

    def _open(self, zone: ModelZone, state: Zs) -> Status:
        """Makes a zone open, if the limits allow it."""
        if zone.state == Zs.EXPLICITLY_OPEN or zone.state == state:
            return Status.SUCCESS
        if zone.state in (Zs.EMPTY, Zs.CLOSED):
            if self.count(OPEN) == MAX_OPEN and self.opened:
                self._set(self.opened[0], Zs.CLOSED)
            if zone.state == Zs.EMPTY and self.count(ACTIVE) == MAX_ACTIVE:
                return Status.ZONE_TOO_MANY_ACTIVE
            if self.count(OPEN) == MAX_OPEN:
                return Status.ZONE_TOO_MANY_OPEN
        self._set(zone, state)
        return Status.SUCCESS

    def write(self, zone: ModelZone, offset: int, tags: list[int]) -> Status:
        if zone.state == Zs.FULL:
            return Status.ZONE_FULL
        if offset != zone.wp:
            return Status.ZONE_INVALID_WRITE
        if zone.wp + len(tags) > zone.capacity:
            return Status.ZONE_BOUNDARY
        status = self._open(zone, Zs.IMPLICITLY_OPEN)
        if status == Status.SUCCESS:
            zone.tags += tags
            zone.wp += len(tags)
            if zone.wp == zone.capacity:
                self._set(zone, Zs.FULL)
        return status

    def act(self, zone: ModelZone, action: Action) -> Status:
        if action == Action.OPEN:
            if zone.state == Zs.FULL:
                return Status.ZONE_INVALID_TRANSITION
            return self._open(zone, Zs.EXPLICITLY_OPEN)
        if action == Action.CLOSE:
            if zone.state not in ACTIVE:
                return Status.ZONE_INVALID_TRANSITION
            self._set(zone, Zs.CLOSED)
        if action == Action.FINISH:
            self._set(zone, Zs.FULL)
        if action == Action.RESET:
            self._set(zone, Zs.EMPTY)
            zone.wp = 0
            zone.tags = []
        return Status.SUCCESS

    def power_cycle(self) -> None:
        self.opened = []
        for zone in self.zones:
            if zone.state in ACTIVE:
                zone.state = Zs.CLOSED if zone.wp else Zs.EMPTY

    def erase(self) -> None:
        for zone in self.zones:
            self.act(zone, Action.RESET)


class Player:
    """Draws commands, gives them to the device and the model, and compares."""

    def __init__(self, drive: Drive, model: Model, rng: random.Random) -> None:
        self.drive, self.model, self.rng = drive, model, rng
        self.next_tag = rng.randrange(1 << 20)

    def content(self, tags: list[int]) -> tuple[bytes, bytes]:
        oob = self.drive.ns.oob
        return blocks_of(tags), b"".join(pattern(tag, oob) if oob else b"" for tag in tags)

    def tags(self, count: int) -> list[int]:
        self.next_tag += count
        return list(range(self.next_tag - count, self.next_tag))

    def write(self) -> None:
        ns, rng = self.drive.ns, self.rng
        index = rng.randrange(len(self.model.zones))
        zone = self.model.zones[index]
        offset = zone.wp if rng.random() < 0.9 else rng.randrange(zone.capacity)
        tags = self.tags(rng.choice([1, 1, 2, 3, 5, 8]))
        if offset + len(tags) > ns.zone_size:
            return  # not even inside the zone
        expected = self.model.write(zone, offset, tags)
        request = ns.write(ns.start(index) + offset, *self.content(tags))
        request.expect(expected)

    def append(self) -> None:
        index = self.rng.randrange(len(self.model.zones))
        zone = self.model.zones[index]
        tags = self.tags(self.rng.choice([1, 2, 7]))
        place = self.drive.ns.start(index) + zone.wp
        expected = self.model.write(zone, zone.wp, tags)
        request = self.drive.ns.append(self.drive.ns.start(index), *self.content(tags))
        request.expect(expected)
        if expected == Status.SUCCESS:
            assert request.result == place

    def burst(self) -> None:
        """Appends to several zones and reads of what is there, all in flight at once."""
        ns = self.drive.ns
        reads: list[tuple[Request, list[int], Callable[[], tuple[bytes, bytes]]]] = []
        requests: list[Request] = []
        expected: list[Status] = []
        transfers = []
        for _ in range(self.rng.randrange(2, 30)):
            index = self.rng.randrange(len(self.model.zones))
            zone = self.model.zones[index]
            if zone.tags and self.rng.random() < 0.4:
                first = self.rng.randrange(len(zone.tags))
                tags = zone.tags[first : first + 4]
                transfer = ns.transfer(len(tags))
                lba = ns.start(index) + first
                request = ns.queue.submit(ns.io(Io.READ, lba, len(tags), transfer))
                reads.append((request, tags, transfer.read))
                status = Status.SUCCESS
            else:
                tags = self.tags(self.rng.choice([1, 2, 4]))
                transfer = ns.transfer(len(tags))
                transfer.fill(*self.content(tags))
                status = self.model.write(zone, zone.wp, tags)
                command = ns.io(Io.ZONE_APPEND, ns.start(index), len(tags), transfer)
                request = ns.queue.submit(command)
            transfers.append(transfer)
            requests.append(request)
            expected.append(status)
        self.drive.controller.wait(*requests)
        for request, status in zip(requests, expected, strict=True):
            request.expect(status)
        for _, tags, content in reads:
            assert content() == self.content(tags)
        for transfer in transfers:
            transfer.free()

    def act(self) -> None:
        index = self.rng.randrange(len(self.model.zones))
        action = self.rng.choice([Action.OPEN, Action.CLOSE, Action.FINISH] + 3 * [Action.RESET])
        expected = self.model.act(self.model.zones[index], action)
        self.drive.ns.send(action, index).expect(expected)

    def read(self) -> None:
        ns = self.drive.ns
        index = self.rng.randrange(len(self.model.zones))
        zone = self.model.zones[index]
        first = self.rng.randrange(ns.zone_size)
        count = self.rng.randrange(1, min(16, ns.zone_size - first) + 1)
        data, oob = self.content(zone.tags[first : first + count])
        missing = count - len(zone.tags[first : first + count])
        expected = data + bytes(missing * 4096), oob + bytes(missing * ns.oob)
        assert ns.read(ns.start(index) + first, count) == expected

    def idle(self) -> None:
        self.drive.controller.advance(self.rng.choice([1_000, 1_000_000, 100_000_000]))

    def reset_controller(self) -> None:
        self.drive.reset_controller(self.rng.choice([0, 1_000_000]))

    def format(self) -> None:
        if self.rng.random() < 0.2:
            self.drive.controller.format(self.rng.randrange(4)).expect()
            self.drive.ns.refresh()
            self.model.erase()

    def play(self, steps: int) -> None:
        weights = {
            self.write: 30,
            self.append: 15,
            self.burst: 8,
            self.act: 15,
            self.read: 20,
            self.idle: 5,
            self.reset_controller: 1,
            self.format: 1,
        }
        for move in self.rng.choices(list(weights), list(weights.values()), k=steps):
            move()
            if self.rng.random() < 0.1:
                self.compare()
        self.compare()

    def compare(self) -> None:
        ns = self.drive.ns
        for index, (zone, seen) in enumerate(zip(self.model.zones, ns.report(), strict=True)):
            assert seen.state == zone.state, index
            assert seen.wp == (None if zone.state == Zs.FULL else zone.wp), index
            data, oob = self.content(zone.tags)
            if zone.tags:
                assert ns.read(ns.start(index), len(zone.tags)) == (data, oob), index


DRIVES: list[dict[str, int | str]] = [
    {"channels": 2, "ways": 2},
    {"channels": 3, "ways": 2, "queue": "global", "bad_blocks_ppm": 50_000, "spare_blocks": 6},
    {"channels": 2, "ways": 4, "segment": "way", "reset": "erase", "blocks": 4},
    {"channels": 1, "ways": 1, "finish": "pad", "pages": 16, "spare_blocks": 1},
    {
        "channels": 2,
        "ways": 1,
        "blocks": 8,
        "spare_blocks": 1,
        "idle_erase": 10_000,
        "wl_threshold": 2,
    },
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("props", DRIVES, ids=lambda p: "-".join(str(v) for v in p.values()))
def test_against_the_model(drive: OpenDrive, props: dict[str, int | str], seed: int) -> None:
    rng = random.Random(seed)
    limits = {"zoned_max_open": MAX_OPEN, "zoned_max_active": MAX_ACTIVE}
    model: Model | None = None
    for _ in range(4):
        with drive(oob=16, **limits, **props) as d:
            if model is None:
                report = d.ns.report()
                model = Model(len(report), report[0].capacity)
            player = Player(d, model, rng)
            player.compare()
            player.play(60)
            if rng.random() < 0.5:
                d.qemu.quit()
            else:
                d.qemu.kill()
        model.power_cycle()
