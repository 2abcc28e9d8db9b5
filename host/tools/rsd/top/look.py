# SPDX-License-Identifier: GPL-2.0-or-later
"""What a media file says of its drive at this moment.

QEMU and rsdsim map the file, and share it with the host's page cache. Whoever reads it sees the
drive's counters, blocks and zones as they are. The guest is not asked: it takes the same time
whether it is looked at or not. hw/rsd-nvme/core/media/media.c has the layout.
"""

import re
import struct
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy

from rsd.artifacts import REPOSITORY
from rsd.errors import RsdError
from rsd.media_file import HEADER, MAGIC, VERSION

TABLE = REPOSITORY / "hw/rsd-nvme/core/api/rsd-log.h"

# Offsets in the header, and of numbers of 64 bits each
CHANNELS, WAYS, PLANES, BLOCKS, PAGES, PAGE_SIZE, SPARES = 32, 40, 48, 56, 64, 72, 80
FTL, CONV_BLOCKS, SEGMENT = 104, 112, 128
RECORDS_AT, ZONES_AT, COUNTERS_AT = 208, 232, 264
HEADER_BYTES = 4096

ZONED = 0  # of ftl, and of segment: a zone has blocks of every way
BAD, DIRTY = 1, 2  # flags of a block record
ZONE_BYTES = 8
ZONE_STATES = {
    0x0: "new",
    0x1: "empty",
    0x2: "implicitly open",
    0x3: "explicitly open",
    0x4: "closed",
    0xD: "read-only",
    0xE: "full",
    0xF: "offline",
}


@dataclass(frozen=True)
class Look:
    """A drive at a moment. `counters` are sums since the file was made, by the log page's names.

    `erases` and `programmed` have a row for each die, in the drive's order, and a column for each
    of its blocks: how often it was erased, and how many pages of 4 KiB are programmed in it.
    """

    at_s: float
    channels: int
    block_pages: int  # of 4 KiB
    counters: dict[str, int]
    erases: numpy.ndarray
    programmed: numpy.ndarray
    blocks: dict[str, int]
    zones: dict[str, int]
    wear: numpy.ndarray  # erases of each good block


def counter_names() -> list[str]:
    """The log page's counters in their order."""
    return re.findall(r"^    RSD_COUNTER\((\w+),", TABLE.read_text(), re.M)


def look(path: Path) -> Look:
    """Read the file once. What changes meanwhile may be in a part of the figures."""
    try:
        with path.open("rb") as stream:
            header = stream.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES or HEADER.unpack(header[: HEADER.size]) != (
                MAGIC,
                VERSION,
            ):
                raise RsdError(f"{path}: not the media file of a drive", "name the one of --media")

            def field(offset: int) -> int:
                return int(struct.unpack_from("<Q", header, offset)[0])

            dies = field(CHANNELS) * field(WAYS)
            die_blocks = field(BLOCKS) + field(SPARES)
            names = counter_names()
            stream.seek(field(COUNTERS_AT))
            values = struct.unpack(f"<{len(names)}Q", stream.read(8 * len(names)))
            stream.seek(field(RECORDS_AT))
            records = numpy.frombuffer(stream.read(8 * dies * die_blocks), "<u8")
            zones = 0
            if field(FTL) == ZONED:
                zones = field(BLOCKS) - field(CONV_BLOCKS)
                zones *= 1 if field(SEGMENT) == ZONED else field(WAYS)
            stream.seek(field(ZONES_AT))
            states = stream.read(ZONE_BYTES * zones)[::ZONE_BYTES]
    except OSError as error:
        raise RsdError(f"{path}: {error.strerror}", "the run may have ended") from error
    flags, following, erases = records >> 56, records >> 32 & 0xFFFFFF, records & 0xFFFFFFFF
    good = flags & BAD == 0
    dirty = good & (flags & DIRTY != 0)
    return Look(
        at_s=time.monotonic(),
        channels=field(CHANNELS),
        block_pages=field(PLANES) * field(PAGES) * field(PAGE_SIZE) // 4096,
        counters=dict(zip(names, values, strict=True)),
        erases=erases.reshape(dies, die_blocks).astype(int),
        programmed=following.reshape(dies, die_blocks).astype(int),
        blocks={
            "bad": int((~good).sum()),
            "to be erased": int(dirty.sum()),
            "written": int((good & ~dirty & (following > 0)).sum()),
            "erased": int((good & ~dirty & (following == 0)).sum()),
        },
        zones=dict(Counter(ZONE_STATES.get(state, f"state {state:x}") for state in states)),
        wear=erases[good].astype(int),
    )
