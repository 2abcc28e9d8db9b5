# SPDX-License-Identifier: GPL-2.0-or-later
"""Databases without journals of their own against torn pages: the power is cut, nothing is torn."""

from pathlib import Path

import pytest
from databases import CUT, OPS, cut
from mounted import Run, Volume

from rsd.bench import sqlite
from rsd.cache import Cache
from rsd.compare.benchmarks import mariadb_client, start_mariadb
from rsd.progress import Progress

pytestmark = pytest.mark.guest

ROWS = 2000  # as innodb.py has it

MARIADB = f"""
{start_mariadb("--innodb-doublewrite=OFF --innodb-buffer-pool-size=6M ")}
{mariadb_client(ROWS)} oltp_write_only prepare >/dev/null
sync
first=$(ops)
{mariadb_client(ROWS)} oltp_write_only --threads=4 --time=0 --events=200 run >/dev/null
kill -9 $(cat /tmp/db.pid)
while kill -0 $(cat /tmp/db.pid) 2>/dev/null; do sleep 0.1; done
# The volume may be busy a moment longer than the process can be seen.
sleep 1
: >/tmp/promised
"""

# A transaction is promised when SQLite has answered: the number of operations is asked then.
SQLITE = """
echo 'create table done(id integer primary key, text blob);
create table many(id integer primary key, v integer, text text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400)
insert into many select i, 0, hex(zeroblob(200)) from n;' | /in/sqlite-batch db
sync
first=$(ops)
for i in $(seq 60); do
    echo "begin; insert into done values ($i, randomblob(3000));
        update many set v = $i where id % 7 = $i % 7; commit;" | /in/sqlite-batch db
    echo "promised $i $(ops)"
done >/tmp/promised
"""


@pytest.fixture(autouse=True)
def only_rfs(volume: Volume) -> None:
    """Others tear pages."""
    if volume.system != "rsd":
        pytest.skip("RFS's promise")


@pytest.mark.parametrize("points", [3, pytest.param(1000, marks=pytest.mark.long)])
def test_mariadb_without_doublewrite(run: Run, volume: Volume, tmp_path: Path, points: int) -> None:
    """At each point: no page of InnoDB is torn, and the server recovers."""
    values = {"points": points, "program": "innodb.py", "least": 200}
    cut(run, volume, OPS + MARIADB + CUT % values, {}, tmp_path / "operations")


@pytest.mark.long
def test_sqlite_without_journal(run: Run, volume: Volume, rsd_cache: Cache, tmp_path: Path) -> None:
    """At each point: a transaction is there as a whole or not at all, and in their order."""
    shells = sqlite.ensure(rsd_cache, Progress())
    values = {"points": 1000, "program": "sqlite.py", "least": 59}
    body = OPS + SQLITE + CUT % values
    cut(run, volume, body, {sqlite.BATCH: shells / sqlite.BATCH}, tmp_path / "operations")
