# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: a drive's operation log and its rewinding, without starting a program.

A guest takes longer to start rsdctl, with the libraries that it is linked to, than to rewind.
What is done is the same, for the reasons that host/tools/rsdctl/power.c gives, but for the search
for others who have the drive open: here there are none. rsdctl has tests of its own.
"""

import ctypes
import fcntl
import os
import struct
import time
from collections.abc import Callable

# ioctls of <linux/nvme_ioctl.h>
NAMESPACE_NUMBER, ADMIN_COMMAND, RESET = 0x4E40, 0xC0484E41, 0x4E44
# admin commands: NVMe's, and those of the drive's rsd-vendor.h
IDENTIFY, ATTACHMENT, POWER, LOG = 0x06, 0x15, 0xC1, 0xC2
CONTROLLER, ATTACH, DETACH, REWIND = 1, 0, 1, 1
STATE, OPERATIONS, IN_FLIGHT = 0, 1, 2
IS_REWOUND, MAGIC, BYTES = 4, 0x72776F70, 4096
# struct RsdOplogData: where the number of its entries is, where they are, and one of them
ENTRIES, ENTRY, SAFE, WAITING = 40, struct.Struct("<QQQIIII"), 1, 4
FIRST_ENTRY = 96


class Drive:
    """The drive of a namespace's block device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.number = _number(device)
        self.controller = os.open(device[: device.rindex("n")], os.O_RDWR)
        (controller,) = struct.unpack_from("<H", self._command(IDENTIFY, 0, CONTROLLER), 78)
        self.controllers = struct.pack("<2H", 1, controller)
        self.devices = self._devices()

    def _send(
        self, opcode: int, namespace: int, what: int, data: bytes, operation: int = 0
    ) -> tuple[int, bytes]:
        """An admin command: its status and its data."""
        buffer = ctypes.create_string_buffer(data, BYTES)
        where = ctypes.addressof(buffer)
        words = (opcode, 0, 0, namespace, 0, 0, 0, where, 0, BYTES, what, operation)
        command = bytearray(struct.pack("<BBHIIIQQIII4xQ16x", *words))
        return fcntl.ioctl(self.controller, ADMIN_COMMAND, command), buffer.raw

    def _command(
        self, opcode: int, namespace: int, what: int, data: bytes = b"", operation: int = 0
    ) -> bytes:
        status, answer = self._send(opcode, namespace, what, data, operation)
        if status:
            raise SystemExit(f"admin command {opcode:#x}: status {status:#x}")
        return answer

    def _state(self) -> tuple[int, int, int, tuple[int, ...]]:
        """The log's flags, how many operations it has, where the drive is, its namespaces."""
        state = self._command(LOG, self.number, STATE)
        flags, operations, at, *namespaces = struct.unpack_from("<4xIQQ8x2I", state)
        return flags, operations, at, tuple(number for number in namespaces if number)

    def operations(self) -> int:
        """How many operations its log has."""
        return self._state()[1]

    def _entries(self, what: int, operation: int) -> list[tuple[int, ...]]:
        log = self._command(LOG, self.number, what, operation=operation)
        (count,) = struct.unpack_from("<I", log, ENTRIES)
        return [ENTRY.unpack_from(log, FIRST_ENTRY + n * ENTRY.size) for n in range(count)]

    def times(self, first: int, last: int) -> list[int]:
        """When each of some operations was done, in ns of a clock that all drives share."""
        times: list[int] = []
        while first + len(times) <= last:
            more = self._entries(OPERATIONS, first + len(times))
            assert more, f"{self.device} has no operation {first + len(times)}"
            times += [entry[1] for entry in more]
        return times[: last + 1 - first]

    def in_flight(self, operation: int) -> list[tuple[int, bool, bool]]:
        """The first 100 that a cut after an operation meets: since when, whether it cannot be
        torn, and whether it waits in the write buffer.
        """
        entries = self._entries(IN_FLIGHT, operation)
        return [(entry[1], bool(entry[6] & SAFE), bool(entry[6] & WAITING)) for entry in entries]

    def rewind(self, operation: int, outcomes: int | str) -> None:
        """Cut the power after an operation. What became of what was in flight then: a letter each
        (absent, torn, complete), or a seed that decides.
        """
        for number in self._state()[3]:
            self._command(ATTACHMENT, number, DETACH, self.controllers)
        by_list = isinstance(outcomes, str)
        power = struct.pack("<QQII", operation, 0 if by_list else outcomes, by_list, MAGIC)
        if by_list:
            power += outcomes.encode()
        self._command(POWER, self.number, REWIND, power)
        fcntl.ioctl(self.controller, RESET)
        # It is attached already and refuses, but then the kernel has looked for it.
        self._send(ATTACHMENT, self.number, ATTACH, self.controllers)
        self._wait(lambda: all(map(os.path.exists, self.devices.values())))
        if len(self.devices) > 1 and self._devices() != self.devices:
            self._attach_in_order()
        flags, _, at, _ = self._state()
        if not flags & IS_REWOUND or at != operation:
            raise SystemExit(f"{self.device} is at operation {at}, not {operation}")

    def _devices(self) -> dict[int, str]:
        """The block devices of the drive's namespaces, by number."""
        beginning = self.device[: self.device.rindex("n") + 1]
        paths = sorted(f"/dev/{name}" for name in os.listdir("/dev"))
        ours = [path for path in paths if path.startswith(beginning)]
        # not their partitions
        return {_number(path): path for path in ours if path[len(beginning) :].isdigit()}

    def _attach_in_order(self) -> None:
        """Give each namespace its name again. After a reset the kernel looks at several at once,
        and names them as it comes to them.
        """
        for number in self.devices:
            self._command(ATTACHMENT, number, DETACH, self.controllers)
        for number, device in sorted(self.devices.items(), key=lambda item: item[1]):
            self._command(ATTACHMENT, number, ATTACH, self.controllers)
            self._wait(lambda device=device: os.path.exists(device))
        if self._devices() != self.devices:
            raise SystemExit(f"the namespaces are {self._devices()}, not {self.devices}")

    def _wait(self, done: Callable[[], bool]) -> None:
        for _ in range(1000):
            if done():
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.device} does not come back")


def _number(device: str) -> int:
    """The number of a namespace."""
    namespace = os.open(device, os.O_RDONLY)
    try:
        return fcntl.ioctl(namespace, NAMESPACE_NUMBER)
    finally:
        os.close(namespace)
