# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults by rule under a mounted volume: what the drive copes with is silent, the rest is said."""

import re
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

# work.py write: rounds of files, each written whole and made durable, some removed, some
# overwritten, so that zones are cleaned. work.py read: how many are right, wrong, or errors.
WORK = """
import os, sys
from hashlib import sha256

def content(n, turn):
    seed = sha256(f"{n} {turn}".encode()).digest()
    return seed * ((n % 7 + 1) * 1024)

def name(n):
    return f"/mnt/d{n % 5}/f{n}"

TURNS, FILES = 12, 60
last = {n: max(turn for turn in range(TURNS) if (n + turn) % 3 == 0) for n in range(FILES)}
if sys.argv[1] == "write":
    failed = 0
    for turn in range(TURNS):
        for n in range(FILES):
            if (n + turn) % 3 and turn:
                continue
            try:
                os.makedirs(os.path.dirname(name(n)), exist_ok=True)
                if turn and n % 4 == 0 and os.path.exists(name(n)):
                    os.unlink(name(n))
                with open(name(n), "wb", buffering=0) as stream:
                    stream.write(content(n, turn))
                    if n % 2:
                        os.fsync(stream.fileno())
            except OSError as error:
                failed += 1
        os.sync()
    print("calls failed:", failed)
else:
    right = wrong = errors = 0
    for n in range(FILES):
        try:
            with open(name(n), "rb") as stream:
                found = stream.read()
            right += found == content(n, last[n])
            wrong += found != content(n, last[n])
        except OSError:
            errors += 1
    print("files:", right, "right,", wrong, "wrong,", errors, "errors")
"""
BODY = """
start
python3 /in/work.py write
cd /; umount /mnt; start || { echo "it does not mount"; exit 0; }
python3 /in/work.py read
rsdctl show
umount /mnt
%s
"""
# The kernel's complaints that no fault of a drive excuses
BAD = re.compile(r"BUG|WARNING:|Oops|KASAN|hung task|Call Trace")


class Result:
    def __init__(self, text: str) -> None:
        self.text = text
        files = re.search(r"files: (\d+) right, (\d+) wrong, (\d+) errors", text)
        failed = re.search(r"calls failed: (\d+)", text)
        assert not BAD.search(text), text
        assert files and failed, text
        self.right, self.wrong, self.errors = map(int, files.groups())
        self.failed = int(failed[1])

    def count(self, label: str) -> int:
        match = re.search(rf"^  {label} +(\d+)$", self.text, re.MULTILINE)
        return int(match[1]) if match else 0


def under(run: Run, volume: Volume, directory: Path, rules: str, check: str) -> Result:
    (directory / "rules").write_text(rules)
    result = run(
        script(volume, BODY % check),
        system=volume.system,
        namespace={
            **volume.namespace, **SMALL, "spare-blocks": "40", "faults": str(directory / "rules"),
        },
        inputs={"work.py": WORK},
    )  # fmt: skip
    return Result(result.output + result.console)


def test_what_the_drive_copes_with(run: Run, volume: Volume, tmp_path: Path) -> None:
    """Programs and erases that fail, and operations that take long, are seen by nobody."""
    result = under(
        run,
        volume,
        tmp_path,
        "program probability=0.004\nerase probability=0.1\nlatency every=100 time=30ms\n",
        volume.check,
    )
    assert (result.right, result.failed) == (60, 0), result.text
    assert result.count("programs failed") > 10
    assert result.count("erases failed") > 2
    assert result.count("operations longer") > 20
    assert result.count("media errors") == 0


def test_zones_that_become_read_only(run: Run, volume: Volume, tmp_path: Path) -> None:
    """Writing goes on elsewhere; what they have can be read."""
    result = under(run, volume, tmp_path, "read-only every=150 times=6\n", volume.check)
    assert (result.right, result.failed) == (60, 0), result.text
    assert result.count("zones read-only") > 2


def test_pages_that_cannot_be_read(run: Run, volume: Volume, tmp_path: Path) -> None:
    """They are errors to whoever wants them, and nothing is wrong."""
    rules = "read every=29 times=8\n"
    result = under(run, volume, tmp_path, rules, f"{volume.check} || echo fsck $?")
    assert result.wrong == 0, result.text
    assert result.count("pages unreadable") > 2
    assert result.errors + result.failed > 0 or "fsck" in result.text


@pytest.mark.parametrize(
    "rules", ["corrupt every=61", "lost every=61", "offline every=200 times=4"]
)
def test_what_no_file_system_can_mend(run: Run, volume: Volume, tmp_path: Path, rules: str) -> None:
    """The kernel goes on, and the volume can be checked."""
    under(run, volume, tmp_path, rules + "\n", f"timeout 60 {volume.check} || test $? -lt 124")
