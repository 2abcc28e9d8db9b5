# SPDX-License-Identifier: GPL-2.0-or-later
"""Times writes as a list says. Runs inside the guest, with python3-minimal's modules only.

    python3 latency.py LIST BYTES TIMES

LIST and BYTES are as in replay.py; files are opened with O_SYNC. TIMES gets two words of 64 bits a
write, little-endian: when it began and ended, in ns of CLOCK_MONOTONIC.
"""

import array
import os
import sys
import time


def main() -> None:
    """All of them."""
    words = array.array("I")
    with open(sys.argv[1], "rb") as stream:
        words.frombytes(stream.read())
    with open(sys.argv[2], "rb") as stream:
        content = memoryview(stream.read())
    times = array.array("Q")
    file = -1
    for at in range(0, len(words), 4):
        number, offset, length, last = words[at : at + 4]
        if file < 0:
            file = os.open(str(number), os.O_WRONLY | os.O_CREAT | os.O_SYNC, 0o644)
        times.append(time.monotonic_ns())
        done = os.pwrite(file, content[:length], offset)
        times.append(time.monotonic_ns())
        assert done == length
        if last:
            os.close(file)
            file = -1
    with open(sys.argv[3], "wb") as stream:
        times.tofile(stream)


main()
