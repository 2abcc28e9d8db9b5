# SPDX-License-Identifier: GPL-2.0-or-later
"""The same commands at the same virtual times: the same completions, counters and media file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from drive import LOG_ID, SMALL, digest, open_drive
from nvme import Io, Request
from zns import Action, blocks_of


def play(qemu: str, media: Path, props: dict[str, str | int]) -> tuple[list[object], bytes, str]:
    """Completions in order, the log page, the digest of the media file."""
    rng = random.Random(42)
    with open_drive(qemu, media, props) as drive:
        other = drive.ns.on(drive.controller.create_queue(2))
        pending: list[Request] = []
        history: list[object] = []
        for index in range(400):
            space = rng.choice([drive.ns, other])
            zone = rng.randrange(space.zones)
            blocks = rng.randrange(1, 4)
            if rng.random() < 0.1:
                command = space.send_command(Action.RESET, space.start(zone))
            else:
                opcode = rng.choice([Io.READ, Io.ZONE_APPEND, Io.ZONE_APPEND])
                transfer = space.transfer(blocks)
                transfer.fill(blocks_of(range(index, index + blocks)), bytes(16 * blocks))
                command = space.io(opcode, space.start(zone), blocks, transfer)
            pending.append(space.queue.submit(command))
            if rng.random() < 0.5:
                drive.controller.step(rng.randrange(1, 5))
        drive.controller.wait(*pending)
        for request in pending:
            history.append((request.completed_ns, request.raw_status, request.result))
        log = drive.controller.get_log(LOG_ID, 4096, nsid=1)
        drive.qemu.quit()
    return history, log, digest(media)


@pytest.mark.parametrize("queue", ["way", "global"])
def test_two_runs_are_identical(qemu: str, tmp_path: Path, queue: str) -> None:
    props = SMALL | {
        "queue": queue,
        "oob": 16,
        "idle-erase": 100_000,
        "wl-threshold": 2,
        "bad-blocks-ppm": 100_000,
        "blocks": 8,
        "spare-blocks": 4,
    }
    first = play(qemu, tmp_path / "first", props)
    second = play(qemu, tmp_path / "second", props)
    assert first[0] == second[0]
    assert first[1] == second[1]
    assert first[2] == second[2]


def test_the_seed_matters(qemu: str, tmp_path: Path) -> None:
    """Or two equal runs would say nothing about what is random."""
    digests = set()
    for seed in (1, 2):
        media = tmp_path / str(seed)
        with open_drive(qemu, media, {"seed": seed, "bad-blocks-ppm": 200_000, "spare-blocks": 6}):
            pass
        digests.add(digest(media))
    assert len(digests) == 2
