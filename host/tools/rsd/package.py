# SPDX-License-Identifier: GPL-2.0-or-later
"""`./rsd package` builds these packages:

    rsd-nvme       It has the command rsd, the sources of what that builds, rsdsim, rsdview,
                   rsdctl and zappend.
    rfs-progs      It has mkfs.rfs, fsck.rfs, dump.rfs and objtool.
    liboftl1       It has the library of objects on RFS.
    liboftl-dev    It has the library's header and manual page.
    python3-oftl   It has the library's binding for Python.
    rfs-dkms       It has the module's source, which dkms builds for each installed kernel.

They are for Debian 13, with whose compiler they are built. Equal sources make equal packages.
`--check` has lintian read them, and installs and uses them in a Debian made for that.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd import __version__, buildroot, debian, guesttools, module, packages
from rsd.artifacts import OUTPUTS, REPOSITORY
from rsd.buildroot import Buildroot
from rsd.cache import Cache, hash_file, hash_inputs, hash_tree
from rsd.errors import RsdError, naming
from rsd.guest_run import add_install_argument
from rsd.progress import Progress, Step
from rsd.steps import run_logged

DEFAULT_OUT = OUTPUTS / "packages"
MAINTAINER = "The rsd-nvme maintainers <maintainers@rsd-nvme.invalid>"
DATE = "Thu, 01 Jan 2026 00:00:00 +0000"

OFTL = REPOSITORY / "host/tools/oftl"

# Everything in the packages is made of these.
SOURCES = ("hw/rsd-nvme", "host", "guest", "qemu-patches")

# Debian's own flags for what is installed.
FLAGS = (
    'CFLAGS="-O2 -g -fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection'
    ' -D_FORTIFY_SOURCE=2 -Wformat -Werror=format-security" LDFLAGS="-pie -Wl,-z,relro -Wl,-z,now"'
)
STRIP = "strip --strip-unneeded --remove-section=.comment --remove-section=.note"

# Programs by package, and the library.
LIBRARY = "liboftl.so.1"
PROGRAMS = {
    "rsd-nvme": ("rsdsim", "rsdview", "rsdctl", "zappend"),
    "rfs-progs": (*guesttools.RFS_TOOLS, "objtool"),
    "liboftl1": (LIBRARY,),
}
# Where they are built, of those whose folder of host/tools has another name.
FOLDERS = {"objtool": "oftl", LIBRARY: "oftl"}
# Where they are installed; rfs-progs has those that an administrator runs.
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PLACES = {"rsd-nvme": "usr/bin", "rfs-progs": "usr/sbin", "liboftl1": LIBRARIES}


@dataclass(frozen=True)
class Package:
    """What its control file says, and what is in it beside programs."""

    name: str
    architecture: str
    section: str
    summary: str
    description: str
    depends: str
    recommends: str = ""


PACKAGES = (
    Package(
        "rsd-nvme",
        "amd64",
        "utils",
        "virtual SSD in QEMU, and tools to measure it",
        "An NVMe drive in modelled NAND flash, as zones or under a flash translation layer, in a "
        "virtual machine whose clock counts instructions: the same command prints the same "
        "figures on every machine. The command rsd builds QEMU and a guest when they are first "
        "needed; rsdsim runs traces and generated work on the drive alone.",
        "${shlibs}, python3 (>= 3.11), python3-rich, gcc, libc6-dev, make",
        "apt, bison, bzip2, debian-archive-keyring, flex, libfdt-dev, libglib2.0-dev,"
        " libpixman-1-dev, libslirp-dev, meson, mmdebstrap, ninja-build, patch, pkgconf,"
        " python3-matplotlib, python3-venv, qemu-system-data, rsync, seabios, uidmap, xz-utils,"
        " zlib1g-dev",
    ),
    Package(
        "rfs-progs",
        "amd64",
        "admin",
        "tools of the RFS file system",
        "RFS is a log-structured file system for zoned drives, which writes by appends alone. "
        "These programs make a volume, check and repair it, print what is on it, and store "
        "objects in it.",
        "${shlibs}",
    ),
    Package(
        "liboftl1",
        "amd64",
        "libs",
        "objects on volumes of the RFS file system",
        "Objects have numbers, bytes and attributes, and a write of up to 1 MiB at any byte is "
        "atomic. This library stores them on a volume of RFS, in an image file, on a zoned drive "
        "or mounted.",
        "${shlibs}",
    ),
    Package(
        "liboftl-dev",
        "amd64",
        "libdevel",
        "objects on volumes of the RFS file system, for programs in C",
        "Objects have numbers, bytes and attributes, and a write of up to 1 MiB at any byte is "
        "atomic. This package has the header of liboftl and its manual page.",
        f"liboftl1 (= {__version__})",
    ),
    Package(
        "python3-oftl",
        "all",
        "python",
        "objects on volumes of the RFS file system, for programs in Python",
        "Objects have numbers, bytes and attributes, and a write of up to 1 MiB at any byte is "
        "atomic. This module calls liboftl.",
        f"liboftl1 (>= {__version__}), python3 (>= 3.11)",
    ),
    Package(
        "rfs-dkms",
        "all",
        "kernel",
        "module of the RFS file system, source for dkms",
        "RFS is a log-structured file system for zoned drives, which writes by appends alone. "
        "dkms builds this module for Linux 6.12, whenever such a kernel is installed.",
        "dkms",
    ),
)

COPYRIGHT = f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rsd-nvme

Files: *
Copyright: {DATE.split()[3]} The rsd-nvme maintainers
License: GPL-2+
 This program is free software; you can redistribute it and/or modify it under
 the terms of the GNU General Public License, version 2 or (at your option) any
 later version.
 .
 On Debian systems, its text is in /usr/share/common-licenses/GPL-2.
"""

DKMS = """\
PACKAGE_NAME="rfs"
PACKAGE_VERSION="{version}"
MAKE[0]="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/rfs/{version}/build modules"
CLEAN="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/rfs/{version}/build clean"
BUILT_MODULE_NAME[0]="rfs"
DEST_MODULE_LOCATION[0]="/updates/dkms"
BUILD_EXCLUSIVE_KERNEL="^6\\.12\\."
AUTOINSTALL="yes"
"""

# As dh_dkms writes them.
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -x /usr/lib/dkms/common.postinst ]; then
	/usr/lib/dkms/common.postinst rfs {version} "" "" "$2"
fi
"""
# mount(8) without a type asks libblkid first, which does not know RFS. Then it tries the types that
# /etc/filesystems names. The kernel loads the module of a type that is tried, so nobody has to load
# it at boot, as a file in modules-load.d would. RFS comes before the types that the kernel has by
# then: btrfs gives a zoned drive of RFS another error than EINVAL, which ends the search. A line of
# * says that the kernel's types follow.
FILESYSTEMS = "/etc/filesystems"
LISTED = "# rfs-progs: mount(8) without a type tries RFS first."
# Only when the package is first configured: an administrator may take the line out.
LIST_POSTINST = f"""\
#!/bin/sh
set -e
list=$DPKG_ROOT{FILESYSTEMS}
if [ "$1" = configure ] && [ -z "$2" ] && ! grep -qsx rfs "$list"; then
	others=$(cat "$list" 2>/dev/null || echo "*")
	printf "%s\\n" "{LISTED}" rfs "$others" >"$list"
fi
"""
# A file of * alone means the same as none.
LIST_POSTRM = f"""\
#!/bin/sh
set -e
list=$DPKG_ROOT{FILESYSTEMS}
mark="{LISTED}"
if [ "$1" = purge ] && grep -qsxF "$mark" "$list"; then
	others=$(grep -vxF -e "$mark" -e rfs "$list" || true)
	if [ "$others" = "*" ]; then
		rm "$list"
	else
		printf "%s\\n" "$others" >"$list"
	fi
fi
"""
# As dh_makeshlibs writes them: who needs the library depends on its package, and ldconfig runs.
SHLIBS = f"liboftl 1 liboftl1 (>= {__version__})\n"
TRIGGERS = "activate-noawait ldconfig\n"
PRERM = """\
#!/bin/sh
set -e
case "$1" in
remove|upgrade|deconfigure)
	if [ "$(dkms status -m rfs -v {version})" ]; then
		dkms remove -m rfs -v {version} --all
	fi ;;
esac
"""

LAUNCHER = """\
#!/usr/bin/python3
import sys

sys.path.insert(0, "/usr/share/rsd-nvme")
from rsd.__main__ import entry

entry()
"""

# What a manual page says of a program that has none of its own; --help is the rest.
MANUALS = {
    "rsd": "measure a virtual SSD, and file systems on it",
    "rsdsim": "run traces and generated work on a virtual SSD alone",
    "rsdview": "show what a power cut would have left on a virtual SSD",
    "zappend": "append to zones of a drive, and measure it",
}

# In a fresh Debian: installs what lies in /packages, and uses each of them.
TRIAL = """
set -eux
export DEBIAN_FRONTEND=noninteractive
test ! -e {filesystems}
apt-get install -qq -y --no-install-recommends /packages/*.deb linux-headers-amd64 mount
# What mount(8) tries, in this order: there is nothing to be mounted, so the first type ends it.
cat {filesystems}
LIBMOUNT_DEBUG=cxt mount /dev/null /mnt 2>/tmp/tried || true
grep -m 1 -o "##### trying '.*'" /tmp/tried | grep "'rfs'"
mkfs.rfs -q -I 40x1024 /tmp/volume
fsck.rfs -n /tmp/volume
dump.rfs /tmp/volume >/dev/null
echo content | objtool put /tmp/volume 17
python3 -c 'import oftl; print(oftl.Volume("/tmp/volume").read(17, 100))' | grep content
rsdsim --set ftl=page --requests 100 --json >/tmp/one
rsd sim --set ftl=page --requests 100 --json >/tmp/two
cmp /tmp/one /tmp/two
rsdctl --help >/dev/null
zappend --help >/dev/null
kernel=$(ls /lib/modules)
dkms build rfs/{version} -k "$kernel"
dkms install rfs/{version} -k "$kernel"
modinfo -k "$kernel" -F description rfs
apt-get purge -qq -y rfs-dkms rfs-progs rsd-nvme python3-oftl liboftl-dev liboftl1
test ! -e {filesystems}
if ls /usr/share/rsd-nvme /usr/src/rfs-* /usr/lib/x86_64-linux-gnu/liboftl*; then exit 1; fi
echo "used and removed"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `package`."""
    assert __doc__ is not None and parser.epilog is not None
    parser.epilog = f"{__doc__}\n{parser.epilog}"
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help="Write the packages there (default: build/packages).",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Then have lintian read them, and install and use them in a fresh Debian 13. This"
        " takes minutes, and the network.",
    )
    add_install_argument(parser)


def main(arguments: argparse.Namespace) -> int:
    """Build them; 2 if a check finds something."""
    progress = Progress()
    packages.ensure(progress, install=not arguments.no_install)
    cache = Cache()
    built = build(cache, progress)
    with naming(arguments.out):
        arguments.out.mkdir(parents=True, exist_ok=True)
        for path in sorted(built.glob("*.deb")):
            shutil.copy2(path, arguments.out / path.name)
            progress.say(f"{arguments.out / path.name}: sha256 {hash_file(path)}")
    if arguments.check:
        check(built, cache, progress)
    return 0


def build(cache: Cache, progress: Progress) -> Path:
    """A directory with the packages."""
    root = buildroot.ensure(cache, progress)
    programs = _programs(cache, progress, root)
    inputs = [hash_tree(REPOSITORY / name) for name in SOURCES]
    key = hash_inputs(programs.name, __version__, inputs, hash_file(REPOSITORY / "pyproject.toml"))

    def make(partial: Path) -> None:
        for package in PACKAGES:
            _stage(package, partial / f"{package.name}.tree", programs, root)
        with progress.step("packages: archives") as step:
            root.run(
                "".join(
                    f"dpkg-deb --root-owner-group -Zxz --build /out/{package.name}.tree"
                    f" /out/{_file(package)}\nrm -r /out/{package.name}.tree\n"
                    for package in PACKAGES
                ),
                binds={"/out": partial},
                step=step,
                log=cache.log("package-archives"),
                hint="see the log",
            )

    return cache.entry("packages", key, make)


def _programs(cache: Cache, progress: Progress, root: Buildroot) -> Path:
    """A directory with the programs, and of each what libraries it needs."""
    names = [name for programs in PROGRAMS.values() for name in programs]
    script = "".join(
        f"make -j$JOBS -C /src/host/tools/{FOLDERS.get(name, name)} BUILD=/out/{name}.d {FLAGS}\n"
        f"{STRIP} -o /out/{name} /out/{name}.d/{name}\n"
        f"readelf -d /out/{name} >/out/{name}.needs\nrm -r /out/{name}.d\n"
        for name in names
    )

    def make(partial: Path) -> None:
        with progress.step("packages: programs") as step:
            root.run(
                script,
                binds={"/src": REPOSITORY, "/out": partial},
                step=step,
                log=cache.log("package-programs"),
                hint="the first 'error:' in the log is the one to look at",
            )

    folders = ["hw/rsd-nvme/core", "host/fs/core", "host/fs/user", "host/tools/common"]
    folders += sorted({f"host/tools/{FOLDERS.get(name, name)}" for name in names})
    inputs = [hash_tree(REPOSITORY / name) for name in folders]
    return cache.entry("package-programs", hash_inputs(root.identity, script, inputs), make)


def _file(package: Package) -> str:
    return f"{package.name}_{__version__}_{package.architecture}.deb"


def _stage(package: Package, tree: Path, programs: Path, root: Buildroot) -> None:
    """The tree of a package, with its control files."""
    names = PROGRAMS.get(package.name, ())
    for name in names:
        mode = 0o644 if name == LIBRARY else 0o755
        _write(tree / PLACES[package.name] / name, (programs / name).read_bytes(), mode)
    if package.name == "rsd-nvme":
        _stage_runner(tree)
    if package.name == "rfs-progs":
        for path in sorted((REPOSITORY / "host/fs/man").iterdir()):
            _manual(tree, path.name, path.read_text())
        _manual(tree, "objtool.8", (OFTL / "objtool.8").read_text())
    if package.name == "liboftl-dev":
        _write(tree / "usr/include/oftl.h", (OFTL / "oftl.h").read_text())
        _manual(tree, "liboftl.3", (OFTL / "liboftl.3").read_text())
        (tree / LIBRARIES).mkdir(parents=True)
        (tree / LIBRARIES / LIBRARY.removesuffix(".1")).symlink_to(LIBRARY)
    if package.name == "python3-oftl":
        module_file = tree / "usr/lib/python3/dist-packages/oftl.py"
        _write(module_file, (OFTL / "python/oftl.py").read_text())
    scripts: dict[str, str] = {}
    if package.name == "liboftl1":
        scripts = {"shlibs": SHLIBS, "triggers": TRIGGERS}
    if package.name == "rfs-progs":
        scripts = {"postinst": LIST_POSTINST, "postrm": LIST_POSTRM}
    if package.name == "rfs-dkms":
        source = tree / f"usr/src/rfs-{__version__}"
        for pattern in module.SOURCES:
            for path in sorted((REPOSITORY / "host/fs").glob(pattern)):
                _write(source / path.relative_to(REPOSITORY / "host/fs"), path.read_bytes())
        _write(source / "dkms.conf", DKMS.format(version=__version__))
        scripts = {"postinst": POSTINST, "prerm": PRERM}
    documents = tree / "usr/share/doc" / package.name
    _write(documents / "copyright", COPYRIGHT)
    _write(documents / "changelog.gz", _packed(_changelog()))
    needs = {_library(root, library) for name in names for library in _needed(programs, name)}
    _write_control(package, tree, sorted(needs), scripts)
    for path in [tree, *tree.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        if not path.is_symlink():
            os.utime(path, (buildroot.SOURCE_DATE_EPOCH, buildroot.SOURCE_DATE_EPOCH))


def _stage_runner(tree: Path) -> None:
    """As pip installs it (pyproject.toml says what), in a place of its own."""
    target = tree / "usr/share/rsd-nvme"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".gitignore")
    shutil.copytree(REPOSITORY / "host/tools/rsd", target / "rsd", ignore=ignored)
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for source, place in wheel["targets"]["wheel"]["force-include"].items():
        shutil.copytree(REPOSITORY / source, target / place, ignore=ignored)
    _write(tree / "usr/bin/rsd", LAUNCHER, 0o755)
    for path in target.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                path.chmod(0o755 if stream.read(2) == b"#!" else 0o644)
    for name, summary in MANUALS.items():
        text = (
            f'.TH {name.upper()} 1 "" rsd\\-nvme "User Commands"\n.SH NAME\n{name} \\- {summary}\n'
            f".SH SYNOPSIS\n.B {name}\n.RI [ argument ...]\n.SH DESCRIPTION\n"
            f'What it takes and prints is said by\n.BR "{name} \\-\\-help" .\n'
        )
        _manual(tree, f"{name}.1", text)
    _manual(tree, "rsdctl.8", (REPOSITORY / "host/tools/rsdctl/rsdctl.8").read_text())


def _write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode(), 9, mtime=0)


def _manual(tree: Path, name: str, text: str) -> None:
    section = name.rsplit(".", 1)[1]
    _write(tree / f"usr/share/man/man{section}/{name}.gz", _packed(text))


def _changelog() -> str:
    return (
        f"rsd-nvme ({__version__}) unstable; urgency=medium\n\n"
        f"  * As the repository has it.\n\n -- {MAINTAINER}  {DATE}\n"
    )


def _write_control(
    package: Package,
    tree: Path,
    needs: Sequence[str],
    scripts: Mapping[str, str],
) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    sums = "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}"
        f"  {path.relative_to(tree)}\n"
        for path in files
    )
    described = "\n ".join(textwrap.wrap(package.description, 78))
    fields = {
        "Package": package.name,
        "Source": "" if package.name == "rsd-nvme" else "rsd-nvme",
        "Version": __version__,
        "Architecture": package.architecture,
        "Maintainer": MAINTAINER,
        "Installed-Size": str(size),
        "Depends": package.depends.replace("${shlibs}", ", ".join(needs)),
        "Recommends": package.recommends,
        "Section": package.section,
        "Priority": "optional",
        "Description": f"{package.summary}\n {described}",
    }
    text = "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    _write(tree / "DEBIAN/control", text)
    _write(tree / "DEBIAN/md5sums", sums)
    for name, script in scripts.items():
        mode = 0o755 if script.startswith("#!") else 0o644
        _write(tree / "DEBIAN" / name, script.format(version=__version__), mode)


def _needed(programs: Path, program: str) -> list[str]:
    """Libraries of a program, as readelf printed them."""
    said = (programs / f"{program}.needs").read_text()
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def _library(root: Buildroot, soname: str) -> str:
    """The package of a library, with the version that Debian asks for."""
    name, number = soname.split(".so.")
    for path in sorted((root.root / "var/lib/dpkg/info").glob("*.shlibs")):
        for line in path.read_text().splitlines():
            words = line.split(None, 2)
            if words[:2] == [name, number]:
                return words[2]
    raise RsdError(f"no package of the buildroot has {soname}")


def check(built: Path, cache: Cache, progress: Progress) -> None:
    """lintian, and a trial in a fresh Debian. Raises RsdError for whatever is found."""
    archives = sorted(built.glob("*.deb"))
    with progress.step("packages: lintian") as step:
        said = _in_fresh_debian(
            ["lintian"],
            "lintian --allow-root --fail-on error,warning --display-info --tag-display-limit 0"
            " /packages/*.deb",
            archives,
            cache,
            step,
            "lintian",
        )
    names = "|".join(package.name for package in PACKAGES)
    if tags := re.findall(rf"^[EW]: (?:{names})[: ].*$", said, re.M):
        raise RsdError("lintian:\n" + "\n".join(f"  {tag}" for tag in tags))
    with progress.step("packages: installed and used in a fresh Debian") as step:
        said = _in_fresh_debian(
            [],
            TRIAL.format(version=__version__, filesystems=FILESYSTEMS),
            archives,
            cache,
            step,
            "package-trial",
        )
    if "\nused and removed\n" not in said:
        raise RsdError("the trial ended early", str(cache.log("package-trial")))


def _in_fresh_debian(
    include: list[str],
    script: str,
    archives: list[Path],
    cache: Cache,
    step: Step,
    name: str,
) -> str:
    """What a script prints in a Debian of its own, with the packages in /packages."""
    with cache.scratch("debian") as scratch:
        scratch.chmod(0o777)
        for path in archives:
            shutil.copy2(path, scratch / path.name)
        (scratch / "script").write_text(script)
        isolate = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
        run_logged(
            [
                *isolate,
                *("mmdebstrap", "--variant=apt"),
                # A terminal of apt may still be open when mmdebstrap unmounts /dev/pts.
                '--aptopt=Dpkg::Use-Pty "false"',
                *([f"--include={','.join(include)}"] if include else []),
                "--customize-hook=mkdir $1/packages",
                f"--customize-hook=copy-in {' '.join(str(scratch / p.name) for p in archives)}"
                f" {scratch}/script /packages",
                "--customize-hook=chroot $1 sh /packages/script",
                *(debian.SUITE, "/dev/null", debian.BINARY_SOURCE),
            ],
            step=step,
            log=cache.log(name),
            hint="see the log's end; it needs the network",
            env={"TMPDIR": str(scratch)},
        )
    return cache.log(name).read_text(errors="replace")
