# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: ace_work.py FIRST LAST DRIVE. Does these sequences in /mnt. See ace.run()."""

import json
import sys

import ace
from drive import Drive

MARKER = "/sys/kernel/tracing/trace_marker"


def mark(text: str) -> None:
    with open(MARKER, "w") as stream:
        stream.write(text)


def main() -> None:
    first, last, drive = int(sys.argv[1]), int(sys.argv[2]), Drive(sys.argv[3])
    said = ace.run(ace.sequences()[first - 1 : last], drive.operations, mark)
    with open("/out/ace", "w") as stream:
        json.dump({**said, "sequences": [first, last]}, stream)


main()
