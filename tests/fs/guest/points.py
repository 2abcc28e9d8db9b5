# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: points.py DRIVE TYPE OPTIONS POINTS SEED FIRST LAST PROMISES PROGRAM CHECK...

Rewinds DRIVE to POINTS operations in even distance from FIRST to LAST, each with outcomes of its
own for what was in flight; mounts it as TYPE with OPTIONS, which may be empty, has PROGRAM (promise
or whole) look, writes on, unmounts. At each fourth the program CHECK runs before and after.
PROMISES has lines "promised STEP OPERATION": how far the drive's log was when the step had
promised. It is one process, since what takes time in a guest is to start programs.
"""

import sys
import time

from drive import Drive
from mounts import call
from state import Failed, Volume, visit


def main() -> None:
    device, kind, options, points, seed, first, last, promises, program, *check = sys.argv[1:]
    drive = Drive(device)
    volume = Volume((device, kind, options), check)
    count, start, end = int(points), int(first), int(last)
    with open(promises) as stream:
        promised = [(int(op), int(step)) for _, step, op in map(str.split, stream)]
    began = time.time()
    ops = [start + (end - start) * number // (count - 1) for number in range(count)]
    with open("/out/points", "w") as stream:
        print(*ops, file=stream)
    for number, op in enumerate(ops):
        step = max((step for at, step in promised if at <= op), default=-1)
        look = [program, "/mnt", "check", step, f"seed={seed}"]
        fourth = number % 4 == 0
        try:
            visit(
                drive,
                volume,
                op,
                number,
                lambda look=look: call(*look),
                fsck=fourth,
                thorough=fourth,
            )
        except Failed as error:
            raise SystemExit(
                f"FAILED: operation {op}, outcomes {number}, step {step} promised: {error}"
            ) from error
    print(f"{count} points of {end - start} operations, {time.time() - began:.0f} s of the guest")


main()
