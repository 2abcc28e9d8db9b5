# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: storm.py DRIVE POINTS SEED, on a volume mounted at /mnt.

Processes rename and exchange files and directories among directories, all at once, without
replacing any, and sync. The drive is then rewound to POINTS operations of that; at each, every
file and directory has one name, and no process has lost a rename that it had made durable.
"""

import os
import random
import sys

from drive import Drive
from mounts import LIBC, call, mount, umount

NOREPLACE, EXCHANGE = 1, 2
PROCESSES, STEPS, FILES, DIRS, NAMES = 6, 300, 40, 8, 12


def rename(old: tuple[int, str], new: tuple[int, str], flags: int) -> bool:
    """Whether it was done: names may be gone or taken, and a directory may be above the other."""
    return not LIBC.renameat2(old[0], old[1].encode(), new[0], new[1].encode(), flags)


def populate() -> None:
    """Directories, one in the other, and files; the content of a file is its number."""
    above = "/mnt"
    for number in range(DIRS):
        above = f"{above if number % 3 else '/mnt'}/n{number}"
        os.mkdir(above)
        with open(f"{above}/is-directory", "w") as stream:
            stream.write(str(number))
    for number in range(FILES):
        with open(f"/mnt/n{number + DIRS}", "w") as stream:
            stream.write(str(number))
    for number in range(PROCESSES):
        os.close(os.open(f"/mnt/mine-{number}-0", os.O_CREAT))
    os.sync()


def work(me: int, seed: str, directories: list[int], drive: Drive) -> None:
    """Random renames, and one file that this process alone has, whose name counts."""
    choose = random.Random(f"{seed} {me}")
    here, step = directories[0], 0
    mine = os.open(f"/mnt/mine-{me}-0", os.O_RDONLY)
    with open(f"/tmp/promised-{me}", "w") as promised:
        for _ in range(STEPS):
            for _ in range(choose.randrange(4)):
                names = [
                    (choose.choice(directories), f"n{choose.randrange(FILES + DIRS + NAMES)}")
                    for _ in range(2)
                ]
                rename(names[0], names[1], choose.choice((NOREPLACE, EXCHANGE)))
            there = choose.choice(directories)
            assert rename((here, f"mine-{me}-{step}"), (there, f"mine-{me}-{step + 1}"), 0)
            here, step = there, step + 1
            if choose.random() < 0.1:
                how = choose.randrange(3)
                os.sync() if how == 0 else os.fsync(mine if how == 1 else there)
                print(drive.operations(), step, file=promised)


def storm(seed: str, drive: Drive) -> None:
    paths = ["/mnt", *(path for path, _, _ in os.walk("/mnt") if path != "/mnt")]
    directories = [os.open(path, os.O_RDONLY) for path in paths]
    children = []
    for me in range(PROCESSES):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(me, seed, directories, drive)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    for directory in directories:
        os.close(directory)


def check(op: int) -> None:
    files, directories, mine = [], [], {}
    for path, below, names in os.walk("/mnt"):
        assert os.stat(path).st_nlink == 2 + len(below), path
        for name in names:
            if name.startswith("mine-"):
                _, me, step = name.split("-")
                assert me not in mine, name
                mine[me] = int(step)
                continue
            with open(f"{path}/{name}") as stream:
                (directories if name == "is-directory" else files).append(int(stream.read()))
    assert sorted(files) == list(range(FILES)), sorted(files)
    assert sorted(directories) == list(range(DIRS)), sorted(directories)
    for me in range(PROCESSES):
        with open(f"/tmp/promised-{me}") as stream:
            kept = [step for at, step in (map(int, line.split()) for line in stream) if at <= op]
        assert mine[str(me)] >= max(kept, default=0), (me, mine, kept[-1:])


def main() -> None:
    device, points, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    drive = Drive(device)
    populate()
    first = drive.operations()
    storm(seed, drive)
    last = drive.operations()
    check(last)
    umount()
    call("fsck.rfs", device)
    for number in range(points):
        op = first + (last - first) * number // (points - 1)
        try:
            drive.rewind(op, number)
            mount(device, "rfs", "")
            check(op)
            umount()
            call("fsck.rfs", device)
        except (SystemExit, AssertionError, OSError) as error:
            raise SystemExit(f"FAILED: operation {op}, outcomes {number}: {error}") from error
    print(f"{points} points of {last - first} operations")


main()
