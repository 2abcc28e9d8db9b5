# SPDX-License-Identifier: GPL-2.0-or-later
"""Databases on RFS, with their own journals against torn pages and without: writes are atomic."""

from dataclasses import dataclass, replace
from pathlib import Path

from rsd import artifacts
from rsd.artifacts import Artifacts
from rsd.bench import postgres, sqlite
from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.compare.benchmarks import OLTP_AWK, STOP_MARIADB, mariadb_client, start_mariadb
from rsd.compare.figures import read_json
from rsd.machine import GuestJob, run_guest

# Tables that are larger than the server's memory for pages, so that pages are written all the time.
# Of a much larger one, most pages that are written are old.
ROWS = (20_000, 200_000)
THREADS = 6
TRANSACTIONS = 1500
SERVER = "--innodb-buffer-pool-size=6M "

# SQLite's, of which one program at a time is a client
SQLITE_ROWS = 2000
SQLITE_TRANSACTIONS = 300

# PostgreSQL's
CLIENTS = 4
TRANSFERS = 400

FEWER_PROGRAMS = 0.4
FASTER = 1.5

# The server's own counts. It has no client in the guest but sysbench.
_COUNTS = """\
cat >/tmp/counts.lua <<'END'
function thread_init() con = sysbench.sql.driver():connect() end
function event()
    for _, name in ipairs({"PAGES_WRITTEN", "DBLWR_PAGES_WRITTEN"}) do
        print(con:query_row("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS" ..
                            " WHERE VARIABLE_NAME = 'INNODB_" .. name .. "'"))
    end
end
END
counts() {
    sysbench --db-driver=mysql --mysql-user=root --mysql-socket=/tmp/db.sock --events=1 --time=0 \
        /tmp/counts.lua run | grep -x '[0-9]*'
}
"""

_MARIADB = f"""\
set -e
drive=/dev/nvme0n1
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
cd /mnt
client="CLIENT oltp_write_only"
{start_mariadb("%s")}$client prepare >/dev/null
sync
sleep 5
{_COUNTS}counts >/out/pages_before
rsdctl show --json $drive >/out/before.json
$client --threads={THREADS} --time=0 --events={TRANSACTIONS} run >/out/report
sync
rsdctl show --json $drive >/out/after.json
counts >/out/pages_after
cat /sys/fs/rfs/nvme0n1/atomic_writes >/out/atomic
{STOP_MARIADB}
cd /
umount /mnt
fsck.rfs $drive
"""


# JOURNAL and SHELL are to be filled in; awk's own text has percent signs and braces.
_SQLITE = """\
set -e
drive=/dev/nvme0n1
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
cd /mnt
cat >/tmp/oltp.awk <<'END'
AWK
END
statements() { awk -v rows=ROWS -v transactions=$1 -v journal=JOURNAL -f /tmp/oltp.awk; }
statements 0 >/tmp/load.sql
statements TRANSACTIONS >/tmp/oltp.sql
/in/SHELL oltp.db </tmp/load.sql >/dev/null
sync
rsdctl show --json $drive >/out/before.json
begin=$(date +%s%N)
/in/SHELL oltp.db </tmp/oltp.sql >/dev/null
echo $(($(date +%s%N) - begin)) >/out/ns
sync
rsdctl show --json $drive >/out/after.json
cat /sys/fs/rfs/nvme0n1/atomic_writes >/out/atomic
test "$(/in/SHELL oltp.db 'pragma integrity_check')" = ok
cd /
umount /mnt
fsck.rfs $drive
"""

_POSTGRES = f"""\
set -e
drive=/dev/nvme0n1
mkfs.rfs -q $drive
mount -t rfs $drive /mnt
PREPARE
sync
sleep 5
rsdctl show --json $drive >/out/before.json
{postgres.transfers(CLIENTS, TRANSFERS)}
sync
rsdctl show --json $drive >/out/after.json
cp /tmp/report /out/report
cat /sys/fs/rfs/nvme0n1/atomic_writes >/out/atomic
{postgres.stop("fast")}
umount /mnt
fsck.rfs $drive
"""


@dataclass(frozen=True)
class _Run:
    programs: int
    rate: float  # transactions a second
    atomic: int  # writes that were one transaction of the file system
    pages: int = 0  # of MariaDB's, of 16 KiB, that it wrote
    copied: int = 0  # those that went into its doublewrite buffer before


def _programs(out: Path, name: str) -> int:
    counters = read_json(out / f"{name}.json")["counters"]
    return int(counters["nand_programs"]["value"])


def _mariadb(context: Context, rows: int, doublewrite: str) -> _Run:
    options = f"{SERVER}--innodb-doublewrite={doublewrite} "
    with (
        context.progress.step(f"MariaDB, {rows:,} rows, doublewrite={doublewrite}"),
        context.cache.scratch("out") as out,
    ):
        script = (_MARIADB % options).replace("CLIENT", mariadb_client(rows))
        job = GuestJob(system="rsd", script=script, out_dir=out)
        finished(run_guest(job, context.built, cache=context.cache), "rfs-atomic, MariaDB")
        report = (out / "report").read_text()
        rate = float(report.split("transactions:")[1].split("(")[1].split()[0])
        atomic = int((out / "atomic").read_text())
        had, has = (
            [int(word) for word in (out / f"pages_{when}").read_text().split()]
            for when in ("before", "after")
        )
        programs = _programs(out, "after") - _programs(out, "before")
        return _Run(programs, rate, atomic, has[0] - had[0], has[1] - had[1])


def _postgres(context: Context, built: Artifacts, *, full_page_writes: bool) -> _Run:
    prepared = postgres.prepare(full_page_writes=full_page_writes)
    with (
        context.progress.step(f"PostgreSQL, full_page_writes={full_page_writes}"),
        context.cache.scratch("out") as out,
    ):
        job = GuestJob(system="rsd", script=_POSTGRES.replace("PREPARE", prepared), out_dir=out)
        finished(run_guest(job, built, cache=context.cache), "rfs-atomic, PostgreSQL")
        rate = float((out / "report").read_text().split("tps = ")[1].split()[0])
        atomic = int((out / "atomic").read_text())
        return _Run(_programs(out, "after") - _programs(out, "before"), rate, atomic)


def _sqlite(context: Context, shells: Path, shell: str, journal: str) -> _Run:
    script = _SQLITE
    for word, value in (
        ("ROWS", str(SQLITE_ROWS)),
        ("TRANSACTIONS", str(SQLITE_TRANSACTIONS)),
        ("JOURNAL", journal),
        ("SHELL", shell),
        ("AWK", OLTP_AWK.strip()),
    ):
        script = script.replace(word, value)
    with (
        context.progress.step(f"SQLite, {shell}, journal_mode={journal}"),
        context.cache.scratch("out") as out,
    ):
        job = GuestJob(
            system="rsd",
            script=script,
            out_dir=out,
            inputs={name: shells / name for name in (sqlite.BATCH, sqlite.PLAIN)},
        )
        finished(run_guest(job, context.built, cache=context.cache), "rfs-atomic, SQLite")
        rate = SQLITE_TRANSACTIONS / (int((out / "ns").read_text()) / 1e9)
        atomic = int((out / "atomic").read_text())
        return _Run(_programs(out, "after") - _programs(out, "before"), rate, atomic)


def _rows(what: str, journal: str, with_it: _Run, without: _Run) -> list[Row]:
    saved = 1 - without.programs / with_it.programs
    gain = without.rate / with_it.rate
    return [
        Row(
            f"{what}: NAND programs without {journal}",
            f"{FEWER_PROGRAMS:.0%} fewer",
            f"{saved:.1%} fewer: {without.programs:,} for {with_it.programs:,}",
            without.programs,
            "pages",
            "count",
            saved >= FEWER_PROGRAMS,
        ),
        Row(
            f"{what}: transactions a second without {journal}",
            f"{FASTER} times as many",
            f"{gain:.2f} times: {without.rate:,.0f} for {with_it.rate:,.0f}",
            without.rate,
            "1/s",
            "virtual",
            gain >= FASTER,
        ),
    ]


def _informative(row: Row) -> Row:
    return replace(row, must="informative", passed=None)


def _used(what: str, run: _Run, least: int) -> Row:
    return Row(
        f"{what}: writes that were one transaction of the file system",
        f"at least {least:,}",
        f"{run.atomic:,}",
        run.atomic,
        "writes",
        "count",
        run.atomic >= least,
    )


def _copied(what: str, run: _Run) -> Row:
    """A page that is made anew is not copied, so that doublewrite costs less than half."""
    return Row(
        f"{what}: pages of 16 KiB that doublewrite copied",
        "informative",
        f"{run.copied:,} of {run.pages:,} that the server wrote",
        run.copied,
        "pages",
        "count",
        None,
    )


def rfs_atomic(context: Context) -> list[Row]:
    """Three databases, each with what protects it from torn pages, and without."""
    shells = sqlite.ensure(context.cache, context.progress)
    what = f"SQLite, sysbench's OLTP, {SQLITE_ROWS:,} rows, {SQLITE_TRANSACTIONS:,} transactions"
    batch = _sqlite(context, shells, sqlite.BATCH, "delete")
    rows = [
        *_rows(what, "a rollback journal", _sqlite(context, shells, sqlite.PLAIN, "delete"), batch),
        *map(
            _informative,
            _rows(what, "a WAL", _sqlite(context, shells, sqlite.PLAIN, "wal"), batch),
        ),
        _used(what, batch, SQLITE_TRANSACTIONS),
    ]
    for count in ROWS:
        what = f"MariaDB, sysbench's oltp_write_only, {count:,} rows, {TRANSACTIONS:,} transactions"
        runs = {how: _mariadb(context, count, how) for how in ("ON", "OFF")}
        rows += _rows(what, "doublewrite", runs["ON"], runs["OFF"])
        rows += [_copied(what, runs["ON"]), _used(what, runs["OFF"], 1000)]
    what = f"PostgreSQL, transfers between accounts, {CLIENTS * TRANSFERS:,} transactions"
    built = artifacts.ensure(context.cache, context.progress, packages=[postgres.PACKAGE])
    whole, off = (_postgres(context, built, full_page_writes=on) for on in (True, False))
    rows += map(_informative, _rows(what, "full_page_writes", whole, off))
    return [*rows, _used(what, off, 1000)]
