# SPDX-License-Identifier: GPL-2.0-or-later
"""RISA's database cells (4.3.2): a table as large as there is room for, loaded once a system.

The paper's table of 5,000,000 rows takes most of its drive, so that a query changes a page that is
anywhere on it. Loading it takes longer than any number of queries that can be measured here, and so
do the queries that would write the drive full. So the table is loaded once for each stack, by the
server itself; then its pages are rewritten in place, in the order of a generator, each as it is:
these are the writes of a server that evicts pages. What both leave is kept, and each benchmark goes
on from there, in rounds of queries. A round ends with the server's end, which writes what it still
has in memory.
"""

from collections.abc import Mapping
from pathlib import Path

from rsd.compare.benchmarks import (
    QUERIES,
    STOP_MARIADB,
    Benchmark,
    Described,
    Output,
    mariadb_client,
)
from rsd.compare.cells import Level
from rsd.compare.stack_script import VOLUME
from rsd.compare.stacks import RISA
from rsd.paper.rounds import Loaded

# With its index and the server's own files, about what --live 60 leaves beside the aged files
ROWS = 3_000_000
LIVE_MIB = 870
THREADS = 6
TRANSACTIONS = 1000
# Of each kind
SINGLE = 2000
ROUNDS = 3

PAGES = Path(__file__).with_name("pages.py")
DATA = f"{VOLUME}/db"
TABLE = f"{DATA}/sbtest/sbtest1.ibd"
_SERVER = f"mariadbd --no-defaults --user=root --datadir={DATA}"

# sysbench's table. Its columns of text are as long as sysbench's, and of no meaning to any query;
# k is at random, as there.
_LOAD = """\
CREATE DATABASE sbtest;
USE sbtest;
CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB;
INSERT INTO sbtest1 SELECT seq, 1 + FLOOR(RAND(1) * {rows}), LPAD(seq, 119, '0123456789-'), \
LPAD(seq, 59, '0123456789-') FROM seq_1_to_{rows};
CREATE INDEX k_1 ON sbtest1(k);
"""


def load(rows: int) -> str:
    """Commands that make the database."""
    options = "--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF"
    return (
        f"mkdir {DATA}\n"
        f"cat >/tmp/load.sql <<'END'\n{_LOAD.format(rows=rows)}END\n"
        f"{_SERVER} --bootstrap {options} </tmp/load.sql >/tmp/db.log 2>&1 ||\n"
        "\tfail 'loading the table' /tmp/db.log\n"
        "sync\n"
    )


def rewrite(amount: int) -> str:
    """Commands that rewrite so many bytes of the table's pages."""
    return (
        f"cat >/tmp/pages.py <<'END'\n{PAGES.read_text()}END\n"
        f"must python3 /tmp/pages.py {TABLE} {amount}\n"
    )


_START = f"""\
{{ {_SERVER} --socket=/tmp/db.sock --skip-networking --skip-grant-tables \
--pid-file=/tmp/db.pid >/tmp/db.log 2>&1 & }} &&
for i in $(seq 600); do [ ! -S /tmp/db.sock ] || break; sleep 0.1; done &&
sleep 1"""


def queries(rows: int, each: int, live_mib: int) -> Benchmark:
    """sysbench's single queries, one kind after the other (Non-Trans)."""
    return _benchmark(
        "risa-queries",
        f"sysbench's single queries, {each} of each kind: {', '.join(QUERIES)}",
        rows,
        live_mib,
        QUERIES,
        each,
        "queries",
    )


def oltp(rows: int, transactions: int, live_mib: int) -> Benchmark:
    """sysbench's transactions, which read and write."""
    title = f"sysbench's read-write OLTP, {transactions} transactions"
    scripts = {"oltp": "oltp_read_write"}
    return _benchmark("risa-mariadb", title, rows, live_mib, scripts, transactions, "transactions")


def _benchmark(
    name: str,
    title: str,
    rows: int,
    live_mib: int,
    scripts: Mapping[str, str],
    events: int,
    unit: str,
) -> Benchmark:
    """sysbench's `scripts` by the names of their rates, so many `events` of each."""
    # Each round has queries of its own: who deletes a row twice finds nothing the second time.
    client = mariadb_client(rows, seed="$round")
    commands = [
        f"{client} {script} --threads={THREADS} --time=0 --events={events} run >$out/{rate}"
        for rate, script in scripts.items()
    ]
    return Benchmark(
        name=name,
        title=f"MariaDB, {title}, on {rows} rows, {THREADS} threads",
        scale=RISA,
        level=Level.FULL,
        output=Output.DESCRIBED,
        setup=_START,
        run=" &&\n".join([*commands, STOP_MARIADB]),
        work=events * len(scripts),
        unit=unit,
        live_mib=live_mib,
        figures=tuple(
            Described(f"{rate}.rate", f"{unit}/s", r"transactions: +\d+ +\(([\d.]+) per sec", rate)
            for rate in scripts
        ),
    )


BENCHMARKS = (queries(ROWS, SINGLE, LIVE_MIB), oltp(ROWS, TRANSACTIONS, LIVE_MIB))
LOADED = Loaded(f"a table of {ROWS} rows", load(ROWS), rewrite, ROUNDS)
