#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: sqlite.py DIR check STEP seed=N. Is SQLite's database DIR/db sound?

Transaction n adds row n to `done` and gives every seventh row of `many` the value n. So the rows
of `done` are 1 to n without a gap, n is at least STEP, and `many` has the values of the last seven.
"""

import subprocess
import sys

QUERY = """
pragma integrity_check;
select count(*), coalesce(max(id), 0) from done;
select count(*) from many where v <> (
    select coalesce(max(id), 0) from done where id % 7 = many.id % 7);
"""


def main() -> None:
    command = ["/in/sqlite-batch", f"{sys.argv[1]}/db"]
    done = subprocess.run(command, input=QUERY.encode(), capture_output=True)
    words = done.stdout.decode().replace("|", " ").split()
    if (
        done.returncode
        or len(words) != 4
        or words[0] != "ok"
        or words[1] != words[2]
        or int(words[2]) < int(sys.argv[3])
        or words[3] != "0"
    ):
        sys.exit(f"{words}, step {sys.argv[3]} was promised: {done.stderr.decode()}")


main()
