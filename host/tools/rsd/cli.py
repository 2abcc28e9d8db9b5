"""The command line of `./rsd`."""

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from rsd import artifacts, debian, first_run, guest_run, image, packages, qemu, sim, systems
from rsd.artifacts import IS_CLONE, REPOSITORY
from rsd.cache import Cache
from rsd.cluster import environment
from rsd.errors import RsdError, nearest, words
from rsd.guest_run import add_install_argument
from rsd.kernel import FLAVOURS
from rsd.progress import Progress
from rsd.steps import stop_all

OUR_FAULT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

# Processes of ./rsd test. More would wait for the longest file of tests.
MOST_WORKERS = 8

# What these need is in the repository, and not in what pip installs of it.
FOR_CLONES = ("bench", "site", "test")

EXIT_STATUSES = """\
The exit status is that of CMD, or one of these:
  2    The usage is wrong, or building failed. Nothing ran.
  130  A signal asked the guest to end.
  201  The guest's kernel panicked.
  202  The guest hung until its watchdog fired.
  203  CMD reached --virtual-limit.
  204  The guest reached --wall-limit.
  205  The guest ended without a result."""


def main(arguments: list[str]) -> int:
    """Run one command; gives the exit status."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        if arguments[:1] == ["sim"]:
            # Its options are rsdsim's own, which argparse need not know.
            return sim.main(arguments[1:])
        _check_installed(arguments)
        parser = _parser(arguments[:1])
        parsed, others = parser.parse_known_args(arguments)
        if arguments[:1] == ["test"]:
            # Options before the first word that is none are pytest's, too.
            parsed.pytest = others + parsed.pytest
        elif others:
            raise _unknown(parser, arguments, others)
        return int(parsed.function(parsed))
    except RsdError as error:
        print(f"rsd: {error}", file=sys.stderr)
        return OUR_FAULT
    except BrokenPipeError:
        # Whoever read our output has had enough. Nothing is left to be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        stop_all()
        return BROKEN_PIPE
    except OSError as error:
        stop_all()
        print(f"rsd: {words(error)}", file=sys.stderr)
        return OUR_FAULT
    except KeyboardInterrupt:
        stop_all()
        print("rsd: interrupted", file=sys.stderr)
        return INTERRUPTED


def _unknown(parser: argparse.ArgumentParser, arguments: list[str], others: list[str]) -> RsdError:
    """The error of options that the command does not have."""
    command = next(word for word in arguments if not word.startswith("-"))
    known = [option for option in _options(parser, command) if option.startswith("--")]
    close = nearest(others[0].partition("=")[0], known)
    hints = [close] if close else []
    if command == "run" and "--" not in arguments:
        hints.append("put -- before the guest's command: ./rsd run -- fio --version")
    hints.append(f"./rsd {command} --help")
    return RsdError(f"{command}: there is no option {others[0]}", "; ".join(hints))


def _options(parser: argparse.ArgumentParser, command: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for option in action.choices[command]._actions:
                yield from option.option_strings


def _check_installed(arguments: list[str]) -> None:
    for_clones = arguments[:1] and arguments[0] in FOR_CLONES or "--record" in arguments
    if for_clones and not IS_CLONE:
        raise RsdError(
            f"{' '.join(arguments[:1])}: this rsd was installed without tests and documents",
            "clone the repository, and run ./rsd there",
        )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser(command: list[str]) -> argparse.ArgumentParser:
    """The parser. `command` is the one that is asked for, if any: the others load no code."""
    parser = argparse.ArgumentParser(
        prog="./rsd",
        description="Run a virtual SSD in QEMU and a Linux guest that uses it, and measure both. "
        "Every command first builds what it needs, if it is missing.",
        epilog="example: ./rsd run -- nvme list",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    drives = f"""\
These are the systems, and the properties that each sets. --set changes them, here and in
./rsd sim:
{systems.describe()}"""

    setup = _add(
        commands, "setup", "Build everything that other commands need.", "./rsd setup", _setup
    )
    add_install_argument(setup)
    setup.add_argument(
        "--kernel",
        choices=tuple(FLAVOURS),
        default="release",
        help="The guest's kernel. debug finds faults of the kernel and of RFS, with KASAN and"
        " lockdep, and is ten times slower (default: release).",
    )
    setup.add_argument(
        "--update", action="store_true", help="Look for newer Debian packages, and build with them."
    )
    setup.add_argument(
        "--record",
        action="store_true",
        help="Keep what each step took in docs/results and docs/first-run.md. The cache must be"
        " empty.",
    )
    setup.add_argument(
        "--cluster",
        action="store_true",
        help="Install Snakemake as well, which runs workflows (docs/cluster.md).",
    )

    shell = _add(
        commands,
        "shell",
        "Start a guest on your terminal, which exit or Ctrl-A X leaves.",
        "./rsd shell --system stock-zns --in ./jobs --out ./results",
        guest_run.shell,
        drives,
    )
    guest_run.add_arguments(shell, shell=True)

    run = _add(
        commands,
        "run",
        "Run a command in a guest, and exit with its status.",
        "./rsd run --precondition fill -- fio --name=r --rw=randread --filename=/dev/nvme0n1"
        " --direct=1 --size=64M",
        guest_run.run,
        f"{drives}\n\n{EXIT_STATUSES}",
    )
    guest_run.add_arguments(run, shell=False)

    _add_lazy(
        commands,
        "compare",
        "Measure drives and file systems side by side.",
        "./rsd compare --quick",
        command,
    )
    _add(
        commands,
        "sim",
        "Run generated work or a trace on the drive alone, without a guest.",
        "./rsd sim --set ftl=page --precondition steady --pattern zipf=0.99",
        lambda parsed: sim.main([]),
    )
    _add_lazy(
        commands,
        "crash",
        "Run a workload, cut the power at each operation, and check what is left.",
        "./rsd crash --system ext4-page --work ace:seq1/1-5 --points 40",
        command,
    )
    _add_lazy(
        commands,
        "sweep",
        "Run ./rsd sim over a grid of settings, on all cores.",
        "./rsd sweep op.toml",
        command,
    )
    _add_lazy(
        commands,
        "top",
        "Show what a drive that is in use does: dies, queues, zones, wear.",
        "./rsd top",
        command,
    )
    _add_lazy(
        commands,
        "watch",
        "Show what each die did in a recorded run, as a timeline in the browser.",
        "./rsd watch run.trace",
        command,
    )
    _add_lazy(
        commands,
        "plot",
        "Draw latency or throughput over time, from the logs of fio.",
        "./rsd plot one/run_lat.1.log two/run_lat.1.log",
        command,
    )
    _add_lazy(
        commands,
        "bench",
        "Measure the model of the drive, and what it costs the host.",
        "./rsd bench risa mapping",
        command,
    )

    _add_lazy(
        commands,
        "paper",
        "Measure the papers' tables and figures again, with a verdict for each.",
        "./rsd paper redo table1",
        command,
    )

    test = _add(
        commands,
        "test",
        "Run the tests on all cores, with pytest.",
        "./rsd test -k media",
        _test,
        "Options of pytest can follow. -n 0 runs one test at a time in one process, as -s needs.\n"
        "--long adds the tests that take minutes or hours.",
    )
    add_install_argument(test)
    test.add_argument(
        "pytest", nargs=argparse.REMAINDER, help="Folders, files and options of pytest."
    )

    images = _add(
        commands,
        "image",
        "Save QEMU and the guest to a file, or use a file's, to repeat a run elsewhere or offline.",
        "./rsd image export image.tar",
        _image,
    )
    images.add_argument(
        "action",
        choices=("export", "import", "reset"),
        help="export writes QEMU and the guest that are in use to FILE. import uses"
        " FILE's from now on. reset goes back to what is built here.",
    )
    images.add_argument("file", nargs="?", type=Path, metavar="FILE", help="The tar file.")
    images.add_argument(
        "--kernel",
        choices=tuple(FLAVOURS),
        default="release",
        help="The kernel that export writes (default: release).",
    )
    add_install_argument(images)

    _add_lazy(
        commands,
        "package",
        "Build Debian packages of the runner, of RFS's tools and of its module.",
        "./rsd package --check",
        command,
    )
    _add_lazy(
        commands,
        "cite",
        "Print how to cite this, with the versions and hashes that decide a figure.",
        "./rsd cite",
        command,
    )
    _add_lazy(
        commands,
        "artifact",
        "Pack a paper's figures with what they should be, or verify them elsewhere.",
        "./rsd artifact verify paper.tar",
        command,
        "reproduce",
    )
    _add_lazy(
        commands, "site", "Make a web site of the documents, with search.", "./rsd site", command
    )

    clean = _add(commands, "clean", "Delete what was built.", "./rsd clean", _clean)
    clean.add_argument(
        "--old",
        action="store_true",
        help="Delete only what is made again in minutes: QEMU, programs, saved guests, what compare"
        " keeps. Kernels and images stay.",
    )
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    example: str,
    function: Callable[[argparse.Namespace], int],
    details: str = "",
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog="\n\n".join(filter(None, [details, f"example:\n  {example}"])),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(function=function)
    return parser


def _add_lazy(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    example: str,
    command: list[str],
    module: str = "",
) -> None:
    """A command in a module of its own, with `add_arguments(parser)` and `main(args)`.

    The module is only loaded for its own command: `./rsd run` would wait for it as well.
    """
    if command != [name]:
        commands.add_parser(name, help=summary)
        return
    package = importlib.import_module(f"rsd.{module or name}")
    parser = _add(commands, name, summary, example, package.main)
    package.add_arguments(parser)


def _setup(arguments: argparse.Namespace) -> int:
    cache, progress = Cache(), Progress()
    packages.ensure(progress, install=not arguments.no_install)
    began = time.monotonic()
    if arguments.update or image.imported(cache) is None:
        debian.release(cache, progress, update=arguments.update)
    built = artifacts.ensure(cache, progress, kernel=arguments.kernel)
    if arguments.record:
        kept = first_run.record(REPOSITORY, cache, progress, time.monotonic() - began)
        progress.say(f"docs/first-run.md shows {kept}")
    for name, digest in built.hashes.items():
        progress.say(f"{name:9} sha256 {digest}")
    progress.say(f"QEMU is {built.qemu}")
    if arguments.cluster:
        progress.say(f"Snakemake is {environment.ensure(cache, progress)}")
    progress.say(f"everything is in {cache.root}; next: ./rsd shell")
    return 0


def _test(arguments: argparse.Namespace) -> int:
    progress = Progress()
    long_tests = "--long" in arguments.pytest
    packages.ensure(progress, install=not arguments.no_install, long_tests=long_tests)
    artifacts.ensure(Cache(), progress)
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    command = [sys.executable, "-m", "pytest", *parallel(workers), *arguments.pytest]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def parallel(workers: int) -> list[str]:
    """Options of pytest: so many processes, which share the tests as tests/conftest.py says."""
    return ["-n", str(workers), "--dist", "loadscope", "--no-loadscope-reorder"]


def _image(arguments: argparse.Namespace) -> int:
    cache, progress = Cache(), Progress()
    if arguments.action == "reset":
        image.reset(cache)
        progress.say("what is built here is in use")
        return 0
    if arguments.file is None:
        raise RsdError(f"image {arguments.action}: FILE is missing", "./rsd image --help")
    if arguments.action == "import":
        name = image.import_(cache, arguments.file)
        progress.say(f"image {name} is in use until ./rsd image reset")
        return 0
    packages.ensure(progress, install=not arguments.no_install)
    built = artifacts.ensure(cache, progress, kernel=arguments.kernel)
    parts = {"vmlinux": built.kernel, "root.erofs": built.root, "init": built.init}
    parts[image.QEMU] = built.qemu
    for name, path in artifacts.firmware_files(built.firmware).items():
        parts[f"firmware/{name}"] = path
    trees = {"tools": built.tools, "modules": built.modules}
    image.export(arguments.file, parts, trees, arguments.kernel, qemu.sources(REPOSITORY))
    return 0


# What a new version of the drive makes useless, and what is made anew within minutes.
OLD = "qemu guest-tools module-release module-debug rsdsim rsdview aged cell guest".split()


def _clean(arguments: argparse.Namespace) -> int:
    cache = Cache()
    cache.claim()
    kinds = OLD if arguments.old else [path.name for path in cache.root.iterdir()]
    for kind in kinds:
        path = cache.root / kind
        if kind in ("venv", "locks"):
            # We are running from the one, which the launcher makes anew by itself, and hold a
            # file of the other.
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    print(f"rsd: {cache.root} cleaned", file=sys.stderr)
    return 0
