# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes to files as a list says. Runs inside the guest, with python3-minimal's modules only.

    python3 replay.py LIST BYTES sync|async

LIST has four words of 32 bits a write, little-endian: the file's number, the offset, the length,
and whether the file is closed afterwards, with fsync. BYTES is a file to take content from. Files
are in the current directory. With sync, they are opened with O_SYNC.
"""

import array
import os
import sys


def main() -> None:
    """All of them."""
    words = array.array("I")
    with open(sys.argv[1], "rb") as stream:
        words.frombytes(stream.read())
    with open(sys.argv[2], "rb") as stream:
        content = memoryview(stream.read())
    flags = os.O_WRONLY | os.O_CREAT | (os.O_SYNC if sys.argv[3] == "sync" else 0)
    file = -1
    begin = 0
    for at in range(0, len(words), 4):
        number, offset, length, last = words[at : at + 4]
        if file < 0:
            file = os.open(str(number), flags, 0o644)
        # another place of the content for each write: compression finds nothing to repeat
        begin = (begin + length) % (len(content) - length)
        done = os.pwrite(file, content[begin : begin + length], offset)
        assert done == length
        if last:
            os.fsync(file)
            os.close(file)
            file = -1


main()
