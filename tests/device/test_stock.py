# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own NVMe namespaces keep working, and the test library is right about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvme import Command, Controller, Io, Status
from qtest import Qemu, QemuError
from zns import Action, Namespace, Zs, blocks_of, pattern


def stock_args(raw: Path, controller: str = "", namespace: str = "") -> list[str]:
    with raw.open("wb") as file:
        file.truncate(16 << 20)
    return [
        *["-drive", f"file={raw},if=none,id=d0,format=raw"],
        *["-device", f"nvme,id=nvme0,serial=stock{controller}"],
        "-device",
        f"nvme-ns,bus=nvme0,drive=d0,logical_block_size=4096,physical_block_size=4096{namespace}",
    ]


def test_conventional_namespace_round_trip(qemu: str, tmp_path: Path) -> None:
    with Qemu(qemu, stock_args(tmp_path / "raw")) as machine:
        controller = Controller(machine)
        ident = controller.identify(0x01)
        assert ident[4:24].decode().strip() == "stock"
        queue = controller.create_queue(depth=64)
        namespace = Namespace(queue, zoned=False)
        transfer = namespace.transfer(9)
        data = blocks_of(range(9))
        transfer.fill(data)
        queue.run(namespace.io(Io.WRITE, 5, 9, transfer)).expect()
        transfer.free()
        assert namespace.read(5, 9)[0] == data
        namespace.get(4096, 1)[0].expect(Status.LBA_RANGE)
        machine.quit()


def test_identify_is_that_of_upstream(qemu: str, tmp_path: Path) -> None:
    """What our namespaces take out of Identify Controller, or add, is there as in upstream's QEMU.

    The values are those of nvme_init_ctrl() in hw/nvme/ctrl.c without our patches.
    """
    with Qemu(qemu, stock_args(tmp_path / "raw")) as machine:
        ident = Controller(machine).identify(0x01)
        oaes, oacs, oncs, ocfs = (
            int.from_bytes(ident[at : at + size], "little")
            for at, size in ((92, 4), (256, 2), (520, 2), (534, 2))
        )
        assert oaes == 1 << 8, "namespace attributes, and no zone descriptors"
        assert oacs == 1 << 1 | 1 << 3 | 1 << 5 | 1 << 8
        # Compare, Dataset Management, Write Zeroes, Features, Timestamp, Copy, atomicity
        assert oncs == 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 10
        assert ident[525] == 0b111, "a volatile write cache, and flushes of all namespaces"
        assert ocfs == 0b1111


def test_many_commands_in_flight_wrap_the_queues(qemu: str, tmp_path: Path) -> None:
    with Qemu(qemu, stock_args(tmp_path / "raw")) as machine:
        controller = Controller(machine)
        queues = [controller.create_queue(qid, depth=17) for qid in (1, 2)]
        namespace = Namespace(queues[0], zoned=False)
        transfers = [namespace.transfer(1) for _ in range(32)]
        for round_ in range(5):
            requests = []
            for index, transfer in enumerate(transfers):
                transfer.fill(pattern(100 * round_ + index))
                command = namespace.io(Io.WRITE, index, 1, transfer)
                requests.append(queues[index % 2].submit(command))
            controller.wait(*requests)
            for request in requests:
                request.expect()
        for index in range(32):
            assert namespace.read(index)[0] == pattern(400 + index)


def test_zoned_namespace(qemu: str, tmp_path: Path) -> None:
    props = ",zoned=true,zoned.zone_size=1M,zoned.zone_capacity=512K,ms=64,mset=0"
    with Qemu(qemu, stock_args(tmp_path / "raw", namespace=props)) as machine:
        namespace = Namespace(Controller(machine).create_queue())
        assert (namespace.zone_size, namespace.oob) == (256, 64)
        oob = pattern(7, 2 * 64)
        request = namespace.append(namespace.start(2), blocks_of([1, 2]), oob).expect()
        assert request.result == 512
        assert namespace.zone(2).state == Zs.IMPLICITLY_OPEN
        assert namespace.zone(2).wp == 2
        assert namespace.zone(2).capacity == 128
        assert namespace.read(512, 2) == (blocks_of([1, 2]), oob)
        namespace.send(Action.FINISH, 2).expect()
        namespace.send(Action.CLOSE, 2).expect(Status.ZONE_INVALID_TRANSITION)
        assert namespace.zone(2).wp is None
        namespace.send(Action.RESET, 2).expect()
        assert set(namespace.states()) == {Zs.EMPTY}


@pytest.mark.parametrize("controller", [",dbcs=off", ",inline-queues=on", ",inline-queues=off"])
def test_settings_of_the_controller(qemu: str, tmp_path: Path, controller: str) -> None:
    with Qemu(qemu, stock_args(tmp_path / "raw", controller)) as machine:
        namespace = Namespace(Controller(machine).create_queue(), zoned=False)
        namespace.write(0, pattern(1)).expect()
        assert namespace.read(0)[0] == pattern(1)
        namespace.queue.run(Command(0x55, 1)).expect(Status.INVALID_OPCODE)


def test_a_machine_with_a_drive_is_not_saved(qemu: str, tmp_path: Path) -> None:
    """It can be loaded, though: that is how every run in virtual time gets its drive."""
    with Qemu(qemu, stock_args(tmp_path / "raw")) as machine:
        with pytest.raises(QemuError, match="non-migratable device.*nvme"):
            machine.qmp("migrate", uri=f"file:{tmp_path}/state")
        assert not (tmp_path / "state").exists()
        machine.quit()
