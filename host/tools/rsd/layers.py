# SPDX-License-Identifier: GPL-2.0-or-later
"""The drive's translation layers, from the drive's own list: RSD_FTLS of core/api/rsd-props.h."""

import re
from dataclasses import dataclass
from functools import cache

from rsd.artifacts import REPOSITORY

HEADER = REPOSITORY / "hw/rsd-nvme/core/api/rsd-props.h"


@dataclass(frozen=True)
class Layer:
    """A row of the list. `name` is the value of the property ftl; with `zoned` it has zones, and
    one that `rotates` is a disk. `number` is that of media files.
    """

    number: int
    name: str
    doc: str
    zoned: bool
    rotates: bool


@cache
def layers() -> dict[str, Layer]:
    """By name, in the list's order."""
    text = re.sub(r"\\\n", " ", HEADER.read_text())
    (rows,) = re.findall(r"^#define RSD_FTLS\(X, \.\.\.\)(.*)$", text, re.M)
    found = re.findall(r'X\((\w+), (\d+), (\w+), "([^"]*)",([^()]*)\)', re.sub(r"\s+", " ", rows))
    assert found, f"{HEADER}: RSD_FTLS has no rows"
    return {
        name: Layer(int(number), name, doc, "RSD_FTL_ZONED" in traits, "RSD_FTL_ROTATES" in traits)
        for _, number, name, doc, traits in found
    }
