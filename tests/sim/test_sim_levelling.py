# SPDX-License-Identifier: GPL-2.0-or-later
"""Static wear levelling of block maps while the drive is written to without a pause."""

import pytest
from simulator import Simulator

THRESHOLD = 10
# One way: a block map gives each its own logical blocks, and wears them as they are written.
DRIVE = "channels=1 ways=1 blocks=64 pages=32 spare-blocks=4 over-provision=20"


@pytest.mark.parametrize("depth", [8, 256])
@pytest.mark.parametrize("size", ["8K", "128K"])
@pytest.mark.parametrize("ftl", ["block", "fast"])
def test_a_block_map_is_levelled_under_load(
    sim: Simulator, ftl: str, size: str, depth: int
) -> None:
    """Erases of a way's blocks are within wl-threshold and 2, or two thresholds without."""
    work = ("--pattern", "hotcold=100/10", "--precondition", "fill", "--size", size)
    requests = "4000" if size == "8K" else "2000"
    spread = {}
    for threshold in (0, THRESHOLD):
        settings = [*DRIVE.split(), f"ftl={ftl}", f"wl-threshold={threshold}"]
        chosen = [part for setting in settings for part in ("--set", setting)]
        wear = sim.json(*chosen, *work, "--depth", str(depth), "--requests", requests)["results"][
            "wear"
        ]
        spread[threshold] = wear["max"] - wear["min"]
    assert spread[0] > 2 * THRESHOLD
    assert spread[THRESHOLD] <= THRESHOLD + 2
