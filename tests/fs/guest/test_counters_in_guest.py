# SPDX-License-Identifier: GPL-2.0-or-later
"""What /sys/fs/rfs and the trace events say, and that host/fs/README.md lists them all."""

import json
import re

import pytest
from mounted import SMALL, VOLUMES, Run, script

from rsd.artifacts import REPOSITORY

pytestmark = pytest.mark.guest

COUNTERS = "file in `/sys/fs/rfs/DEVICE`"
TABLES = "file in `/sys/kernel/debug/rfs/DEVICE`"
EVENTS = "event in `/sys/kernel/tracing/events/rfs`"


def documented(title: str) -> set[str]:
    """The names in the first column of a table of host/fs/README.md."""
    text = (REPOSITORY / "host/fs/README.md").read_text()
    table = text[text.index(f"| {title}") :].split("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


WORK = """
modprobe rfs
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
echo 1 > /sys/kernel/tracing/events/rfs/enable
rsdctl show --json $drive > /out/before.json
start
cd /mnt
# most of the volume is never written again, the rest at random
fio --name=fill --filename=cold --rw=write --bs=64k --size=24m --end_fsync=1 >/dev/null
fio --name=hot --filename=hot --rw=randwrite --bs=4k --size=7m --io_size=28m --randseed=1 \
    --fdatasync=64 >/dev/null
mkdir d; touch d/file; setfattr -n user.a -v b d/file
sync
# nothing is cleaned between what is asked of the drive and of the volume
fsfreeze -f /mnt
rsdctl show --json $drive > /out/after.json
cd /sys/fs/rfs/nvme0n1
for file in *; do echo "$file = $(cat $file)"; done > /out/counters
cd /sys/kernel/debug/rfs/nvme0n1
for file in *; do sed "s/^/$file = /" $file; done > /out/tables
ls -d /sys/kernel/tracing/events/rfs/*/ > /out/events
fsfreeze -u /mnt
end
test ! -e /sys/fs/rfs/nvme0n1
test ! -e /sys/kernel/debug/rfs/nvme0n1
cat /sys/kernel/tracing/trace > /out/trace
"""


def test_counters_and_events(run: Run) -> None:
    result = run(script(VOLUMES["rfs"], WORK), namespace=SMALL)
    lines = (result.out_dir / "counters").read_text().splitlines()
    values = dict(line.split(" = ") for line in lines)
    assert values.keys() == documented(COUNTERS)
    numbers = {name: float(text) for name, text in values.items()}
    written = sum(found for name, found in numbers.items() if name.startswith("written_"))
    drive = [
        json.loads((result.out_dir / f"{name}.json").read_text())["counters"]
        for name in ("before", "after")
    ]
    pages = [counters["host_write_pages"]["value"] for counters in drive]
    assert written == pages[1] - pages[0]
    data, copies = numbers["written_data"], numbers["written_copies"]
    assert data == 24 * 256 + 28 * 256
    assert copies > 0
    assert numbers["copies_a_new_block"] == pytest.approx(copies / data, abs=0.001)
    cost = (data + copies + numbers["clean_reads"]) / data
    assert numbers["write_cost"] == pytest.approx(cost, abs=0.001)
    assert numbers["cleaned_zones"] > 0
    # the mount's has no cause
    causes = [found for name, found in numbers.items() if name.startswith("checkpoints_")]
    assert len(causes) == 5
    assert sum(causes) == numbers["checkpoints"] - 1
    assert numbers["checkpoints_sync"] >= 1

    rows = [line.split(" = ") for line in (result.out_dir / "tables").read_text().splitlines()]
    assert {name for name, _ in rows} == documented(TABLES)
    heading, *groups = [row.split() for name, row in rows if name == "groups"]
    assert heading == ["group", "data", "copies", "hotness"]
    assert [int(row[0]) for row in groups] == list(range(4))
    assert sum(int(row[1]) for row in groups) == data
    assert sum(int(row[2]) for row in groups) == copies
    bars = [row.split() for name, row in rows if name == "utilization"]
    assert [row[0] for row in bars] == [f"{5 * nr}%" for nr in range(20)]
    assert sum(int(row[1]) for row in bars) > 20

    events = {line.split("/")[-2] for line in (result.out_dir / "events").read_text().split()}
    assert events == documented(EVENTS)
    trace = (result.out_dir / "trace").read_text()
    for event in events:
        assert f" {event}: " in trace, trace[-3000:]
    assert re.search(
        r"rfs_checkpoint: \d+:\d+ number \d+ cause unmount dirty \d+ ns \d{6,} held \d{6,} error 0",
        trace,
    )


# The log of a file is being written, and the drive does not answer.
WAITING = """
sectors=$(blockdev --getsz $drive)
dmsetup create late --table "0 $sectors linear $drive 0"
dmsetup mknodes
mount -t rfs /dev/mapper/late /mnt
name=$(ls /sys/fs/rfs)
dmsetup suspend --nolockfs --noflush late
trap "dmsetup resume late" EXIT
touch /mnt/file
sync /mnt/file & writer=$!
sleep 2
timeout 10 cat /sys/fs/rfs/$name/free_zones /sys/fs/rfs/$name/written_data
timeout 10 cat /sys/kernel/debug/rfs/$name/groups /sys/kernel/debug/rfs/$name/utilization
kill -0 $writer
dmsetup resume late
trap "" EXIT
wait $writer
umount /mnt
dmsetup remove late
"""


def test_counters_wait_for_nobody(run: Run) -> None:
    """They are read while an fsync waits for the drive."""
    run(script(VOLUMES["rfs"], WAITING))


# A file goes, whose zones the next check-point makes free.
GOES = """
start
head -c 8M /dev/zero >/mnt/f
sync
zones() { cat /sys/fs/rfs/nvme0n1/$1; }
before="$(zones free_zones) $(zones zones_to_be_free)"
rm /mnt/f
after="$(zones free_zones) $(zones zones_to_be_free)"
sync
echo "zones $before $after $(zones free_zones) $(zones zones_to_be_free)"
end
"""


def test_zones_to_be_free(run: Run) -> None:
    """Zones of 1 MiB, of which a file of 8 MiB fills 7 and parts of two."""
    output = run(script(VOLUMES["rfs"], GOES), namespace=SMALL).output
    found = re.search(r"^zones (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", output, re.M)
    assert found, output
    free, none, still, waiting, then, left = map(int, found.groups())
    assert (none, left) == (0, 0)
    assert still == free
    assert 7 <= waiting <= 9
    # the check-point itself may begin a zone or two
    assert free + waiting - 2 <= then <= free + waiting
