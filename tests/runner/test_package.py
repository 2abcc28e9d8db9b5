# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian packages: what is in them; and with --long, lintian and a use of each."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rsd import __version__, buildroot, guesttools, module, package
from rsd.artifacts import REPOSITORY
from rsd.buildroot import Buildroot
from rsd.cache import Cache, hash_file
from rsd.progress import Progress

BY_NAME = {one.name: one for one in package.PACKAGES}


@pytest.fixture(scope="module")
def root(rsd_cache: Cache) -> Buildroot:
    return buildroot.ensure(rsd_cache, Progress())


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for the programs here: their names, and a library that they need."""
    directory = tmp_path_factory.mktemp("programs")
    for name in (name for names in package.PROGRAMS.values() for name in names):
        (directory / name).write_text(name)
        needs = " 0x1 (NEEDED)  Shared library: [libc.so.6]\n"
        (directory / f"{name}.needs").write_text(needs)
    return directory


def staged(name: str, programs: Path, root: Buildroot, tree: Path) -> dict[str, str]:
    """The tree of a package, and its control fields."""
    package._stage(BY_NAME[name], tree, programs, root)
    control = (tree / "DEBIAN/control").read_text()
    return dict(re.findall(r"^([\w-]+): (.*)$", control, re.M))


def test_the_runner_has_the_sources_that_pip_installs(
    programs: Path, root: Buildroot, tmp_path: Path
) -> None:
    fields = staged("rsd-nvme", programs, root, tmp_path)
    assert re.match(r"libc6 \(>= 2\.\d+\), python3", fields["Depends"])
    share = tmp_path / "usr/share/rsd-nvme/rsd"
    for name in ("cli.py", "tree/hw/rsd-nvme/rsd-ns.c", "tree/host/fs/fs.c", "tree/guest/init"):
        assert (share / name).is_file(), name
    assert not list(share.rglob("*.pyc"))
    for name in ("rsd", *package.PROGRAMS["rsd-nvme"]):
        assert (tmp_path / "usr/bin" / name).stat().st_mode & 0o777 == 0o755
        assert list((tmp_path / "usr/share/man").glob(f"man*/{name}.*.gz")), name


def test_the_tools_have_their_manual_pages(programs: Path, root: Buildroot, tmp_path: Path) -> None:
    fields = staged("rfs-progs", programs, root, tmp_path)
    assert fields["Source"] == "rsd-nvme" and "libc6" in fields["Depends"]
    for name in (*guesttools.RFS_TOOLS, "objtool"):
        assert (tmp_path / "usr/sbin" / name).read_text() == name
        assert (tmp_path / f"usr/share/man/man8/{name}.8.gz").exists()


@pytest.mark.parametrize("before", [None, "", "ext4\nvfat\n", "ext4\n*\n", "rfs\next4\n"])
def test_mount_finds_the_type(
    before: str | None, programs: Path, root: Buildroot, tmp_path: Path
) -> None:
    """The package puts RFS first in /etc/filesystems, once, and a purge leaves what was there."""
    staged("rfs-progs", programs, root, tmp_path / "tree")
    listed = tmp_path / "etc/filesystems"
    listed.parent.mkdir()
    if before is not None:
        listed.write_text(before)

    def run(script: str, *words: str) -> list[str]:
        command = [tmp_path / "tree/DEBIAN" / script, *words]
        subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", "DPKG_ROOT": tmp_path})
        if not listed.exists():
            return ["*"]
        return [line for line in listed.read_text().splitlines() if line and line[0] != "#"]

    others = ["*"] if before is None else before.removeprefix("rfs\n").split()
    assert run("postinst", "configure", "") == ["rfs", *others]
    assert run("postinst", "configure", "") == ["rfs", *others]
    assert run("postrm", "remove") == ["rfs", *others]
    kept = ["rfs"] if before and before.startswith("rfs") else []
    assert run("postrm", "purge") == [*kept, *others]
    assert listed.exists() == (before is not None)
    # Who took it out does not find it there after an upgrade.
    if before is not None:
        listed.write_text("ext4\n")
        assert run("postinst", "configure", __version__) == ["ext4"]


def test_the_library_and_what_programs_need_of_it(
    programs: Path, root: Buildroot, tmp_path: Path
) -> None:
    fields = staged("liboftl1", programs, root, tmp_path / "library")
    assert "libc6" in fields["Depends"]
    library = tmp_path / "library" / package.LIBRARIES / "liboftl.so.1"
    assert library.stat().st_mode & 0o777 == 0o644
    control = tmp_path / "library/DEBIAN"
    assert (control / "shlibs").read_text() == f"liboftl 1 liboftl1 (>= {__version__})\n"
    assert (control / "triggers").stat().st_mode & 0o777 == 0o644
    assert "DEBIAN" not in (control / "md5sums").read_text()
    fields = staged("liboftl-dev", programs, root, tmp_path / "dev")
    assert fields["Depends"] == f"liboftl1 (= {__version__})"
    assert (tmp_path / "dev" / package.LIBRARIES / "liboftl.so").readlink() == Path("liboftl.so.1")
    assert (tmp_path / "dev/usr/include/oftl.h").is_file()
    assert (tmp_path / "dev/usr/share/man/man3/liboftl.3.gz").is_file()
    fields = staged("python3-oftl", programs, root, tmp_path / "python")
    assert fields["Architecture"] == "all"
    assert (tmp_path / "python/usr/lib/python3/dist-packages/oftl.py").is_file()


def test_the_source_of_the_module_is_whole(programs: Path, root: Buildroot, tmp_path: Path) -> None:
    """It is what the runner builds the module from, and dkms is told its version."""
    fields = staged("rfs-dkms", programs, root, tmp_path)
    assert fields["Architecture"] == "all" and fields["Depends"] == "dkms"
    source = tmp_path / f"usr/src/rfs-{__version__}"
    assert module.identity(source) == module.identity(REPOSITORY / "host/fs")
    assert f'PACKAGE_VERSION="{__version__}"' in (source / "dkms.conf").read_text()
    for name in ("postinst", "prerm"):
        script = tmp_path / "DEBIAN" / name
        assert f" {__version__} " in script.read_text() and script.stat().st_mode & 0o111


def test_the_manual_pages_are_not_of_other_programs() -> None:
    for name in package.MANUALS:
        assert name == "rsd" or name in package.PROGRAMS["rsd-nvme"]


@pytest.mark.long
def test_packages_are_clean_installed_and_used(rsd_cache: Cache) -> None:
    """Built twice they are the same bytes; lintian has nothing to say; each is used."""
    progress = Progress()
    built = package.build(rsd_cache, progress)
    first = {path.name: hash_file(path) for path in built.glob("*.deb")}
    assert len(first) == len(package.PACKAGES)
    shutil.rmtree(built)
    built = package.build(rsd_cache, progress)
    assert {path.name: hash_file(path) for path in built.glob("*.deb")} == first
    package.check(built, rsd_cache, progress)
