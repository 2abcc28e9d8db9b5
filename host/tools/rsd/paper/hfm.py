# SPDX-License-Identifier: GPL-2.0-or-later
"""HFM (2014): its evaluation, 4.2 to 4.4, in hfmsim with the data sections of RFS's core.

The paper varies the file system on the disk, ext2 or ext4. Here the disk has one file at a time
written behind the other, so that each of our figures stands beside two of the paper's. All files
of a row fit into the data section, as those of the paper's figures do (16 GB a section), and what
is written into the 4 GiB that may wait for the disk. Of TPC-C the paper does not say how long it
ran: beside it are more writes, which do not fit, and with which it comes out otherwise.
"""

import functools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rsd import sim
from rsd.bench.base import Context
from rsd.errors import RsdError
from rsd.paper.claim import Claim, Limit
from rsd.paper.entry import Entry, Paper, Scale

# Table 1, in KiB
SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "HFM(1)": {"rho": 1, "extent": 8},
    "HFM(2)": {"rho": 2, "extent": 64},
    "HFM(3)": {"rho": 3, "extent": 512, "delta": 32},
}
SMALL, LARGE = "HFM(1)", "HFM(3)"

SECTION_MIB = 4096
TPCC = {"work": "tpcc", "files": 1000, "transactions": 4000, "clients": 50}
LONG = (10_000, 20_000)
POSTMARK = {"work": "postmark", "files": 1000, "transactions": 100_000}
MIXED = {"work": "iozone-mixed", "files": 10_000}
LARGE_FILES = {"work": "iozone-large", "files": 1000}
FILES_8K = {"work": "iozone-one", "size": 8 << 10, "files": 32768}
FILES_256M = {"work": "iozone-one", "size": 256 << 20, "files": 4}
WRITERS = (10, 100)

# HFM(3) in parts of HFM(1), with ext2 and with ext4 on the disk: 4.2 to 4.4
FIGURE5 = {"ext2": 1.11, "ext4": 1.06}
FIGURE7 = 1.06
FIGURE9 = {"ext2": 1 - 0.12, "ext4": 1 - 0.14}
FIGURE10 = {"ext2": 1.16, "ext4": 1.09}
FIGURE11 = {"ext2": 1.06, "ext4": 1.03}

# What the text says of PostMark, it says of ext2 and ext4 on the flash drive.
STANDS_FOR = "the paper compares HFM(3) with ext2 and ext4 on flash, and calls HFM(1) similar"


def measure(program: Path, options: Mapping[str, Any]) -> Any:
    """What hfmsim says. Raises RsdError."""
    words = [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RsdError(f"hfmsim {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class _Runs:
    """Work on each kind of section."""

    def __init__(self, context: Context) -> None:
        self._program = sim.ensure_hfmsim(context.cache, context.progress)
        self._progress = context.progress

    def rate(self, section: str, work: Mapping[str, Any], what: str, **more: Any) -> float:
        """A figure of the work's result."""
        options = {"section": SECTION_MIB, **work, **SECTIONS[section], **more}
        with self._progress.step(f"hfmsim, {section}, {work['work']}"):
            return float(measure(self._program, options)[what])

    def each(self, work: Mapping[str, Any], what: str) -> dict[str, float]:
        """The same of all three."""
        return {section: self.rate(section, work, what) for section in SECTIONS}


def _against(
    what: str,
    unit: str,
    paper: Mapping[str, float],
    found: Mapping[str, float],
    beside: Mapping[str, float],
) -> list[Claim | Limit]:
    """HFM(3) against HFM(1): a row for each file system that the paper has on the disk."""
    return [
        Claim(
            f"{what}, {disk} on the disk",
            unit,
            {SMALL: 1, LARGE: part},
            {SMALL: found[SMALL], LARGE: found[LARGE]},
            SMALL,
            {"HFM(2)": found["HFM(2)"], **beside},
        )
        for disk, part in paper.items()
    ]


def _without_command_time(runs: _Runs, work: Mapping[str, Any], what: str) -> dict[str, float]:
    """What is left of the difference if a command of the flash drive takes no time of its own."""
    return {
        f"{section}, commands free": runs.rate(section, work, what, command=0)
        for section in (SMALL, LARGE)
    }


def figure5(context: Context, scale: Scale) -> list[Claim | Limit]:
    """TPC-C with 50 clients: all pages are in memory, what counts is what is written."""
    runs = _Runs(context)
    rate = "done_a_second"
    return _against(
        "writes of 900 KB a second, TPC-C, 50 clients",
        "",
        FIGURE5,
        runs.each(TPCC, rate),
        _without_command_time(runs, TPCC, rate)
        | {
            f"{section}, {writes:,} writes": runs.rate(section, TPCC, rate, transactions=writes)
            for writes in LONG
            for section in (SMALL, LARGE)
        },
    )


def _postmark(
    transactions: int, ranks: bool, context: Context, scale: Scale
) -> list[Claim | Limit]:
    """Transactions a second with 1,000 files; one client, and several beside it."""
    runs = _Runs(context)
    work = {**POSTMARK, "transactions": transactions}
    found = runs.each(work, "done_a_second")
    beside = {"HFM(2)": found["HFM(2)"]}
    for writers in WRITERS:
        for section in (SMALL, LARGE):
            beside[f"{section}, {writers} clients"] = runs.rate(
                section, work, "done_a_second", clients=writers
            )
    return [
        Claim(
            f"transactions a second, PostMark, 1,000 files, {transactions:,} transactions",
            "",
            {SMALL: 1, LARGE: 2 if ranks else FIGURE7},
            {SMALL: found[SMALL], LARGE: found[LARGE]},
            None if ranks else SMALL,
            beside,
            note=STANDS_FOR,
            ranks=ranks,
        )
    ]


def figure9(context: Context, scale: Scale) -> list[Claim | Limit]:
    """10,000 files, 96 of 100 of them small; one writer, and several beside it."""
    runs = _Runs(context)
    rate = "mb_a_second"
    beside = {
        f"{section}, {writers} writers": runs.rate(section, MIXED, rate, clients=writers)
        for writers in WRITERS
        for section in (SMALL, LARGE)
    }
    found = runs.each(MIXED, rate)
    return _against("MB/s, IOzone, type 1, 10,000 files", "MB/s", FIGURE9, found, beside)


def figure10(context: Context, scale: Scale) -> list[Claim | Limit]:
    """1,000 large files."""
    runs = _Runs(context)
    rate = "mb_a_second"
    return _against(
        "MB/s, IOzone, type 2, 1,000 files",
        "MB/s",
        FIGURE10,
        runs.each(LARGE_FILES, rate),
        _without_command_time(runs, LARGE_FILES, rate),
    )


def figure11(context: Context, scale: Scale) -> list[Claim | Limit]:
    """Files of 8 KB, of which the text gives the order, and of 256 MB."""
    runs = _Runs(context)
    rate = "mb_a_second"
    small, large = (runs.each(work, rate) for work in (FILES_8K, FILES_256M))
    return [
        Claim(
            "MB/s, IOzone, files of 8 KB",
            "MB/s",
            {SMALL: 2, LARGE: 1},
            {SMALL: small[SMALL], LARGE: small[LARGE]},
            beside={"HFM(2)": small["HFM(2)"]},
            ranks=True,
        ),
        *_against("MB/s, IOzone, files of 256 MB", "MB/s", FIGURE11, large, {}),
    ]


PAPER = Paper(
    "hfm",
    "J. No, S.-M. Choi, S.-S. Park, C.-S. Lim: HFM: Hybrid File Mapping Algorithm for SSD Space "
    "Utilization. Applied Mathematics and Information Sciences, 2014",
    (
        Entry("figure5", "TPC-C, 4 GB of memory: HFM(3) against HFM(1)", figure5),
        Entry(
            "figure6",
            "TPC-C, 1 GB of memory",
            missing="needs TPC-C in a guest on a hybrid volume, larger than the memory",
        ),
        Entry(
            "figure7",
            "PostMark, 100,000 transactions",
            functools.partial(_postmark, 100_000, False),
        ),
        Entry(
            "figure8",
            "PostMark, 500,000 transactions",
            functools.partial(_postmark, 500_000, True),
        ),
        Entry("figure9", "IOzone, small files: HFM(3) against HFM(1)", figure9),
        Entry("figure10", "IOzone, large files: HFM(3) against HFM(1)", figure10),
        Entry("figure11", "IOzone by the size of files", figure11),
    ),
)
