#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: postgres.py DIR check STEP seed=N. Is PostgreSQL's database in DIR/data sound?

It recovers without images of whole pages in its log. Each page that it reads, to recover, or to
read both tables and their indices, must have its checksum. A transfer adds to one account what it
takes from another, and is a row of `transfers`: so each account has the sum of its transfers.
"""

import re
import subprocess
import sys

SERVER = "/usr/lib/postgresql/17/bin/postgres"
USER = {"user": "postgres", "group": "postgres", "extra_groups": []}
ACCOUNTS = 4000
QUERIES = """\
select count(*) as accounts, sum(balance) as sum from accounts;
select count(*) as wrong from accounts left join (
    select id, sum(amount) as amount from (
        select taken as id, -amount as amount from transfers
        union all select given, amount from transfers) as part group by id) as all_of
    using (id) where balance <> coalesce(amount, 0);
select count(*) as indexed from pg_index, bt_index_check(indexrelid, true)
    where indexrelid in ('accounts_pkey'::regclass, 'transfers_taken'::regclass);
select count(*) as damaged from verify_heapam('accounts');
select count(*) as damaged_too from verify_heapam('transfers');
"""
EXPECTED = {
    "accounts": str(ACCOUNTS),
    "sum": "0",
    "wrong": "0",
    "indexed": "2",
    "damaged": "0",
    "damaged_too": "0",
}


def main() -> None:
    """Each query has to be in one line for a server of a single user."""
    lines = [" ".join(query.split()) + ";" for query in QUERIES.split(";") if query.strip()]
    done = subprocess.run(
        [SERVER, "--single", "-D", f"{sys.argv[1]}/data", "postgres"],
        input="\n".join(lines).encode(),
        capture_output=True,
        cwd="/tmp",
        **USER,
    )
    found = dict(re.findall(r"\d+: (\w+) = \"([^\"]*)\"", done.stdout.decode()))
    if done.returncode or found != EXPECTED:
        print(f"the server's status is {done.returncode}; {found}")
        print(done.stderr.decode()[-3000:])
        sys.exit(1)


main()
