# SPDX-License-Identifier: GPL-2.0-or-later
"""Overwrites blocks of a file. Runs inside the guest, with python3-minimal's modules only.

    python3 rewrite.py FILE LIST FROM TO

LIST has the block of each write, 32 bits, little-endian; those from FROM to TO - 1 are done, one
after the other, each of 4 KiB.
"""

import array
import os
import sys

BLOCK = 4096


def main() -> None:
    """All of them."""
    begin, end = int(sys.argv[3]), int(sys.argv[4])
    writes = array.array("I")
    with open(sys.argv[2], "rb") as stream:
        stream.seek(begin * writes.itemsize)
        writes.frombytes(stream.read((end - begin) * writes.itemsize))
    assert len(writes) == end - begin
    data = bytes(BLOCK)
    file = os.open(sys.argv[1], os.O_WRONLY)
    for block in writes:
        done = os.pwrite(file, data, block * BLOCK)
        assert done == BLOCK
    os.close(file)


main()
