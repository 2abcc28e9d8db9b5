# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: ace_work.py WORKS DRIVE. Does these sequences in /mnt. See ace.run()."""

import json
import sys

import ace
from drive import Drive

MARKER = "/sys/kernel/tracing/trace_marker"


def mark(text: str) -> None:
    with open(MARKER, "w") as stream:
        stream.write(text)


def main() -> None:
    with open(sys.argv[1]) as stream:
        works = ace.load(stream.read())
    said = ace.run(works, Drive(sys.argv[2]).operations, mark)
    with open("/out/ace", "w") as stream:
        json.dump(said, stream)


main()
