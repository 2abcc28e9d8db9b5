# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the drive's properties, from their table: RSD_PROPS of core/api/rsd-props.h."""

import difflib
import re
from functools import cache

from rsd.artifacts import REPOSITORY

HEADER = REPOSITORY / "hw/rsd-nvme/core/api/rsd-props.h"
REFUSED = re.compile(r"Property '[\w-]+\.([^']+)' not found")
# Of a media file that was made with other settings: the property, and the file's value
DIFFERS = re.compile(r"([a-z-]+): the file has ([\w-]+), ")
# At the end of QEMU: a power cut has not come
NOT_CUT = re.compile(r"warning: ('cut-at-.*)")


@cache
def names() -> tuple[str, ...]:
    """Those of the table, in its order."""
    found = re.findall(r'RSD_(?:NUM|SIZE|ENUM)\(\w+, "([a-z-]+)"', HEADER.read_text())
    assert found, f"{HEADER}: RSD_PROPS has no rows"
    return tuple(found)


def warnings(stderr: str) -> list[str]:
    """What QEMU says of its properties at its end."""
    return NOT_CUT.findall(stderr)


def advice(stderr: str) -> str:
    """What to try if QEMU refuses a property, or a media file for its properties; else nothing."""
    refused = REFUSED.search(stderr)
    if refused is None:
        return " ".join(f"--set {name}={value}" for name, value in DIFFERS.findall(stderr))
    close = difflib.get_close_matches(refused[1], names(), n=3)
    every = "./rsd sim --list prints every property"
    return f"--set {' or '.join(close)}; {every}" if close else every
