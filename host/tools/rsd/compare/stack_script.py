# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell scripts that run inside a guest for a file system on a drive.

One makes and ages the file system. The other measures one benchmark on it and leaves in /out:
`times` (two lines, ns of the guest's clock), `before` and `after` with `stat` (the block layer's
counters), on our drives `counters.json` and, where the file system counts, `fs`; `space` (df),
`errors`, and the benchmark's own.
"""

from pathlib import Path

from rsd.compare.benchmarks import Benchmark
from rsd.compare.cells import MIB
from rsd.compare.stacks import Scale, Stack

VOLUME = "/vol"
AGE = Path(__file__).with_name("age.py")
# Where the guest leaves the drive's counters of each round of the aging
READINGS = "/out/readings"

# Long enough for every background erasure. Our guests skip idle time, so it costs nothing there.
REST_S = 5
# Longer than btrfs waits between the commits after which it reclaims zones.
AGING_REST_S = 35

# One file in so many stays.
AGING_KEEP = 3

# The status of a script that could not go on
FAILED = 3

_PROLOGUE = """\
set -u
exec </dev/null
# A preparation that fails would make the figures meaningless.
fail() {
	echo "@failed $1"
	shift
	cat "$@" 2>/dev/null
	exit 3
}
must() {
	"$@" >/tmp/prepare 2>&1 || fail "$*" /tmp/prepare
}
mounted() {
	mkdir -p /vol
	must $1 /vol
}
"""

# mount returns before nilfs_cleanerd and the like have settled, umount may find them busy.
_UNMOUNT = f"cd /\nsync\nmust umount {VOLUME}\n"


# $second is there on drives with a second namespace.
_DRIVES = "drive=/dev/nvme0n1\nsecond=/dev/nvme0n2\n"


def age(stack: Stack, scale: Scale) -> str:
    """Make the file system and age it with age.py."""
    raw = scale.raw_mib * MIB
    amounts = [int(raw * stack.fill), int(raw * stack.written)]
    amounts += [AGING_REST_S if stack.ours else 0, AGING_KEEP]
    reading = f' {READINGS} "rsdctl show --json $drive"' if stack.ours else ""
    return make(
        stack,
        f"mkdir {VOLUME}/aged {READINGS} || exit 3\n"
        + f"cat >/tmp/age.py <<'END'\n{AGE.read_text()}END\n"
        + f"must python3 /tmp/age.py {VOLUME}/aged {' '.join(map(str, amounts))}{reading}\n",
    )


def make(stack: Stack, fill: str) -> str:
    """Make the file system, and `fill` it, mounted on VOLUME."""
    return _filled(stack, f"must {stack.file_system.mkfs}\n", fill)


def add(stack: Stack, fill: str) -> str:
    """`fill` the file system that is there, mounted on VOLUME."""
    return _filled(stack, "", fill)


def _filled(stack: Stack, mkfs: str, fill: str) -> str:
    file_system = stack.file_system
    return (
        _PROLOGUE
        + _DRIVES
        + f"{file_system.before_mount}\n"
        + mkfs
        + f'mounted "{file_system.mount}"\n'
        + file_system.after_mount
        + fill
        + "df -k /vol >/out/space\n"
        + _UNMOUNT
        + f"sleep {REST_S if stack.ours else 0}\n"
    )


def aged_bytes(scale: Scale) -> int:
    """About what aging leaves in files, where a stack is filled as most are."""
    return int(scale.raw_mib * MIB * Stack.fill) // AGING_KEEP


def ballast(amount: int) -> str:
    """Files of 1 MiB that hold `amount` bytes and stay."""
    return (
        f"mkdir {VOLUME}/ballast\n"
        f"for at in $(seq {amount // MIB}); do\n"
        f"\tmust dd if=/dev/zero of={VOLUME}/ballast/$at bs=1M count=1\n"
        "done\n"
        "sync\n"
    )


def measure(stack: Stack, benchmark: Benchmark, prepare: str = "") -> str:
    """Mount the aged file system, `prepare` it, and measure a benchmark on it."""
    file_system = stack.file_system
    counters = "must rsdctl show --json $drive && mv /tmp/prepare $out/$1/counters.json"
    return (
        _PROLOGUE
        + _DRIVES
        + f"{file_system.before_mount}\n"
        + f'mounted "{file_system.mount}"\n'
        + file_system.after_mount
        + prepare
        + f"mkdir {VOLUME}/bench && cd {VOLUME}/bench || exit 3\n"
        + "out=/out\n"
        + "read_counters() {\n"
        + "\tmkdir $out/$1\n"
        + "\tcat /sys/block/nvme0n*/stat >$out/$1/stat\n"
        + (f"\t{counters}\n" if stack.ours else "")
        + (f"\t{file_system.counters} >$out/$1/fs\n" if file_system.counters else "")
        + "}\n"
        + "(\n"
        + f"{benchmark.setup}\n"
        + ") || fail 'the setup'\n"
        + "sync\n"
        + "echo 3 >/proc/sys/vm/drop_caches\n"
        + f"sleep {REST_S if stack.ours else 0}\n"
        + "read_counters before\n"
        + "date +%s%N >$out/times\n"
        + f"( {benchmark.run} ) 2>$out/errors\n"
        + "status=$?\n"
        + "sync\n"
        + "date +%s%N >>$out/times\n"
        + "read_counters after\n"
        + "df -k /vol >$out/space\n"
        + f"{benchmark.teardown}\n"
        + '[ "$status" -eq 0 ] || fail "status $status" $out/errors $out/report\n'
        + _UNMOUNT
    )
