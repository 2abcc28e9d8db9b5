# SPDX-License-Identifier: GPL-2.0-or-later
"""A hybrid volume of RFS beside ext4 on its disk alone, and RFS on its flash alone, in the guest.

The drive is preset risa, the disk barracuda-320. What is used fits into flash, and not all of it
is in the page cache.
"""

from dataclasses import dataclass

from rsd.bench.base import Context, Row
from rsd.bench.guest import finished
from rsd.machine import Beside, GuestJob, run_guest

DISK_TIMES, FLASH_SHARE = 10, 1.10
FILE_MIB, OLTP_MIB = 512, 24
FILES, TRANSACTIONS = 4000, 15000

_SCRIPT = f"""\
set -e
drive=/dev/nvme0n1 slow=/dev/nvme1n1
make_disk() {{ mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard $slow 4G; mount $slow /mnt; }}
make_flash() {{ mkfs.rfs -q -f $drive; mount -t rfs $drive /mnt; }}
make_hybrid() {{
    mkfs.rfs -q -f --slow $slow $drive
    mount -t rfs -o slow=$slow $drive /mnt
}}
timed() {{
    name=$1; shift
    began=$(date +%s%N)
    "$@" >/tmp/said 2>&1 || {{ cat /tmp/said; exit 1; }}
    sync
    echo $(($(date +%s%N) - began)) >/out/$name
}}
cat >/tmp/postmark <<END
set location /mnt
set number {FILES}
set transactions {TRANSACTIONS}
set size 500 10000
set subdirectories 20
run
quit
END
for on in disk flash hybrid; do
    make_$on
    timed postmark-$on postmark /tmp/postmark
    fio --name=fill --filename=/mnt/file --rw=write --bs=1m --size={FILE_MIB}m >/dev/null
    sync
    echo 1 >/proc/sys/vm/drop_caches
    timed oltp-$on fio --name=oltp --filename=/mnt/file --rw=randrw --bs=4k --size={FILE_MIB}m \\
        --io_size={OLTP_MIB}m --fdatasync=4 --randseed=5 --norandommap
    if test $on = hybrid; then
        grep . /sys/fs/rfs/nvme0n1/home_* /sys/fs/rfs/nvme0n1/flash_reads
    fi
    umount /mnt
done
"""


@dataclass(frozen=True)
class _Work:
    name: str
    title: str


WORKS = (
    _Work("postmark", f"postmark, {FILES:,} files, {TRANSACTIONS:,} transactions, and sync"),
    _Work(
        "oltp",
        f"4 KiB at random in {FILE_MIB} MiB, as many reads as writes, {OLTP_MIB} MiB,"
        " fdatasync after every 4 writes",
    ),
)


def rfs_hybrid(context: Context) -> list[Row]:
    """The times of two jobs, of which the working set fits into flash."""
    rows = []
    with context.progress.step("RFS: a hybrid volume"), context.cache.scratch("out") as out:
        job = GuestJob(system="rsd", script=_SCRIPT, out_dir=out, beside=Beside("barracuda-320"))
        finished(run_guest(job, context.built, cache=context.cache), "rfs-hybrid")
        for work in WORKS:
            disk, flash, both = (
                int((out / f"{work.name}-{on}").read_text()) / 1e9
                for on in ("disk", "flash", "hybrid")
            )
            rows += [
                Row(
                    f"RFS, hybrid volume, {work.title}",
                    f"{DISK_TIMES} times as fast as ext4 on the disk alone, {disk:.2f} s",
                    f"{disk / both:.1f} times: {both:.2f} s",
                    both,
                    "s",
                    "virtual",
                    DISK_TIMES * both <= disk,
                ),
                Row(
                    f"RFS, hybrid volume, {work.title}",
                    f"at most 10% longer than RFS on flash alone, {flash:.2f} s",
                    f"{both / flash - 1:+.1%}: {both:.2f} s",
                    both,
                    "s",
                    "virtual",
                    both <= FLASH_SHARE * flash,
                ),
            ]
    return rows
