# SPDX-License-Identifier: GPL-2.0-or-later
"""Rewrites pages of a database's file in place, each as it is. Runs inside the guest, with
python3-minimal's modules only.

    python3 pages.py FILE BYTES

Pages of 16 KiB are read and written at random, past the page cache as InnoDB does, until BYTES are
written; each 64 pages are followed by fdatasync.
"""

import mmap
import os
import sys

PAGE = 16384
SYNC = 64


def main() -> None:
    """All of them."""
    amount = int(sys.argv[2])
    file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
    pages = os.fstat(file).st_size // PAGE
    # O_DIRECT wants its memory aligned.
    memory = mmap.mmap(-1, PAGE)
    # Park and Miller's generator, the same everywhere
    seed = 1
    for at in range(amount // PAGE):
        seed = seed * 16807 % 2147483647
        place = seed % pages * PAGE
        os.preadv(file, [memory], place)
        done = os.pwritev(file, [memory], place)
        assert done == PAGE
        if at % SYNC == SYNC - 1:
            os.fdatasync(file)
    os.fsync(file)
    os.close(file)


main()
