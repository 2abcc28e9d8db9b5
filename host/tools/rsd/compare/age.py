# SPDX-License-Identifier: GPL-2.0-or-later
"""Ages a file system. Runs inside the guest, with python3-minimal's modules only.

    python3 age.py DIRECTORY FILL_BYTES TOTAL_BYTES REST_SECONDS KEEP [READINGS COMMAND]

Files of 4 KiB to 1 MiB fill FILL_BYTES. Then a file chosen at random is removed and a new one of
its size written, over and over, until TOTAL_BYTES have been written; so every file system
gets the same bytes, and what it freed is scattered. In the end all but one file in KEEP go. It
syncs after each sixteenth of FILL_BYTES and rests after each eighth: cleaners work in idle time.

After each rest from FILL_BYTES on, COMMAND prints the drive's counters into the directory READINGS,
to a file named after the bytes that were written by then.
"""

import os
import sys
import time

CHUNK = 128 << 10
# Two thirds of the files are small, most of the bytes are in large ones (4 KiB units).
SIZES = ((4, 16), (4, 16), (16, 64), (16, 64), (64, 256), (64, 256))


class Aging:
    """The files, by number, and a generator that is the same everywhere (Park and Miller)."""

    def __init__(self, directory: str, fill: int, rest: float, reading: list[str]) -> None:
        self.directory = directory
        self.fill = fill
        self.rest = rest
        self.reading = reading
        self.seed = 1
        self.written = 0
        self.made = 0
        self.files: list[tuple[int, int]] = []

    def pick(self, low: int, high: int) -> int:
        """A number from low to high - 1."""
        self.seed = self.seed * 16807 % 2147483647
        return low + self.seed % (high - low)

    def path(self, number: int) -> str:
        """Some hundred files a directory."""
        return f"{self.directory}/{number % 16}/{number}"

    def write(self, size: int) -> None:
        """Make a new file."""
        number = self.made
        self.made += 1
        self.files.append((number, size))
        with open(self.path(number), "wb", buffering=0) as stream:
            left = size
            while left:
                left -= stream.write(ZEROES[: min(left, CHUNK)])
        for share, pause in ((16, 0.0), (8, self.rest)):
            step = self.fill // share
            if self.written // step != (self.written + size) // step:
                os.sync()
                time.sleep(pause)
                if pause:
                    self.read(self.written + size)
        self.written += size

    def read(self, written: int) -> None:
        """Have the counters read, if that is wanted and it is time."""
        if self.reading and written >= self.fill:
            directory, command = self.reading
            if os.system(f"{command} >{directory}/{written}"):
                sys.exit(f"{command}: it failed")

    def remove(self, index: int) -> int:
        """Remove a file. Gives its size."""
        number, size = self.files[index]
        self.files[index] = self.files[-1]
        self.files.pop()
        os.unlink(self.path(number))
        return size


ZEROES = memoryview(bytes(CHUNK))


def main() -> None:
    """Fill, replace, thin out."""
    fill, total, rest, keep = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
    aging = Aging(sys.argv[1], fill, rest, sys.argv[6:8])
    for number in range(16):
        os.mkdir(f"{aging.directory}/{number}")
    while aging.written < fill:
        low, high = SIZES[aging.pick(0, len(SIZES))]
        aging.write(4096 * aging.pick(low, high))
    while aging.written < total:
        aging.write(aging.remove(aging.pick(0, len(aging.files))))
    for number, _ in aging.files:
        if number % int(keep):
            os.unlink(aging.path(number))


main()
