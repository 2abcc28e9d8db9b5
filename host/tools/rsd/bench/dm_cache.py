# SPDX-License-Identifier: GPL-2.0-or-later
"""dm-cache for the guest: modules of Debian's own source, built for the guest's kernel as it is.

A kernel that has dm-cache would be another one: all figures that were measured with ours would
have to be measured again. So it is loaded where it is wanted (INSERT).
"""

from pathlib import Path

from rsd import buildroot, kernel, module
from rsd.bench.base import REPOSITORY, Context
from rsd.cache import hash_inputs
from rsd.exchange import Inputs

# Each needs those before it.
MODULES = ("dm-bufio", "dm-bio-prison", "dm-persistent-data", "dm-cache", "dm-cache-smq")

_KBUILD = """
obj-m := dm-bufio.o dm-bio-prison.o dm-persistent-data.o dm-cache.o dm-cache-smq.o
dm-bio-prison-y := dm-bio-prison-v1.o dm-bio-prison-v2.o
dm-persistent-data-y := $(patsubst $(src)/%.c,%.o,$(wildcard $(src)/persistent-data/*.c))
dm-cache-y := dm-cache-target.o dm-cache-metadata.o dm-cache-policy.o dm-cache-background-tracker.o
dm-cache-smq-y := dm-cache-policy-smq.o
"""

_BUILD = f"""
cp -r {buildroot.LINUX_SOURCE}/drivers/md/. /module
rm /module/Makefile /module/persistent-data/Makefile
cp /entry/Kbuild /module
{module.MAKE} modules
for name in {" ".join(MODULES)}; do strip --strip-debug -o /entry/$name.ko /module/$name.ko; done
"""

# The shell function `cached MODE`: of $drive and of $size sectors of $slow it makes $cached. The
# first 16 MiB of the drive are for metadata. Blocks are of 64 KiB, as lvmcache(7) has them.
INSERT = f"""\
cached() {{
    for name in {" ".join(MODULES)}; do
        grep -q "^$(echo $name | tr - _) " /proc/modules || insmod /in/$name.ko
    done
    blkdiscard $drive
    dmsetup create meta --table "0 32768 linear $drive 0"
    dmsetup create fast --table "0 $(($(blockdev --getsz $drive) - 32768)) linear $drive 32768"
    dmsetup mknodes
    dd if=/dev/zero of=/dev/mapper/meta bs=4k count=1 conv=fsync 2>/dev/null
    dmsetup create cached --table \\
        "0 $size cache /dev/mapper/meta /dev/mapper/fast $slow 128 1 $1 smq 0"
    dmsetup mknodes
    cached=/dev/mapper/cached
}}
uncached() {{ dmsetup remove cached; dmsetup remove fast; dmsetup remove meta; }}
"""


def inputs(context: Context) -> Inputs:
    """The modules, as inputs of a guest."""
    root = buildroot.ensure(context.cache, context.progress)
    linux = kernel.ensure(context.cache, context.progress, REPOSITORY / "guest/kernel", "release")

    def build(partial: Path) -> None:
        (partial / "Kbuild").write_text(_KBUILD)
        with context.progress.step("dm-cache") as step, context.cache.scratch("dm-cache") as tree:
            root.run(
                _BUILD,
                binds={"/out": linux, "/module": tree, "/entry": partial},
                step=step,
                log=context.cache.log("dm-cache"),
                hint="the first 'error:' in the log is the one to look at",
            )

    key = hash_inputs(root.identity, linux.name, _KBUILD, _BUILD)
    entry = context.cache.entry("dm-cache", key, build)
    return {f"{name}.ko": entry / f"{name}.ko" for name in MODULES}
