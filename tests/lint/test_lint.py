# SPDX-License-Identifier: GPL-2.0-or-later
"""Style of every file in git: checkpatch (two), ruff, shellcheck, sparse, coccinelle."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from calls import calls_between, circles

from programs import is_checked, mark_checked
from rsd import buildroot, debian, kernel, module, qemu, site
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, hash_file, hash_inputs, hash_tree
from rsd.progress import Progress


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows and that exist, relative to the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = sorted({Path(name) for name in listing.split("\0") if name})
    return [path for path in found if (REPOSITORY / path).is_file()]


def shell_scripts() -> list[Path]:
    """Tracked files whose first line names sh or bash."""
    found = []
    for path in tracked():
        with (REPOSITORY / path).open("rb") as stream:
            first = stream.readline(80)
        if first.startswith(b"#!") and first.split()[-1].endswith(b"sh"):
            found.append(path)
    return found


def test_every_test_file_has_a_name_of_its_own() -> None:
    """Without packages pytest takes two files of one name for one module."""
    names = [path.name for path in tracked("tests/**/test_*.py")]
    assert sorted(names) == sorted(set(names))


def check(command: Sequence[str | Path], cwd: Path = REPOSITORY) -> None:
    """Fail with what the linter printed if it is not content."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"{done.stdout}{done.stderr}", pytrace=False)


@pytest.fixture(scope="session")
def qemu_source(rsd_cache: Cache) -> Path:
    progress = Progress()
    version = debian.release(rsd_cache, progress).qemu_version
    return qemu.pristine_source(rsd_cache, progress, version)


@pytest.fixture(scope="session")
def kernel_checkpatch(rsd_cache: Cache) -> Path:
    root = buildroot.ensure(rsd_cache, Progress()).root
    return root / buildroot.LINUX_SOURCE.lstrip("/") / "scripts/checkpatch.pl"


def test_ruff_check() -> None:
    check([sys.executable, "-m", "ruff", "check", "--quiet"])


def test_ruff_format() -> None:
    check([sys.executable, "-m", "ruff", "format", "--check"])


def test_shellcheck() -> None:
    scripts = shell_scripts()
    assert Path("rsd") in scripts
    check(["shellcheck", *scripts])


@pytest.mark.parametrize("patch", tracked("qemu-patches/*.patch"), ids=lambda path: path.name[:4])
def test_qemu_patches(qemu_source: Path, patch: Path) -> None:
    check(["perl", "scripts/checkpatch.pl", "-q", "--no-tree", REPOSITORY / patch], qemu_source)


def test_kernel_documents(rsd_cache: Cache, kernel_checkpatch: Path, tmp_path: Path) -> None:
    """What is meant for the kernel's Documentation renders, and is an entry of its ABI."""
    documents = REPOSITORY / "host/fs/doc"
    packages = site.mkdocs(rsd_cache, Progress())
    render = (
        "import sys; sys.path.insert(0, sys.argv[1]); from docutils.core import publish_file\n"
        "publish_file(source_path=sys.argv[2], destination_path=sys.argv[3], writer='html5',\n"
        "    settings_overrides={'report_level': 1, 'halt_level': 1, 'raw_enabled': False})"
    )
    page = tmp_path / "rfs.html"
    check([sys.executable, "-c", render, packages, documents / "rfs.rst", page])
    text = page.read_text()
    assert text.count("<table") == 3 and text.count("<pre") == 2
    (tmp_path / "testing").mkdir()
    shutil.copy(documents / "sysfs-fs-rfs", tmp_path / "testing")
    said = subprocess.run(
        ["perl", kernel_checkpatch.with_name("get_abi.pl"), "validate", "--dir", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not said.stdout + said.stderr


# What --strict is for: the module, not what stands for the kernel elsewhere, nor trace events.
NOT_STRICT = (
    "host/fs/user/*",
    "host/fs/core/plat/user.h",
    "host/fs/core/plat/list.h",
    "host/fs/trace.h",
)
MODULE_FILES = ("host/fs/*.[ch]", *(f":!{path}" for path in NOT_STRICT))
# And what it is not: messages are not broken, headers are user space's too, arguments of macros are
# variables.
STRICT = "--ignore=LONG_LINE_STRING,BIT_MACRO,MACRO_ARG_REUSE"


def check_style(cache: Cache, checkpatch: Path, *patterns: str, strict: bool = False) -> None:
    """Each file by itself, unless that one was found right before, of this name."""
    files = tracked(*patterns)
    assert files
    command = ["perl", checkpatch, "-q", "--no-tree", *(["--strict", STRICT] if strict else [])]
    program = hash_inputs(hash_file(checkpatch), list(map(str, command[2:])))
    keys = {path: hash_inputs(program, path, hash_file(REPOSITORY / path)) for path in files}
    new = [path for path in files if not is_checked(cache, "lint", keys[path])]
    if new:
        check([*command, "-f", *(REPOSITORY / path for path in new)], checkpatch.parents[1])
    for path in new:
        mark_checked(cache, "lint", keys[path])


def test_qemu_style(rsd_cache: Cache, qemu_source: Path) -> None:
    check_style(rsd_cache, qemu_source / "scripts/checkpatch.pl", "hw/*.c", "hw/*.h")


def test_kernel_style(rsd_cache: Cache, kernel_checkpatch: Path) -> None:
    check_style(rsd_cache, kernel_checkpatch, "host/*.c", "host/*.h")
    check_style(rsd_cache, kernel_checkpatch, *MODULE_FILES, strict=True)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("spatch") is None, reason="coccinelle is not installed")
def test_coccinelle(kernel_checkpatch: Path) -> None:
    """What `make coccicheck MODE=report` says of a kernel, of the module.

    Scripts with parts in OCaml are left out: they take its compiler besides.
    """
    scripts = sorted((kernel_checkpatch.parent / "coccinelle").rglob("*.cocci"))
    scripts = [path for path in scripts if "ocaml" not in path.read_text()]
    assert len(scripts) > 50
    command = "spatch --very-quiet --no-show-diff -D report --no-includes --include-headers".split()
    for script in scripts:
        done = subprocess.run(
            [*command, "--dir", REPOSITORY / "host/fs", "--cocci-file", script],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script.name}: {done.stderr}"
        if done.stdout.strip():
            pytest.fail(f"{script.name}: {done.stdout}", pytrace=False)


# Functions of the module that the kernel's macros make, by their names.
GENERATED = "(perf_trace|trace_event_raw_event|trace_raw_output)_rfs_|(init|cleanup)_module$"


def is_called_at_home(source: Path, name: str) -> bool:
    """A file of the module calls what it defines: its name is there once more."""
    files = [*source.glob("*.c"), *source.glob("core/*/*.c")]
    texts = [path.read_text() for path in files if path.parent.name != "tools"]
    return sum(len(re.findall(rf"\b{name}\b", text)) for text in texts) > 1


def test_module(rsd_cache: Cache, tmp_path: Path) -> None:
    """Neither W=1 (which reads kernel-doc comments too) nor sparse has anything to say.

    Unless these sources were found right before, by what is here and for this kernel.
    """
    progress = Progress()
    built = kernel.ensure(rsd_cache, progress, REPOSITORY / "guest/kernel", "release")
    compiler = buildroot.ensure(rsd_cache, progress)
    source = tmp_path / "module"
    source.mkdir()
    module.sync(REPOSITORY / "host/fs", source)
    checks = [hash_file(Path(__file__).with_name(name)) for name in ("test_lint.py", "calls.py")]
    key = hash_inputs(hash_tree(source), built.name, compiler.identity, module.MAKE, checks)
    if is_checked(rsd_cache, "module-lint", key):
        return
    log = rsd_cache.log("module-lint")
    with progress.step("RFS module: W=1 and sparse") as step:
        # What make says is the verdict, its status is not: without a module the script fails.
        compiler.run(
            f"{module.MAKE} W=1 C=2 modules >/module/said 2>&1 || true\ntest -f /module/rfs.ko\n",
            binds={"/out": built, "/module": source},
            step=step,
            log=log,
            hint="make -C host/fs fails",
        )
    said = (source / "said").read_text()
    if said:
        pytest.fail(said, pytrace=False)
    # The module's own files are in an order, too: none calls one that leads back to it.
    names = [path.stem for path in source.glob("*.c") if not path.name.endswith(".mod.c")]
    calls = calls_between({name: source / f"{name}.o" for name in names})
    assert sum(map(len, calls.values())) > 50, "the calls were not found"
    round_and_round = circles(calls)
    assert not round_and_round, f"{len(round_and_round)} files: {', '.join(round_and_round)}"
    # And a backtrace tells what it is from: names begin with a prefix, and are there once.
    symbols = subprocess.run(["nm", source / "rfs.o"], capture_output=True, text=True, check=True)
    functions = re.findall(r"^\w+ [tT] ([a-z]\w*)$", symbols.stdout, re.M)
    functions = [name for name in functions if not re.match(GENERATED, name)]
    assert len(functions) > 300, "the functions were not found"
    without = [name for name in functions if not name.startswith(("rfs_", "rfsm_"))]
    assert not without, f"no prefix: {', '.join(without)}"
    twice = sorted({name for name in functions if functions.count(name) > 1})
    assert not twice, f"in two files: {', '.join(twice)}"
    # What only the tools use is not in the module.
    objects = [*source.glob("*.o"), *source.glob("core/*/*.o")]
    objects = [path for path in objects if path.name not in ("rfs.o", "rfs.mod.o")]
    said = subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout
    used = set(re.findall(r"^ +U (\w+)$", said, re.M))
    unused = sorted(set(re.findall(r"^\w+ T (rfsm?_\w+)$", said, re.M)) - used)
    own = [name for name in unused if not is_called_at_home(source, name)]
    assert not own, f"nobody in the module calls {', '.join(own)}"
    mark_checked(rsd_cache, "module-lint", key)
