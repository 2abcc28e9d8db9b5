# SPDX-License-Identifier: GPL-2.0-or-later
"""The laws see errors: each of these is put into a copy of the core, and a law must be violated.

With --long; what is always tried is that the errors still fit the source. RSD_LAW_MUTANTS is the
number of laws to name for each (default 1). With more, all laws are tried if fewer see the error,
which takes minutes.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rsd.artifacts import REPOSITORY
from rsd.bench.laws.table import LAWS
from rsd.bench.laws.trial import trials

NAMED = int(os.environ.get("RSD_LAW_MUTANTS", "1"))
CORE = "hw/rsd-nvme/core"


@dataclass(frozen=True)
class Mutant:
    """What is replaced, once, in a file of the core.

    near: laws with this in their name or subject are tried first, which saves time.
    """

    error: str
    near: str
    file: str
    right: str
    wrong: str


MUTANTS = (
    Mutant(
        "a command is sent once for all planes",
        "time of",
        "array/sched.c",
        "uint64_t tenure = step->pages * cfg->t_cmd_ns;",
        "uint64_t tenure = cfg->t_cmd_ns;",
    ),
    Mutant(
        "MSB pages are read as fast as CSB pages",
        "time of",
        "array/sched.c",
        "cfg->t_read_msb_ns, cfg->t_read_tsb_ns };",
        "cfg->t_read_csb_ns, cfg->t_read_tsb_ns };",
    ),
    Mutant(
        "suspension takes no time",
        "suspend",
        "array/sched.c",
        "uint64_t free_at = s->now + drive->cfg.t_suspend_ns;",
        "uint64_t free_at = s->now;",
    ),
    Mutant(
        "one read too many goes before a program",
        "suspend",
        "array/sched.c",
        "die->ahead < drive->cfg.suspend_reads;",
        "die->ahead <= drive->cfg.suspend_reads;",
    ),
    Mutant(
        "a read is repeated by the retries of a block one erase more worn",
        "retries",
        "array/sched.c",
        "rsd_rec_erases(drive->media.rec[op->block]) /\n",
        "(rsd_rec_erases(drive->media.rec[op->block]) + 1) /\n",
    ),
    Mutant(
        "bus time of transfers after the array is not counted",
        "bus-utilisation",
        "array/sched.c",
        "count->bus_busy_ns += begin_time(cfg, step) + end_time(cfg, step);",
        "count->bus_busy_ns += begin_time(cfg, step);",
    ),
    Mutant(
        "over-provisioning of one per cent more",
        "over-provision",
        "ftl/share.c",
        "* 100 / (100 + over_provision);",
        "* 100 / (101 + over_provision);",
    ),
    Mutant(
        "greedy choice looks at the first list of two",
        "greedy",
        "ftl/page/page-map.c",
        "    if (valid < pd->lowest) {\n        pd->lowest = valid;",
        "    if (valid + 4 < pd->lowest) {\n        pd->lowest = valid;",
    ),
    Mutant(
        "a block more is kept free",
        "frontier",
        "ftl/page/page-geometry.c",
        "    return low < least ? least : low;",
        "    return low <= least ? least + 1 : low;",
    ),
    Mutant(
        "copies go where the host's pages go, and the other way round",
        "frontier",
        "ftl/page/page-geometry.c",
        "cfg.gc_frontiers == RSD_GC_FRONTIERS_OWN;",
        "cfg.gc_frontiers != RSD_GC_FRONTIERS_OWN;",
    ),
    Mutant(
        "a die without a page is passed over, however many are",
        "read-of-aged",
        "ftl/page/page-frontier.c",
        "lacking > may_lack",
        "lacking > ftl->num_frontiers",
    ),
    Mutant(
        "a third of the cached map is protected, not half",
        "segmented-lru",
        "ftl/page/map-cache.c",
        "c->guarded.len > c->num_entries / 2",
        "c->guarded.len > c->num_entries / 3",
    ),
    Mutant(
        "a partial merge counts as a switch",
        "fast-merges",
        "ftl/block/fast-ftl.c",
        "        count->merge_partial++;",
        "        count->merge_switch++;",
    ),
    Mutant(
        "the most worn free block is taken",
        "even-wear",
        "ftl/pool.c",
        "    return ka < kb || (ka == kb && a < b);",
        "    return ka > kb || (ka == kb && a < b);",
    ),
    Mutant(
        "wear levelling takes twice its share",
        "levelling-share",
        "ftl/zone/zone-wear.c",
        "* 100 <= others * drive->cfg.wl_share;",
        "* 50 <= others * drive->cfg.wl_share;",
    ),
    Mutant(
        "firmware takes the time of one page for any number",
        "firmware",
        "front/host.c",
        "cmd->nlb * cfg->t_fw_page_ns",
        "cfg->t_fw_page_ns",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.error)
def test_the_error_fits(mutant: Mutant) -> None:
    text = (REPOSITORY / CORE / mutant.file).read_text()
    assert text.count(mutant.right) == 1, f"{mutant.file}: say the error anew"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Sources of rsdsim, built."""
    root = tmp_path_factory.mktemp("mutants")
    for folder in ("host/tools/rsdsim", "host/tools/common", CORE):
        shutil.copytree(REPOSITORY / folder, root / folder)
    build(root)
    yield root
    shutil.rmtree(root)


def build(root: Path) -> Path:
    """rsdsim of the copy; what did not change is not compiled."""
    command = ["make", "-j2", "-C", root / "host/tools/rsdsim", f"BUILD={root / 'build'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root / "build" / "rsdsim"


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.error)
def test_a_law_sees_it(copy: Path, tmp_path: Path, mutant: Mutant) -> None:
    """NAMED laws that are violated, and are not without the error."""
    source = copy / CORE / mutant.file
    right = source.read_text()
    original = build(copy)
    kept = shutil.copy2(original, tmp_path / "original")
    source.write_text(right.replace(mutant.right, mutant.wrong))
    try:
        wrong = build(copy)
        seen = []
        order = sorted(LAWS, key=lambda name: mutant.near not in f"{name} {LAWS[name].subject}")
        for name in order:
            (found,) = trials([name], wrong, tmp_path / "traces", 1)
            if not found.holds:
                (before,) = trials([name], kept, tmp_path / "traces", 1)
                if before.holds:
                    seen.append(f"{name} (must be {found.must()}, is {found.got:g})")
            if len(seen) == NAMED:
                break
    finally:
        source.write_text(right)
    print(f"{mutant.error}: {'; '.join(seen)}")
    assert seen, f"no law sees that {mutant.error}"
