# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload of OFTL's on one of its systems, in a guest.

SYNC is the mount option sync for ext2 and ext3, and O_SYNC for the others (6.2). The paper's OFSS
is RFS with pieces of blocks. The paper does not say that its drive was aged, or how large it was:
this one is new, and large enough that it collects nothing.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rsd.bench.base import Context
from rsd.cache import hash_file, hash_inputs
from rsd.cluster.unit import Unit
from rsd.compare import kept, stack_script
from rsd.compare.benchmarks import Benchmark, Output
from rsd.compare.cells import MIB, Level
from rsd.compare.run import guest_failure
from rsd.compare.stack_run import stack_job
from rsd.compare.stacks import F2FS_2013, RFS, SMALL, FileSystem, Stack
from rsd.errors import RsdError
from rsd.machine import run_guest
from rsd.paper import oftl_work
from rsd.paper.oftl_work import WORKLOADS

MODES = ("sync", "async")
OFSS = "OFSS"
TRACE = "trace"
REPLAY = Path(__file__).with_name("replay.py")


def _ext(kind: str, options: str, *, asserted: str = "") -> FileSystem:
    """ext2 or ext3 in its own layout. `asserted` is an option that /proc/mounts must have."""
    check = f'grep "^$drive /vol .*{asserted}" /proc/mounts >/tmp/prepare ||'
    return FileSystem(
        f"mke2fs -q -F -t {kind} -b 4096 -E lazy_itable_init=0 $drive",
        f"mount -t {kind} -o noatime,nodiratime{options} $drive",
        after_mount=f'{check} fail "no {asserted}" /proc/mounts\n' if asserted else "",
    )


def _page(file_system: FileSystem) -> Stack:
    return Stack(file_system, "page-ftl", Level.FULL, "")


def _rfs(file_system: FileSystem) -> Stack:
    return Stack(file_system, "rsd", Level.FULL, "")


@dataclass(frozen=True)
class System:
    """A file system as it is mounted in each mode; `opened`: SYNC is O_SYNC, not an option."""

    stacks: Mapping[str, Stack]
    opened: bool


def _mounted(kind: str, options: str = "") -> System:
    return System(
        {
            "sync": _page(_ext(kind, f"{options},sync", asserted="sync")),
            "async": _page(_ext(kind, options)),
        },
        opened=False,
    )


def _opened(stack: Stack) -> System:
    return System(dict.fromkeys(MODES, stack), opened=True)


_BTRFS = FileSystem(
    "mkfs.btrfs -q -f -d single -m single $drive",
    "mount -t btrfs -o ssd,discard,compress=lzo $drive",
)
_PIECES = FileSystem(
    "mkfs.rfs -q -f -c $drive", "mount -t rfs -o compact=on $drive", counters=RFS.counters
)
SYSTEMS = {
    "Ext3": _mounted("ext3", ",data=journal"),
    "Ext2": _mounted("ext2"),
    "Btrfs": _opened(_page(_BTRFS)),
    OFSS: _opened(_rfs(_PIECES)),
}
BESIDE = {
    "ext3, data=ordered": _mounted("ext3", ",data=ordered"),
    "F2FS of 2013": _opened(_page(F2FS_2013)),
    "RFS without pieces": _opened(_rfs(RFS)),
}


@dataclass(frozen=True)
class Plan:
    """What is run. `traced`: the drive records its commands."""

    system: str
    work: str
    mode: str
    traced: bool = False

    @property
    def title(self) -> str:
        """For progress lines."""
        traced = ", traced" if self.traced else ""
        return f"{self.system}, {WORKLOADS[self.work].title}, {self.mode.upper()}{traced}"


def unit(plan: Plan, context: Context, teardown: str = ":") -> Unit:
    """Its entry has the guest's output; and TRACE, if the plan is traced.

    `teardown` runs in the guest after all is counted.
    """
    system = (SYSTEMS | BESIDE)[plan.system]
    stack, built = system.stacks[plan.mode], context.built
    work = oftl_work.writes(plan.work)
    packed = oftl_work.packed(work)
    opened = plan.mode if system.opened else "async"
    table = ":"
    if WORKLOADS[plan.work].table:
        mib = oftl_work.TABLE_PAGES * oftl_work.TABLE_PAGE // MIB
        table = f"must dd if=/dev/zero of={oftl_work.TABLE} bs={MIB} count={mib}"
    benchmark = Benchmark(
        name=plan.work,
        title=plan.title,
        scale=SMALL,
        level=Level.FULL,
        output=Output.DESCRIBED,
        setup=table,
        run=f"python3 /in/{REPLAY.name} /in/list /in/content {opened}",
        work=len(work),
        unit="writes",
        live_mib=0,
        written=sum(one.length for one in work),
        teardown=teardown,
    )
    script = stack_script.make(stack, "") + stack_script.measure(stack, benchmark)
    key = hash_inputs(
        built.deciding(rfs=stack.rfs),
        dataclasses.asdict(stack.system),
        stack.properties(SMALL),
        script,
        hashlib.sha256(packed).hexdigest(),
        hash_file(REPLAY),
        kept.FORMAT,
        *([TRACE] if plan.traced else []),
    )

    def build(target: Path) -> None:
        inputs = oftl_work.inputs(target, packed, REPLAY)
        with context.progress.step(plan.title), context.cache.scratch("replayed") as scratch:
            trace = target / TRACE if plan.traced else None
            job = stack_job(stack, SMALL, script, scratch / "media", target / kept.RAW, trace)
            result = run_guest(dataclasses.replace(job, inputs=inputs), built, cache=context.cache)
            if why := guest_failure(result):
                raise RsdError(f"{plan.title}: {why}")

    return Unit(plan.title, "replay", key, build)
