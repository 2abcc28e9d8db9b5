# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs on the file systems: REDO's and RISA's benchmarks, each a fixed amount of work.

To add one, add a row to BENCHMARKS. tiobench and iozone are not in Debian: fio does what they
do. Sizes leave every file system room on its drive: the one with the least is F2FS on RSD,
whose reserve is counted in zones.
"""

import enum
import shlex
from dataclasses import dataclass
from pathlib import Path

from rsd.compare.cells import KIB, MIB, Level
from rsd.compare.stacks import REDO, RISA, SMALL, Scale


class Output(enum.Enum):
    """What the measured command leaves in its directory."""

    FIO = "a fio JSON a phase"
    SYSBENCH = "sysbench's report with a histogram"
    POSTMARK = "postmark's terse report"
    BONNIE = "bonnie++'s CSV line"
    SQLITE = "the shell's timer lines"
    DESCRIBED = "what the benchmark's figures say"


@dataclass(frozen=True)
class Described:
    """A figure of a benchmark from elsewhere (own.py): a number in a file that it leaves in $out.

    `pattern` is a regular expression with one group; its last match counts.
    """

    metric: str
    unit: str
    pattern: str
    file: str = "report"


@dataclass(frozen=True)
class Benchmark:
    """One workload on a file system. Names begin with their group: small, redo or risa.

    `setup`, `run` and `teardown` are shell, executed in a fresh directory of the file system; only
    `run` and the sync after it are measured. $out is where output goes. `work` is how much `run`
    does, in `unit`s; `written` how many bytes it writes to files, where that is known beforehand.
    `live_mib` is about what its files hold at the most. `inputs` is a directory, /in in the guest;
    `figures` are those of Output.DESCRIBED.
    """

    name: str
    title: str
    scale: Scale
    level: Level
    output: Output
    run: str
    work: float
    unit: str
    live_mib: int
    setup: str = ":"
    teardown: str = ":"
    phases: tuple[str, ...] = ()
    written: int | None = None
    inputs: Path | None = None
    figures: tuple[Described, ...] = ()


def _fio(phase: str, *options: str) -> str:
    words = ["fio", f"--name={phase}", "--directory=.", "--thread", "--randrepeat=1"]
    words += ["--zero_buffers", "--fallocate=none", "--group_reporting", "--eta=never"]
    words += ["--percentile_list=50:90:99:99.9:99.99", "--output-format=json", *options]
    return f"{shlex.join(words)} --output=$out/{phase}.json"


def _file(
    scale: Scale, group: str, name: str, title: str, bytes_: int, mode: str, level: Level
) -> Benchmark:
    """RISA's fio: a file, read or written from end to end or at random, without page cache."""
    layout = f"--filename=file --size={bytes_}"
    block = 4 * KIB if "rand" in mode else 128 * KIB
    writes = "write" in mode
    done = bytes_ // 4 if mode == "randread" else bytes_
    options = [f"--rw={mode}", f"--bs={block}", f"--io_size={done}", "--ioengine=psync"]
    prepared = mode != "write"
    return Benchmark(
        name=f"{group}-fio-{name}",
        title=f"fio, {title} of one file of {bytes_ // MIB} MiB, {block // KIB} KiB",
        scale=scale,
        level=level,
        output=Output.FIO,
        setup=_fio("prepare", *layout.split(), "--rw=write", "--bs=1M", "--end_fsync=1")
        if prepared
        else ":",
        run=_fio("file", *layout.split(), *options, *(["--end_fsync=1"] if writes else [])),
        work=done / MIB,
        unit="MiB",
        live_mib=bytes_ // MIB,
        phases=("file",),
        written=done if writes else None,
    )


def _tiobench(scale: Scale, group: str, threads: int, mib: int, level: Level) -> Benchmark:
    """A file a thread, written in order and then at random, in blocks of 4 KiB."""
    each = mib * MIB // threads // (4 * KIB) * (4 * KIB)
    common = [f"--numjobs={threads}", "--bs=4k", "--ioengine=psync", "--end_fsync=1"]
    common += ["--filename_format=tio.$jobnum", f"--size={each}"]
    random_bytes = each // 2 // (4 * KIB) * (4 * KIB)
    total = threads * (each + random_bytes)
    return Benchmark(
        name=f"{group}-tiobench-{threads}",
        title=f"{threads} thread{'s' if threads > 1 else ''}, a file each, {mib} MiB in all in "
        "order, then half of it at random",
        scale=scale,
        level=level,
        output=Output.FIO,
        run=_fio("sequential", "--rw=write", *common)
        + " && "
        + _fio("random", "--rw=randwrite", f"--io_size={random_bytes}", *common),
        work=total / MIB,
        unit="MiB",
        live_mib=mib,
        phases=("sequential", "random"),
        written=total,
    )


def _iozone(
    scale: Scale,
    group: str,
    name: str,
    records: tuple[int, ...],
    sync: bool,
    mib: int,
    level: Level,
) -> Benchmark:
    """Write and rewrite of a file for each request size."""

    def phase(verb: str, record: int) -> str:
        return verb if len(records) == 1 else f"{verb}-{_size(record)}"

    common = ["--rw=write", f"--size={mib}M", "--ioengine=psync"]
    common += ["--sync=1"] if sync else ["--end_fsync=1"]
    steps = [
        (phase(verb, record), ["--filename=file", f"--bs={record}", *common])
        for record in records
        for verb in ("write", "rewrite")
    ]
    # A file of its own for each request size, as iozone has it
    commands = [
        ("rm -f file && " if at % 2 == 0 and at else "") + _fio(title, *options)
        for at, (title, options) in enumerate(steps)
    ]
    return Benchmark(
        name=f"{group}-iozone{name}",
        title=f"write and rewrite of {mib} MiB in requests of "
        f"{', '.join(map(_size, records))}, {'O_SYNC' if sync else 'buffered'}",
        scale=scale,
        level=level,
        output=Output.FIO,
        run=" && ".join(commands),
        work=2.0 * mib * len(records),
        unit="MiB",
        live_mib=mib,
        phases=tuple(title for title, _ in steps),
        written=2 * mib * MIB * len(records),
    )


def _size(record: int) -> str:
    return f"{record // MIB}m" if record >= MIB else f"{record // KIB}k"


def _postmark(scale: Scale, group: str, files: int, transactions: int, level: Level) -> Benchmark:
    lines = ["set location .", f"set number {files}", f"set transactions {transactions}"]
    lines += ["set size 500 10000", "set subdirectories 20", "set report terse", "run", "quit"]
    return Benchmark(
        name=f"{group}-postmark",
        title=f"postmark, {files} files of 500 to 10,000 bytes, {transactions} transactions",
        scale=scale,
        level=level,
        output=Output.POSTMARK,
        setup=f"printf '%s\\n' {shlex.join(lines)} >/tmp/postmark",
        run="postmark /tmp/postmark >$out/report",
        work=transactions,
        unit="transactions",
        live_mib=files * 8 // 1024,
    )


def _bonnie(scale: Scale, group: str, mib: int, files: int, level: Level) -> Benchmark:
    return Benchmark(
        name=f"{group}-bonnie",
        title=f"bonnie++, block tests on {mib} MiB, {files} Ki small files",
        scale=scale,
        level=level,
        output=Output.BONNIE,
        # -r is what it takes for the memory: half of the size at most.
        run=f"bonnie++ -d . -s {mib} -r {mib // 2} -n {files}:8192:512:16 -u root -f -q "
        f"-m rsd >$out/report",
        # written, rewritten, read
        work=3.0 * mib,
        unit="MiB",
        live_mib=mib + 6 * files,
    )


def _sysbench_files(scale: Scale, group: str, mib: int, events: int, level: Level) -> Benchmark:
    common = f"--file-num=64 --file-total-size={mib}M --file-test-mode=rndrw --rand-seed=1"
    return Benchmark(
        name=f"{group}-sysbench",
        title=f"sysbench fileio, random reads and writes of 16 KiB on {mib} MiB, 3:2, "
        "an fsync each 100",
        scale=scale,
        level=level,
        output=Output.SYSBENCH,
        setup=f"sysbench fileio {common} prepare >/dev/null",
        run=f"sysbench --histogram=on fileio {common} --time=0 --events={events} run >$out/report",
        work=events,
        unit="events",
        live_mib=mib,
    )


# sysbench's oltp_read_write, statement by statement, for the sqlite3 shell. The generator is
# Park and Miller's, whose products awk's doubles hold exactly.
OLTP_AWK = r"""
function pick(n) { seed = seed * 16807 % 2147483647; return 1 + seed % n }
function text(n,   s) { s = ""; while (length(s) < n) s = s sprintf("%010d-", pick(2000000000));
	return substr(s, 1, n) }
BEGIN {
	seed = 1
	if (transactions == 0) {
		print "PRAGMA journal_mode=" journal ";"
		print "CREATE TABLE sbtest(id INTEGER PRIMARY KEY, k INT, c TEXT, pad TEXT);"
		print "BEGIN;"
		for (i = 1; i <= rows; i++)
			printf "INSERT INTO sbtest VALUES(%d,%d,'%s','%s');\n",
				i, pick(rows), text(119), text(59)
		print "COMMIT;"
		print "CREATE INDEX k ON sbtest(k);"
	}
	for (t = 0; t < transactions; t++) {
		print "BEGIN IMMEDIATE;"
		for (i = 0; i < 10; i++)
			printf "SELECT c FROM sbtest WHERE id=%d;\n", pick(rows)
		a = pick(rows)
		printf "SELECT c FROM sbtest WHERE id BETWEEN %d AND %d;\n", a, a + 99
		a = pick(rows)
		printf "SELECT SUM(k) FROM sbtest WHERE id BETWEEN %d AND %d;\n", a, a + 99
		a = pick(rows)
		printf "SELECT c FROM sbtest WHERE id BETWEEN %d AND %d ORDER BY c;\n", a, a + 99
		a = pick(rows)
		printf "SELECT DISTINCT c FROM sbtest WHERE id BETWEEN %d AND %d ORDER BY c;\n",
			a, a + 99
		printf "UPDATE sbtest SET k=k+1 WHERE id=%d;\n", pick(rows)
		printf "UPDATE sbtest SET c='%s' WHERE id=%d;\n", text(119), pick(rows)
		a = pick(rows)
		printf "DELETE FROM sbtest WHERE id=%d;\n", a
		printf "INSERT INTO sbtest VALUES(%d,%d,'%s','%s');\n",
			a, pick(rows), text(119), text(59)
		print ".timer on"
		print "COMMIT;"
		print ".timer off"
	}
}
"""


def _sqlite(
    scale: Scale, group: str, rows: int, transactions: int, journal: str, level: Level
) -> Benchmark:
    def generate(count: int) -> str:
        return f"awk -v rows={rows} -v transactions={count} -v journal={journal} -f /tmp/oltp.awk"

    return Benchmark(
        name=f"{group}-sqlite-{journal}",
        title=f"SQLite, sysbench's read-write OLTP on {rows} rows, {transactions} transactions, "
        f"journal_mode={journal}",
        scale=scale,
        level=level,
        output=Output.SQLITE,
        setup=f"cat >/tmp/oltp.awk <<'END'\n{OLTP_AWK.strip()}\nEND\n"
        f"{generate(0)} >/tmp/load.sql && {generate(transactions)} >/tmp/oltp.sql &&\n"
        "sqlite3 oltp.db </tmp/load.sql >/dev/null",
        run="sqlite3 oltp.db </tmp/oltp.sql >/tmp/answers && grep '^Run Time' /tmp/answers "
        ">$out/report",
        work=transactions,
        unit="transactions",
        live_mib=rows // 4000,
    )


def start_mariadb(options: str = "") -> str:
    """Commands, to be followed by one: the server on a directory that is made here.

    It needs no tables of its own when it checks no rights. Each of its `options` ends with a blank.
    """
    return f"""\
mkdir data && echo 'CREATE DATABASE IF NOT EXISTS sbtest;' >/tmp/init.sql &&
{{ mariadbd --no-defaults --user=root --datadir=$PWD/data --socket=/tmp/db.sock \
--skip-networking --skip-grant-tables --init-file=/tmp/init.sql \
{options}--pid-file=/tmp/db.pid >/tmp/db.log 2>&1 & }} &&
for i in $(seq 600); do [ ! -S /tmp/db.sock ] || break; sleep 0.1; done &&
sleep 1 && """


STOP_MARIADB = """\
kill $(cat /tmp/db.pid)
for i in $(seq 600); do [ -e /tmp/db.pid ] || break; sleep 0.1; done"""


def mariadb_client(rows: int, seed: str = "1") -> str:
    return (
        f"sysbench --rand-seed={seed} --histogram=on --db-driver=mysql --mysql-user=root"
        f" --mysql-socket=/tmp/db.sock --tables=1 --table-size={rows}"
    )


def _mariadb(
    scale: Scale, group: str, rows: int, threads: int, transactions: int, level: Level
) -> Benchmark:
    """sysbench's OLTP on InnoDB with default parameters, as in RISA 4.3.2, with a smaller table."""
    client = f"{mariadb_client(rows)} oltp_read_write"
    return Benchmark(
        name=f"{group}-mariadb",
        title=f"MariaDB, sysbench's read-write OLTP on {rows} rows, {threads} threads, "
        f"{transactions} transactions",
        scale=scale,
        level=level,
        output=Output.SYSBENCH,
        setup=f"{start_mariadb()}{client} prepare >/dev/null",
        run=f"{client} --threads={threads} --time=0 --events={transactions} run >$out/report",
        teardown=STOP_MARIADB,
        work=transactions,
        unit="transactions",
        live_mib=rows // 2000,
    )


# sysbench's single queries, as RISA 4.3.2 names them (Non-Trans), and what does them today
QUERIES = {
    "select": "oltp_point_select",
    "update-key": "oltp_update_index",
    "update-nokey": "oltp_update_non_index",
    "insert": "oltp_insert",
    "delete": "oltp_delete",
}


def _queries(
    scale: Scale, group: str, rows: int, threads: int, queries: int, level: Level
) -> Benchmark:
    """sysbench's single queries on InnoDB, one kind after the other (RISA 4.3.2, Non-Trans)."""
    client = mariadb_client(rows)
    commands = [
        f"{client} {script} --threads={threads} --time=0 --events={queries} run >$out/{query}"
        for query, script in QUERIES.items()
    ]
    return Benchmark(
        name=f"{group}-queries",
        title=f"MariaDB, sysbench's single queries on {rows} rows, {threads} threads, {queries} of"
        f" each kind: {', '.join(QUERIES)}",
        scale=scale,
        level=level,
        output=Output.DESCRIBED,
        setup=f"{start_mariadb()}{client} oltp_read_write prepare >/dev/null",
        run=" &&\n".join(commands),
        teardown=STOP_MARIADB,
        work=queries * len(QUERIES),
        unit="queries",
        live_mib=rows // 2000,
        figures=tuple(
            Described(
                f"{query}.rate", "queries/s", r"transactions: +\d+ +\(([\d.]+) per sec", query
            )
            for query in QUERIES
        ),
    )


# What Hadoop's applications do with their files (RISA 4.3.2): a phase, the files it is on, what it
# does with them, and which part of a file of HDFS each has.
_HADOOP = {
    "dfsio": (("write", "input", "write", 1), ("read", "input", "read", 1)),
    "terasort": (
        ("map", "input", "read", 1),
        ("spill", "spill", "write", 1),
        ("sort", "spill", "read", 1),
        ("reduce", "output", "write", 1),
    ),
    "wordcount": (("count", "input", "read", 1), ("result", "output", "write", 16)),
}


def _hadoop(scale: Scale, group: str, name: str, tasks: int, mib: int, level: Level) -> Benchmark:
    """A Hadoop application as the file system under HDFS sees it, without Hadoop.

    HDFS keeps its blocks of 128 MiB as files, writes and reads them from end to end, and deletes
    them whole. Each task has one, of `mib`.
    """
    steps = _HADOOP[name]

    def command(phase: str, files: str, mode: str, part: int) -> str:
        layout = [f"--filename_format={files}.$jobnum", f"--size={mib // part}M"]
        options = [f"--rw={mode}", "--bs=1M", "--ioengine=psync", f"--numjobs={tasks}"]
        return _fio(phase, *options, *layout)

    prepare = command("prepare", "input", "write", 1)
    spilled = any(files == "spill" for _, files, _, _ in steps)
    return Benchmark(
        name=f"{group}-{name}",
        title=f"Hadoop's {name} as its files see it, {tasks} files of {mib} MiB: "
        + ", ".join(phase if phase == mode else f"{phase} ({mode})" for phase, _, mode, _ in steps),
        scale=scale,
        level=level,
        output=Output.FIO,
        setup=":" if steps[0][2] == "write" else prepare,
        run=" &&\n".join([command(*step) for step in steps] + ["rm spill.*"] * spilled),
        work=sum(tasks * mib / part for *_, part in steps),
        unit="MiB",
        live_mib=sum(dict((files, tasks * mib // part) for _, files, _, part in steps).values()),
        phases=tuple(phase for phase, *_ in steps),
    )


QUICK, DEFAULT, FULL = Level.QUICK, Level.DEFAULT, Level.FULL

# RISA 4.3.1 has requests of 4 KiB to 16 MiB.
RECORDS = (4 * KIB, 64 * KIB, MIB, 16 * MIB)

BENCHMARKS = (
    # On a small drive, what a few minutes allow
    _sqlite(SMALL, "small", 10000, 400, "delete", QUICK),
    _postmark(SMALL, "small", 4000, 15000, DEFAULT),
    _tiobench(SMALL, "small", 8, 64, DEFAULT),
    _sysbench_files(SMALL, "small", 64, 6000, DEFAULT),
    # REDO section 3: five benchmarks that write about as much as the drive holds, or more
    *(_tiobench(REDO, "redo", threads, 192, FULL) for threads in (1, 8, 48)),
    _sysbench_files(REDO, "redo", 160, 40000, FULL),
    _iozone(REDO, "redo", "", RECORDS, False, 96, FULL),
    _bonnie(REDO, "redo", 160, 4, FULL),
    _postmark(REDO, "redo", 16000, 80000, FULL),
    *(_sqlite(REDO, "redo", 20000, 1500, journal, FULL) for journal in ("delete", "wal")),
    # RISA section 4.3
    _file(RISA, "risa", "seqwrite", "sequential write", 768 * MIB, "write", FULL),
    _file(RISA, "risa", "seqread", "sequential read", 768 * MIB, "read", FULL),
    _file(RISA, "risa", "randread", "random read", 768 * MIB, "randread", FULL),
    _file(RISA, "risa", "randwrite", "random write", 768 * MIB, "randwrite", FULL),
    *(_tiobench(RISA, "risa", threads, 640, FULL) for threads in (1, 8, 48)),
    *(
        _iozone(RISA, "risa", f"-{_size(record)}-{how}", (record,), how == "sync", 256, FULL)
        for how in ("buffered", "sync")
        for record in RECORDS
    ),
    _postmark(RISA, "risa", 20000, 100000, FULL),
    _sqlite(RISA, "risa", 100000, 3000, "delete", FULL),
    _mariadb(RISA, "risa", 200000, 6, 4000, FULL),
    _queries(RISA, "risa", 200000, 6, 3000, FULL),
    _hadoop(RISA, "risa", "dfsio", 4, 128, FULL),
    _hadoop(RISA, "risa", "terasort", 2, 128, FULL),
    _hadoop(RISA, "risa", "wordcount", 4, 128, FULL),
)
