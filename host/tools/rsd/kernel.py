"""The guest's kernel: Debian's Linux 6.12 with guest/kernel's options, in two flavours."""

import json
from pathlib import Path

from rsd import buildroot
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.errors import RsdError
from rsd.progress import Progress

# So many object files a build has in the end, about: it only tells how far one is.
OBJECTS = {"release": 1690, "debug": 1690}

FLAVOURS = {
    "release": ("release.config",),
    "debug": ("release.config", "debug.config"),
}

_CONFIGURE = f"""
cd {buildroot.LINUX_SOURCE}
mkdir /out/build
make -s O=/out/build tinyconfig
cat /out/fragment >> /out/build/.config
make -s O=/out/build olddefconfig
"""

# The kernel's PVH entry compares strings before KASAN's shadow exists, so that the compare
# must not be a call to KASAN's own.
MAKE_FLAGS = {"release": "", "debug": "CFLAGS_enlighten.o=-finline-stringops=memcmp "}


def _build_script(flavour: str) -> str:
    # What is left of the build directory is what `make M=` of a module needs.
    return f"""
cd {buildroot.LINUX_SOURCE}
make -s -j$JOBS {MAKE_FLAGS[flavour]}O=/out/build vmlinux modules
strip --strip-all -o /out/vmlinux /out/build/vmlinux
find /out/build -path /out/build/scripts -prune -o -path /out/build/tools -prune -o \
    -type f '(' -name '*.[oa]' -o -name 'vmlinux*' -o -name '.*.cmd' ')' \
    ! -name vmlinux.symvers -exec rm -f '{{}}' +
"""


def ensure(cache: Cache, progress: Progress, fragments: Path, flavour: str) -> Path:
    """A directory with `vmlinux`, `manifest.json` and `build/` (to build modules against).

    `fragments` is the repository's guest/kernel.
    """
    root = buildroot.ensure(cache, progress)
    text = "".join((fragments / name).read_text() for name in FLAVOURS[flavour])
    script = _build_script(flavour)
    key = hash_inputs(root.identity, text, _CONFIGURE, script)

    def build(partial: Path) -> None:
        (partial / "fragment").write_text(text)
        log = cache.log(f"kernel-{flavour}")
        with progress.step(f"guest kernel, {flavour}") as step:
            where = {"binds": {"/out": partial}, "step": step, "log": log}
            root.run(_CONFIGURE, **where, hint="see the log")
            _check(text, (partial / "build/.config").read_text())
            step.counter = lambda: (_objects(partial / "build"), OBJECTS[flavour])
            root.run(script, **where, hint="see the log; 3 GB of free disk are needed")
        manifest = {
            "flavour": flavour,
            "config_sha256": hash_file(partial / "build/.config"),
            "vmlinux_sha256": hash_file(partial / "vmlinux"),
            "buildroot": root.identity,
        }
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2))

    return cache.entry(f"kernel-{flavour}", key, build)


def _objects(build: Path) -> int:
    """Object files that are compiled by now: make itself says nothing of how far it is."""
    return sum(1 for _ in build.rglob("*.o"))


def lost_options(fragment: str, config: str) -> list[str]:
    """The fragment's lines that the configuration does not honour."""
    wanted: dict[str, str] = {}
    for line in fragment.splitlines():
        if line.startswith("CONFIG_"):
            wanted[line.split("=", 1)[0]] = line
        elif line.startswith("# CONFIG_") and line.endswith(" is not set"):
            wanted[line.split()[1]] = line
    actual: dict[str, str] = {}
    for line in config.splitlines():
        if line.startswith("CONFIG_"):
            actual[line.split("=", 1)[0]] = line
    return [
        line for name, line in wanted.items() if actual.get(name, f"# {name} is not set") != line
    ]


def _check(fragment: str, config: str) -> None:
    if lost := lost_options(fragment, config):
        raise RsdError(
            "kernel options that did not stick (renamed, or a dependency is missing):\n"
            + "\n".join(f"  {line}" for line in lost),
            "correct guest/kernel/*.config",
        )
