# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run did to a drive, by the counters in its media file (hw/rsd-nvme/core/media/media.c)."""

import struct
from dataclasses import dataclass
from pathlib import Path

from rsd.layers import layers

MAGIC = b"RSDMEDIA"
VERSION = 5
HEADER = struct.Struct("<8sI")
COUNTERS_AT = 264  # the header's counter_off
FTL_AT = 104

# Places in the table of hw/rsd-nvme/core/api/rsd-log.h
HOST_READ_PAGES = 2
UNWRITTEN_READS = 28


@dataclass(frozen=True)
class Counters:
    """Blocks of 4 KiB that the host read, and those of them that had never been written.

    A disk (`rotates`) takes as long for these as for others.
    """

    host_read_pages: int
    unwritten_reads: int
    rotates: bool


def counters(path: Path) -> Counters | None:
    """None: there is no file, or not a drive's of ours."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEADER.size)
            if len(head) < HEADER.size or HEADER.unpack(head) != (MAGIC, VERSION):
                return None
            stream.seek(FTL_AT)
            (ftl,) = struct.unpack("<Q", stream.read(8))
            stream.seek(COUNTERS_AT)
            (start,) = struct.unpack("<Q", stream.read(8))
            stream.seek(start)
            values = struct.unpack(f"<{UNWRITTEN_READS + 1}Q", stream.read(8 * UNWRITTEN_READS + 8))
    except FileNotFoundError:
        return None
    rotates = any(layer.number == ftl for layer in layers().values() if layer.rotates)
    return Counters(values[HOST_READ_PAGES], values[UNWRITTEN_READS], rotates)
