#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: innodb.py DIR check STEP seed=N. Is MariaDB's database in DIR/data sound?

No page of its files is torn: each has its LSN at its beginning and, the lower half, near its end.
Then the server recovers without its doublewrite buffer, and reads the table by both of its indices.
"""

import struct
import subprocess
import sys
from pathlib import Path

PAGE = 16384
ROWS = 2000
SERVER = (
    "mariadbd --no-defaults --user=root --bootstrap --innodb-doublewrite=OFF"
    " --innodb-buffer-pool-size=6M --datadir="
).split()


def torn(path: Path) -> list[int]:
    """The numbers of pages that are of two writes."""
    found = []
    with path.open("rb") as stream:
        for number in range(path.stat().st_size // PAGE):
            page = stream.read(PAGE)
            (begin,) = struct.unpack_from(">I", page, 20)
            (end,) = struct.unpack_from(">I", page, PAGE - 8)
            if begin != end:
                found.append(number)
    return found


def main() -> None:
    data = Path(sys.argv[1], "data")
    faults = 0
    for path in [data / "ibdata1", *data.glob("undo*"), *data.glob("*/*.ibd")]:
        if pages := torn(path):
            print(f"{path.name}: torn pages {pages}")
            faults += 1
    counts = [Path("/tmp/primary"), Path("/tmp/secondary")]
    statements = ""
    for path, index in zip(counts, ("PRIMARY", "k_1"), strict=True):
        path.unlink(missing_ok=True)
        statements += f"SELECT COUNT(*) FROM sbtest.sbtest1 FORCE INDEX({index})"
        statements += f" WHERE id > 0 AND k > -1 INTO OUTFILE '{path}';\n"
    command = [*SERVER[:-1], f"{SERVER[-1]}{data}"]
    server = subprocess.run(command, input=statements.encode(), capture_output=True)
    found = [int(path.read_text()) if path.exists() else -1 for path in counts]
    if server.returncode or found != [ROWS, ROWS]:
        print(f"the server's status is {server.returncode}, rows by index {found}, not {ROWS}")
        print(server.stderr.decode()[-3000:])
        faults += 1
    sys.exit(faults > 0)


main()
