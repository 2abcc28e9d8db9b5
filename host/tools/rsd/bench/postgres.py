# SPDX-License-Identifier: GPL-2.0-or-later
"""PostgreSQL at work: transfers between accounts, in a guest that has Debian's package of it.

It writes its pages of 8 KiB directly (debug_io_direct), each call as one transaction of RFS. With
its usual way through the page cache, Linux decides which blocks are written together.
"""

PACKAGE = "postgresql-17"
BIN = "/usr/lib/postgresql/17/bin"
ACCOUNTS = 4000

# Its user may not be root. Memory for few pages, so that they are written all the time, and little
# room for the log, so that there are check-points.
_SETTINGS = """\
debug_io_direct = data
listen_addresses = ''
unix_socket_directories = '/tmp'
shared_buffers = 512kB
max_wal_size = 2MB
min_wal_size = 2MB
autovacuum = off
"""

_TABLES = f"""\
create extension amcheck;
create table accounts(id int primary key, balance int, text char(200));
insert into accounts select n, 0, 'x' from generate_series(1, {ACCOUNTS}) as n;
create table transfers(taken int, given int, amount int, text char(100));
create index transfers_taken on transfers(taken);
checkpoint;
"""

# The account with the lower number first, so that no two transactions wait for each other
_TRANSFER = rf"""
\set one random(1, {ACCOUNTS})
\set other random(1, {ACCOUNTS})
\set low least(:one, :other)
\set high greatest(:one, :other)
\set amount random(-100, 100)
begin;
update accounts set balance = balance - :amount where id = :low;
update accounts set balance = balance + :amount where id = :high;
insert into transfers values (:low, :high, :amount, 'x');
commit;
"""


def prepare(*, full_page_writes: bool) -> str:
    """Commands: the server runs on /mnt/data, and has the tables."""
    return f"""\
as() {{ setpriv --reuid postgres --regid postgres --clear-groups env -C /tmp "$@"; }}
mkdir /mnt/data
chown postgres /mnt/data
as {BIN}/initdb -D /mnt/data --data-checksums --no-sync --wal-segsize=1 --locale=C --auth=trust \
    >/tmp/initdb
cat >>/mnt/data/postgresql.conf <<'END'
full_page_writes = {"on" if full_page_writes else "off"}
{_SETTINGS}END
as {BIN}/pg_ctl -D /mnt/data -w -t 600 -l /tmp/db.log start >/dev/null
cat >/tmp/transfer.sql <<'END'
{_TRANSFER}END
as {BIN}/psql -q -h /tmp -v ON_ERROR_STOP=1 postgres <<'END'
{_TABLES}END
"""


def transfers(clients: int, each: int) -> str:
    """A command: so many clients transfer. Its report is in /tmp/report."""
    return (
        f"as {BIN}/pgbench -n -h /tmp -f /tmp/transfer.sql -c {clients} -t {each} --random-seed=1"
        f" postgres >/tmp/report\ngrep 'processed: {clients * each}/' /tmp/report\n"
    )


def stop(how: str) -> str:
    """A command: `immediate` is as if it were killed, `fast` writes a check-point."""
    return f"as {BIN}/pg_ctl -D /mnt/data -m {how} -w -t 600 stop >/dev/null\n"
