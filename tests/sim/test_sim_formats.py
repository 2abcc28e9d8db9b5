# SPDX-License-Identifier: GPL-2.0-or-later
"""Text traces: what they mean, and what is said of those that are wrong."""

import random

import pytest
from simulator import FLUSH, READ, SMALL, SUBMIT, TRIM, WRITE, Record, Simulator

ZONED = (*SMALL, "--trace", "-", "--format")
# A drive of 512 zones of 4 blocks that reads anywhere
KIB = 1024

IOLOG2 = b"""fio version 2 iolog
/dev/nvme0n1 add
/dev/nvme0n1 open
/dev/nvme0n1 write 0 8192
/dev/nvme0n1 wait 250 0
/dev/nvme0n1 read 4096 4096
/dev/nvme0n1 wait 50 0
/dev/nvme0n1 sync 0 0
/dev/nvme0n1 datasync 0 0
/dev/nvme0n1 close
"""
IOLOG3 = b"""fio version 3 iolog
0 /dev/nvme0n1 add
1 /dev/nvme0n1 open
10 /dev/nvme0n1 write 0 8192
260 /dev/nvme0n1 read 4096 4096
310 /dev/nvme0n1 sync 0 0
310 /dev/nvme0n1 datasync 0 0
311 /dev/nvme0n1 close
"""
MSR = b"""128166372003061629,usr,0,Write,0,8192,1331
128166372003064129,usr,0,Read,5000,10,100
"""
MQSIM = b"""1000 0 0 16 0
1250 1 8 8 1
"""
BLKPARSE = b"""\
259,0    3        1     0.000000000   697  A   W 8 + 16 <- (259,1) 0
259,0    3        2     0.000001000   697  Q   W 8 + 16 [fio]
259,0    3        3     0.000002000   697  D   W 0 + 16 [fio]
259,0    3        4     0.000252000   697  D  RA 8 + 8 [fio]
259,0    3        5     0.000302000   697  D  FN [kworker/0:1H]
259,0    3        6     0.000302000   697  D FWFS 16 + 8 [fio]
259,0    3        7     0.000400000     0  C   W 0 + 16 [0]
CPU3 (259,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           1,        8KiB
"""


def submitted(sim: Simulator, name: str, text: bytes) -> list[Record]:
    found = sim.trace(*ZONED, name, stdin=text)
    return [record for record in found if record.kind == SUBMIT]


def brief(found: list[Record]) -> list[tuple[int, int, int, int]]:
    return [(record.time, record.op, record.lba, record.nlb) for record in found]


COMMON = [(0, WRITE, 0, 2), (250_000, READ, 1, 1)]
FLUSHES = [(300_000, FLUSH, 0, 0)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("iolog", IOLOG2, COMMON + FLUSHES * 2),
        ("iolog", IOLOG3, COMMON + FLUSHES * 2),
        ("msr", MSR, COMMON),
        ("mqsim", MQSIM, [(0, WRITE, 0, 2), (250, READ, 1, 1)]),
        ("blkparse", BLKPARSE, [*COMMON, *FLUSHES, (300_000, WRITE, 2, 1)]),
    ],
)
def test_requests(
    sim: Simulator, name: str, text: bytes, expected: list[tuple[int, int, int, int]]
) -> None:
    """Times from the first one on, in whole blocks as far as bytes are touched."""
    assert brief(submitted(sim, name, text)) == expected
    # With other line ends, and without the last one
    assert brief(submitted(sim, name, text.replace(b"\n", b"\r\n"))) == expected
    assert brief(submitted(sim, name, text.rstrip(b"\n"))) == expected
    assert brief(submitted(sim, name, b"\n" + text if name != "iolog" else text)) == expected


def test_force_unit_access_of_blkparse(sim: Simulator) -> None:
    text = b"8,0 0 1 0.5 1 D WF 0 + 8 [x]\n8,0 0 2 0.6 1 D W 8 + 8 [x]\n"
    assert [record.flags for record in submitted(sim, "blkparse", text)] == [1, 0]


def test_trims(sim: Simulator) -> None:
    """A zoned drive has none: it is the drive that refuses."""
    for name, text in (
        ("iolog", b"fio version 2 iolog\nf trim 0 4096\n"),
        ("blkparse", b"8,0 0 1 0.5 1 D DS 0 + 8 [x]\n"),
    ):
        assert "trim of block 0" in sim.fails(*ZONED, name, stdin=text)
    assert TRIM == 6


V2 = b"fio version 2 iolog\n"
BAD = [
    ("iolog", b"", "-:1: the file is empty"),
    ("iolog", b"hello\n", "-:1: 'fio version N iolog' is missing"),
    ("iolog", b"fio version 4 iolog\n", "-:1: the iolog's version is 4, allowed is 2 or 3"),
    ("iolog", b"fio version x iolog\n", "-:1: the iolog's version is 'x'"),
    ("iolog", b"foo version 2 iolog\n", "-:1: the first line is not"),
    ("iolog", V2 + b"f read 0\n", "-:2: the length is missing"),
    ("iolog", V2 + b"f\n", "-:2: the action is missing"),
    ("iolog", V2 + b"f read 0 4096 1\n", "-:2: after the last field there is '1'"),
    ("iolog", V2 + b"f read -1 4096\n", "-:2: the offset is '-1'"),
    ("iolog", V2 + b"f read 99999999999999999999 4096\n", "-:2: the offset is '999"),
    ("iolog", V2 + b"f fly 0 4096\n", "-:2: the action is 'fly'"),
    ("iolog", V2 + b"f read 0 0\n", "-:2: the length is 0"),
    ("iolog", V2 + b"f read 0 4096\ng read 0 4096\n", "-:3: file g after f"),
    ("iolog", V2 + b"f wait 18446744073709551615 0\nf wait 1 0\n", "-:3: the waits add up"),
    ("iolog", V2 + b"f wait 18446744073709551615 0\nf read 0 1\n", "-:3: the time is 1844"),
    ("iolog", V2 + b"f read 18446744073709551615 2\n", "-:2: the request ends beyond 2^64"),
    ("iolog", b"fio version 3 iolog\n5 f wait 1 0\n", "-:2: the action is 'wait'"),
    ("iolog", b"fio version 3 iolog\n5 f read 0 1\n4 f read 0 1\n", "-:3: the time goes back"),
    ("msr", b"1,a,0,Read,0\n", "-:1: the size is missing"),
    ("msr", b"1,a,0,Read,0,,5\n", "-:1: the size is missing"),
    ("msr", b"1,a,0,Raed,0,1,1\n", "-:1: the type is 'Raed'"),
    ("msr", b"1,a,0,Read,0,1,1\n1,a,1,Read,0,1,1\n", "-:2: disk 1 after disk 0"),
    ("msr", b"1844674407370955162,a,0,Read,0,1,1\n", "-:1: the timestamp is 1844"),
    ("msr", b"1,a,0,Read,2097152,1,1\n", "-:1: the request is of block 512"),
    ("msr", b"1,a,0,Read,2097151,2,1\n", "-:1: the request is of block 511 and 2 in all"),
    ("msr", b"1,a,0,Read,0,2097153,1\n", "-:1: the request has 513 blocks"),
    ("mqsim", b"1 0 0 8 2\n", "-:1: the type is 2"),
    ("mqsim", b"1 0 0 8\n", "-:1: the type is missing"),
    ("mqsim", b"1 0 36028797018963968 8 1\n", "-:1: the sectors lie beyond 2^64"),
    ("mqsim", b"2 0 0 8 1\n\n1 0 0 8 1\n", "-:3: the time goes back by 1 ns"),
    ("mqsim", b"1 0 0 8 0\n2 0 0 8 0\n", "-:2: write of block 0 and 1 in all: not in order"),
    ("blkparse", b"hello\n", "-:1: the first field is 'hello'"),
    ("blkparse", b"8,0 1 2 3.x 1 D R 0 + 8\n", "-:1: the time is '3"),
    ("blkparse", b"8,0 1 2 99999999999 1 D R 0 + 8\n", "-:1: the time is '999"),
    ("blkparse", b"8,0 1 2 0.1 1 D R 0 - 8\n", "-:1: there is no '+'"),
    ("blkparse", b"8,0 1 2 0.1 1 D X 0 + 8\n", "-:1: the kind (rwbs) is 'X'"),
    ("blkparse", b"8,0 1 2 0.1 1 D R 0 + 8\n8,1 1 2 0.1 1 D R 0 + 8\n", "-:2: device 8,1"),
    ("mqsim", b"1 0 0 8 1\0\n", "-:1: there is a NUL byte"),
    ("mqsim", b"1" * 5000, "-:1: the line is longer than 4095 bytes"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_what_is_wrong_is_named(sim: Simulator, name: str, text: bytes, message: str) -> None:
    assert message in sim.fails(*ZONED, name, stdin=text)


def test_wrap(sim: Simulator) -> None:
    text = b"1,a,0,Read,2097152,1,1\n1,a,0,Read,4194303,2,1\n"
    found = sim.trace(*ZONED, "msr", "--wrap", stdin=text)
    assert [(r.lba, r.nlb) for r in found if r.kind == SUBMIT] == [(0, 1), (510, 2)]


def test_closed_loop_ignores_times(sim: Simulator) -> None:
    text = b"2 0 0 8 1\n1 0 0 8 1\n"
    assert sim.json(*ZONED, "mqsim", "--depth", "1", stdin=text)["results"]["requests"] == 2


def test_a_missing_file(sim: Simulator) -> None:
    message = sim.fails("--trace", "nowhere", "--format", "msr")
    assert "nowhere: cannot open it: No such file or directory" in message
    assert "nowhere" in sim.fails("--trace", "nowhere")
    assert "Is a directory" in sim.fails("--trace", "/", "--format", "msr")


@pytest.mark.parametrize("name", ["iolog", "msr", "mqsim", "blkparse"])
def test_damage_ends_in_a_message(sim: Simulator, name: str) -> None:
    """Random damage: a run that ends well, or one line that names the place."""
    good = {"iolog": IOLOG3, "msr": MSR, "mqsim": MQSIM, "blkparse": BLKPARSE}[name]
    chance = random.Random(name)
    refused = 0
    for _ in range(60):
        text = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            kind = chance.randrange(4)
            if kind == 0:
                text[at] = chance.randrange(256)
            elif kind == 1:
                del text[at : at + chance.randint(1, 20)]
            elif kind == 2:
                text[at:at] = bytes(chance.choices(b"0123456789 ,.+-\n\0", k=chance.randint(1, 30)))
            else:
                del text[at:]
            if not text:
                break
        done = sim.run(*ZONED, name, stdin=bytes(text))
        message = done.stderr.decode(errors="replace")
        assert done.returncode in (0, 1), (bytes(text), message)
        if done.returncode == 1:
            refused += 1
            assert message.startswith("rsdsim: -:"), (bytes(text), message)
    assert refused > 20
