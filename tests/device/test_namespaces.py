# SPDX-License-Identifier: GPL-2.0-or-later
"""Several namespaces on one controller, of this kind and of QEMU's own."""

from __future__ import annotations

import struct
from pathlib import Path

from drive import LOG_ID, SMALL, decode_log, device_args
from nvme import Controller, Io, Status
from qtest import Qemu
from zns import Namespace, pattern


def namespace_args(media: Path, name: str, props: dict[str, str | int]) -> list[str]:
    settings = "".join(f",{key}={value}" for key, value in (SMALL | props).items())
    return ["-device", f"rsd-ns,bus=nvme0,id={name},media={media}{settings}"]


def test_two_drives(qemu: str, tmp_path: Path) -> None:
    args = device_args(tmp_path / "a", SMALL | {"nsid": 1, "oob": 16})
    args += namespace_args(tmp_path / "b", "ns1", {"nsid": 2, "t-prog": 999, "channels": 1})
    with Qemu(qemu, args) as machine:
        controller = Controller(machine)
        queue = controller.create_queue()
        first, second = Namespace(queue, 1), Namespace(queue, 2)
        assert (first.oob, second.oob) == (16, 0)
        assert first.write(0, pattern(1), pattern(2, 16)).expect().latency_ns == 402_100
        assert second.write(0, pattern(3)).expect().latency_ns == 3_099
        # They are drives of their own: the slow one does not hold up the fast one.
        slow, fast = first.transfer(1), second.transfer(1)
        requests = [
            queue.submit(first.io(Io.WRITE, 1, 1, slow)),
            queue.submit(second.io(Io.WRITE, 1, 1, fast)),
        ]
        controller.wait(*requests)
        assert [request.expect().latency_ns for request in requests] == [402_100, 3_099]
        assert first.read(0) == (pattern(1), pattern(2, 16))
        assert second.read(0) == (pattern(3), b"")
        for nsid, oob in ((1, 16), (2, 0)):
            log, _, _ = decode_log(controller.get_log(LOG_ID, 4096, nsid=nsid))
            assert (log["oob_bytes"], log["prog_host"]) == (oob, 2)
        controller.format(2, nsid=2).expect()
        assert first.read(0) == (pattern(1), pattern(2, 16)), "only namespace 2 was formatted"
        second.refresh()
        assert second.oob == 64


def test_beside_a_stock_namespace(qemu: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    with raw.open("wb") as file:
        file.truncate(1 << 20)
    args = [
        *device_args(tmp_path / "a", SMALL | {"nsid": 1}),
        *["-drive", f"file={raw},if=none,id=d0,format=raw"],
        *[
            "-device",
            "nvme-ns,bus=nvme0,drive=d0,nsid=2,logical_block_size=4096,physical_block_size=4096",
        ],
    ]
    with Qemu(qemu, args) as machine:
        controller = Controller(machine)
        queue = controller.create_queue()
        drive, stock = Namespace(queue, 1), Namespace(queue, 2, zoned=False)
        drive.write(0, pattern(1)).expect()
        stock.write(7, pattern(2)).expect()
        assert drive.read(0)[0] == pattern(1)
        assert stock.read(7)[0] == pattern(2)
        # A command that only one of them has is not promised, but it still works there.
        (oncs,) = struct.unpack_from("<H", controller.identify(0x01), 520)
        assert not oncs & 1
        transfer = stock.transfer(1)
        transfer.fill(pattern(2))
        queue.run(stock.io(Io.COMPARE, 7, 1, transfer)).expect()
        queue.run(drive.io(Io.COMPARE, 0, 1, transfer)).expect(Status.INVALID_OPCODE)
        assert controller.identify(0x01)[525] & 1, "the stock namespace has a volatile cache"
        # Requests of both kinds in flight while the queue goes away.
        queue.submit(drive.io(Io.WRITE, 1, 1, drive.transfer(1)))
        queue.submit(stock.io(Io.WRITE, 8, 1, transfer))
        controller.delete_queue(1)
        machine.quit()


def shared_args(media: Path) -> list[str]:
    settings = "".join(f",{key}={value}" for key, value in SMALL.items())
    return [
        *["-device", "nvme-subsys,id=subsys0"],
        *["-device", "nvme,id=nvme0,subsys=subsys0,serial=a,inline-queues=on"],
        *["-device", "nvme,id=nvme1,subsys=subsys0,serial=a,inline-queues=on"],
        *["-device", f"rsd-ns,bus=nvme0,nsid=1,media={media}{settings}"],
    ]


def test_two_controllers_share_a_drive(qemu: str, media: Path) -> None:
    """What one has in flight survives the reset of the other."""
    with Qemu(qemu, shared_args(media)) as machine:
        one = Controller(machine, 0)
        two = Controller(machine, 1, one.memory)
        first, second = Namespace(one.create_queue()), Namespace(two.create_queue())
        first.write(0, pattern(1)).expect()
        second.write(1, pattern(2)).expect()
        assert first.read(1)[0] == pattern(2)
        assert second.zone(0).wp == 2
        transfers = [first.transfer(1) for _ in range(12)]
        requests = []
        for index, transfer in enumerate(transfers):
            transfer.fill(pattern(100 + index))
            space = first if index % 2 else second
            requests.append(space.queue.submit(space.io(Io.ZONE_APPEND, 16, 1, transfer)))
        machine.step()
        one.disable()
        two.wait(*requests[0::2])
        for request in requests[0::2]:
            place = request.expect().result
            assert second.read(place)[0] == pattern(100 + requests.index(request))
        one.enable()
        first = Namespace(one.create_queue())
        first.append(16, pattern(7)).expect()
        assert second.zone(1).wp == 13
        machine.quit()
