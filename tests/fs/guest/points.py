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
from collections.abc import Sequence

from drive import Drive
from mounts import call
from state import Failed, Volume, visit


def look_at(
    drive: Drive,
    volume: Volume,
    points: Sequence[tuple[int, int, int]],
    promises: str,
    program: str,
    seed: str,
) -> float:
    """Rewind to each of the points, and look. The seconds of the guest that it took.

    A point is where `drive` is rewound to, the outcomes, and the operation by which promises count.
    """
    with open(promises) as stream:
        promised = [(int(op), int(step)) for _, step, op in map(str.split, stream)]
    began = time.time()
    for index, (op, outcomes, count) in enumerate(points):
        step = max((step for at, step in promised if at <= count), default=-1)
        look = [program, "/mnt", "check", step, f"seed={seed}"]
        fourth = index % 4 == 0
        try:
            visit(
                drive,
                volume,
                op,
                outcomes,
                lambda look=look: call(*look),
                fsck=fourth,
                thorough=fourth,
            )
        except Failed as error:
            raise SystemExit(
                f"FAILED: operation {op}, outcomes {outcomes}, step {step} promised: {error}"
            ) from error
    return time.time() - began


def main() -> None:
    device, kind, options, points, seed, first, last, promises, program, *check = sys.argv[1:]
    count, start, end = int(points), int(first), int(last)
    ops = [start + (end - start) * number // (count - 1) for number in range(count)]
    with open("/out/points", "w") as stream:
        print(*ops, file=stream)
    took = look_at(
        Drive(device),
        Volume((device, kind, options), check),
        [(op, number, op) for number, op in enumerate(ops)],
        promises,
        program,
        seed,
    )
    print(f"{count} points of {end - start} operations, {took:.0f} s of the guest")


if __name__ == "__main__":
    main()
