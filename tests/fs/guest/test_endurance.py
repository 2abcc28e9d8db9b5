# SPDX-License-Identifier: GPL-2.0-or-later
"""A small volume, 90% full, written many times over: content, fsck, memory."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from mounted import SMALL, Run, Volume, script

pytestmark = pytest.mark.guest

FILL = "start\n/in/endure /mnt fill 90\nend"

# Of one guest: each round writes, checks, unmounts; then the same memory is in use as before.
ROUNDS = """
for round in $(seq %(rounds)d); do
    start -o commit=5
    to=$((%(done)d + round * %(steps)d))
    /in/endure /mnt run %(files)d $((to - %(steps)d)) $to
    sync
    cat /sys/fs/rfs/nvme0n1/written_data >>/out/written
    cat /sys/fs/rfs/nvme0n1/written_copies >>/out/copies
    echo 3 >/proc/sys/vm/drop_caches
    /in/endure /mnt check %(files)d $to
    end
    sleep 2
    echo 3 >/proc/sys/vm/drop_caches
    sleep 2
    grep -hE '^(MemAvailable|SUnreclaim|VmallocUsed|Percpu):' /proc/meminfo | tr -s '\\n ' ' ' \
        >>/out/memory
    echo >>/out/memory
done
start -o ro
/in/endure /mnt check %(files)d $to
end
"""
STEPS = 500
# 28 zones of 512 KiB, of which files may have 6.9 MB: under the debug kernel 50 times end
TINY = {**SMALL, "blocks": "28", "pages": "32"}
# KASAN keeps what was freed for a while, up to 1/32 of the memory
GROWTH_KIB = {"release": 2048, "debug": 16 << 10}


def blocks(path: Path) -> int:
    return sum(map(int, path.read_text().split()))


@pytest.mark.parametrize(
    ("times", "rounds", "drive"),
    [(0.5, 2, SMALL), pytest.param(50, 10, TINY, marks=pytest.mark.long)],
    ids=["half", "50-times"],
)
def test_written_many_times(
    run: Run,
    volume: Volume,
    flavour: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    times: float,
    rounds: int,
    drive: Mapping[str, str],
) -> None:
    """`times` its capacity, in guests of so many rounds each, in real time if there are many.

    With --keep DIR the volume and how far it has come stay below it, and a later run goes on.
    """
    if volume.system != "rsd":
        pytest.skip("what was written is one of RFS's counters")
    keep = Path(request.config.getoption("--keep") or tmp_path / "keep") / f"{times}-times"
    keep.mkdir(parents=True, exist_ok=True)
    state_file, media, next_media = keep / "state.json", keep / "media", keep / "media.next"
    options = {
        "system": volume.system,
        "namespace": {**volume.namespace, **drive},
        "virtual_limit_s": 0,
        "wall_limit_s": None,
        "deterministic": times < 1,
    }
    if state_file.exists():
        state = json.loads(state_file.read_text())
    else:
        media.unlink(missing_ok=True)
        output = run(script(volume, FILL), media=media, **options).output
        found = re.search(r"^files (\d+)\r?\nblocks (\d+)\r?$", output, re.M)
        assert found, output
        state = {"files": int(found[1]), "capacity": int(found[2]), "steps": 0}
        state |= {"written": 0, "copied": 0}
    while state["written"] < times * state["capacity"]:
        # a guest that does not come to its end leaves the volume as it was
        shutil.copyfile(media, next_media)
        values = {"rounds": rounds, "done": state["steps"], "steps": STEPS}
        body = ROUNDS % {**values, "files": state["files"]}
        result = run(script(volume, body, make=False), media=next_media, **options)
        state["steps"] += rounds * STEPS
        state["written"] += blocks(result.out_dir / "written")
        state["copied"] += blocks(result.out_dir / "copies")
        next_media.replace(media)
        state_file.write_text(json.dumps(state))
        memory = [
            dict(zip(line.split()[::3], map(int, line.split()[1::3]), strict=True))
            for line in (result.out_dir / "memory").read_text().splitlines()
        ]
        full = state["written"] / state["capacity"]
        print(f"{full:.1f} times, {state['copied'] / state['written']:.2f} copies a block")
        for found in memory:
            print(f"  {found}")
        # the first round is the one in which Linux makes what it keeps
        assert memory[0]["MemAvailable:"] - memory[-1]["MemAvailable:"] < GROWTH_KIB[flavour]
        assert memory[-1]["SUnreclaim:"] - memory[0]["SUnreclaim:"] < GROWTH_KIB[flavour]
        shutil.rmtree(result.out_dir)
