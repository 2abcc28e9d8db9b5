# SPDX-License-Identifier: GPL-2.0-or-later
"""What every test may ask for: the cache, QEMU, a built guest. And in what order tests run."""

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from rsd import artifacts, qemu, sim
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.progress import Progress

# The cheap and telling ones first: a lint error or a broken unit needs no guest to show. Then what
# takes long, so that no process is left alone with it in the end.
ORDER = "lint unit model fs oftl guests crash sim tools runner device compare docs".split()

# Where tests boot guests.
GUESTS = re.compile(
    r"^tests/(guest/|fs/guest/|runner/test_(guest\w*|saved)\.py|docs/test_commands\.py|"
    r"compare/test_(repeat|stack_repeat|every_stack)\.py|crash/test_runs\.py)"
)


@pytest.fixture(scope="session")
def rsd_cache() -> Cache:
    """The cache that ./rsd uses."""
    return Cache()


@pytest.fixture(scope="session")
def qemu_binary(rsd_cache: Cache, pytestconfig: pytest.Config) -> Path:
    """Our QEMU, built from this repository's patches and device if it is not yet."""
    configure = qemu.CONFIGURE
    if pytestconfig.getoption("--sanitized"):
        configure = qemu.SANITIZED
        # QEMU leaves it to the kernel to free what it has when it ends.
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
        os.environ["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    return qemu.ensure(rsd_cache, Progress(), REPOSITORY, configure) / qemu.BINARY


@pytest.fixture(scope="session")
def rsdsim(rsd_cache: Cache) -> Path:
    """The simulator, as ./rsd sim has it."""
    return sim.ensure(rsd_cache, Progress()).path


@pytest.fixture(scope="session")
def built(rsd_cache: Cache) -> Artifacts:
    """Everything a guest needs. A test that uses it is never skipped: it fails without."""
    return artifacts.ensure(rsd_cache, Progress())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rsd")
    group.addoption("--long", action="store_true", help="Run also what takes minutes or hours.")
    group.addoption(
        "--cpu", metavar="N", type=int, help="List the N tests that took most processor time."
    )
    group.addoption(
        "--volume", default="rfs", help="Run tests/fs/guest on this file system (default: rfs)."
    )
    group.addoption(
        "--guest-kernel",
        default="release",
        help="Run tests/fs/guest with this kernel (default: release).",
    )
    group.addoption(
        "--vcpus",
        type=int,
        default=1,
        help="Give the guests of tests/fs/guest so many processors or more (default: 1).",
    )
    group.addoption(
        "--sanitized",
        action="store_true",
        help="Run tests/device with a QEMU that checks the memory it uses.",
    )
    group.addoption(
        "--keep", metavar="DIR", help="Keep test_endurance.py's volume there, to go on with it."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the folders in ORDER, with all that boots guests between them."""
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    folder = "guests" if GUESTS.match(item.nodeid) else item.nodeid.split("/")[1]
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


class Scheduler(LoadScopeScheduling):
    """What a process is given at a time: the tests of a file, or a single one that boots guests.

    Files have fixtures that take long to make, programs above all; guests take long themselves.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if GUESTS.match(nodeid) else nodeid.split("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduler:
    """For ./rsd test, which runs tests in several processes."""
    return Scheduler(config, log)


class FailuresAtOnce:
    """Says which test failed when it fails; how, is said in the end."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when})")


# The processor time at the start of a test's phase
BEGAN = pytest.StashKey[float]()


def _cpu_s() -> float:
    """Processor time of this process, and of those it waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[BEGAN] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Each report has the processor time of its phase."""
    report = yield
    now = _cpu_s()
    report.cpu_s = now - item.stash[BEGAN]
    item.stash[BEGAN] = now
    return report


class ProcessorTime:
    """Says in the end which tests, set-ups and tear-downs took most."""

    def __init__(self, many: int) -> None:
        self._many = many
        self._taken: list[tuple[float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._taken.append((getattr(report, "cpu_s", 0.0), f"{report.when:<8} {report.nodeid}"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(cpu_s for cpu_s, _ in self._taken)
        terminalreporter.section(f"{total:.0f} s of processor time")
        for cpu_s, what in sorted(self._taken, reverse=True)[: self._many]:
            terminalreporter.write_line(f"{cpu_s:.2f} s {what}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:  # the processes of ./rsd test have none
        config.pluginmanager.register(FailuresAtOnce(terminal))
        if many := config.getoption("--cpu"):
            config.pluginmanager.register(ProcessorTime(many))
