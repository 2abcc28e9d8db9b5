# SPDX-License-Identifier: GPL-2.0-or-later
"""Running rsdsim, and a reader of native traces that is independent of it."""

import json
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

SUBMIT, DONE, COUNTER, END = 1, 2, 3, 4
READ, WRITE, ZEROES, RESET, FINISH, FLUSH, TRIM = range(7)
HEADER = struct.Struct("<8sIIIIQ24sQ")
RECORD = struct.Struct("<QQQIIHHBBBBII")
MASK = (1 << 64) - 1

# 2 channels x 2 ways x 16 blocks x 8 pages: 512 pages, zones of 32
SMALL = (
    ("--set", "channels=2", "--set", "ways=2", "--set", "blocks=16", "--set", "pages=8")
    + ("--set", "spare-blocks=4", "--set", "idle-erase=0")
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    time: int
    order: int
    lba: int
    nlb: int
    ns: int
    queue: int
    flags: int
    kind: int
    op: int
    status: int


def header_bytes(path: Path) -> int:
    return int(HEADER.unpack(path.read_bytes()[: HEADER.size])[2])


def records(path: Path) -> Iterator[Record]:
    content = path.read_bytes()
    magic, version, start, size, _, _, _, _ = HEADER.unpack(content[: HEADER.size])
    assert (magic, version, size) == (b"RSDTRACE", 1, RECORD.size)
    for at in range(start, len(content), size):
        yield Record(*RECORD.unpack(content[at : at + size])[:10])


def _mix(a: int, b: int) -> int:
    product = (a ^ 0x9E3779B97F4A7C15) * (b ^ 0xD6E8FEB86659FD93)
    return (product & MASK) ^ (product >> 64)


def pack(record: Record) -> bytes:
    """A record with its checksum."""
    body = RECORD.pack(*astuple(record), 0, 0, 0)[:-4]
    value = 0
    for (word,) in struct.iter_unpack("<Q", body[:40]):
        value = (_mix(value, word) + word) & MASK
    value = (_mix(value, int.from_bytes(body[40:], "little")) + 4) & MASK
    return body + struct.pack("<I", (value ^ value >> 32) & 0xFFFFFFFF)


@dataclass(frozen=True)
class Simulator:
    program: Path
    directory: Path

    def run(
        self, *arguments: str | Path, stdin: bytes | None = None, timeout: float = 600
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.program, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            cwd=self.directory,
        )

    def json(self, *arguments: str | Path, stdin: bytes | None = None) -> Any:
        done = self.run(*arguments, "--json", stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def fails(self, *arguments: str | Path, stdin: bytes | None = None, status: int = 1) -> str:
        """The message of a run that must fail, and say why in one line."""
        done = self.run(*arguments, stdin=stdin)
        text = done.stderr.decode(errors="replace")
        assert done.returncode == status, (done.returncode, text)
        assert text.startswith("rsdsim: ") and text.count("\n") == 1, text
        return text

    def trace(self, *arguments: str | Path, stdin: bytes | None = None) -> list[Record]:
        """The native trace of a run."""
        path = self.directory / "recorded"
        path.unlink(missing_ok=True)
        self.json(*arguments, "--record", path, stdin=stdin)
        return list(records(path))
