# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with a volume on a drive."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mounted import VOLUMES, Run, Volume

from programs import compiled
from rsd import artifacts, machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, GuestResult, Outcome
from rsd.progress import Progress

HERE = Path(__file__).resolve().parent
CHECKERS = (
    *("posix", "attributes", "linux", "quota", "fsx", "promise", "failing", "endure"),
    *("direct", "atomic", "whole", "partly", "mapping"),
)
API = HERE.parents[2] / "hw/rsd-nvme/core/api"
WALL_LIMIT_S = {"release": 3600, "debug": 7200}
CLOCK = {"release": {}, "debug": {"deterministic": False, "virtual_limit_s": 0}}

# What a kernel says that has found a fault in itself.
FAULT = re.compile(
    r"KASAN|BUG:|WARNING:|possible circular|possible recursive|possible irq|INFO: task|"
    r"inconsistent lock|suspicious RCU|Call Trace|stack backtrace|scheduling while atomic|UBSAN"
)

# The report of who asked for memory that was refused, which ends as one of a fault does.
REFUSAL = re.compile(r"^[^\n]*(?:vmalloc error|page allocation failure): .*?</TASK>", re.M | re.S)

# The last commands of a script. With the debug kernel: memory of the module to which nothing
# points. What is younger than 5 s or has changed since the first scan is not looked at.
LEAKS = r"""
cd /
if test -e /sys/kernel/debug/kmemleak; then
    sleep 6
    for scan in 1 2; do echo scan >/sys/kernel/debug/kmemleak; done
    if grep -B 25 -A 10 '\[rfs\]' /sys/kernel/debug/kmemleak; then exit 99; fi
fi
"""

# What of the module's caches is not free is reported now.
UNLOAD = """
if test -d /sys/module/rfs && ! grep -q " rfs " /proc/mounts; then rmmod rfs; fi
"""

# fails STATUS COMMAND...: the command ends with that status.
PROLOGUE = """
set -ex
fails() { want=$1; shift; got=0; "$@" || got=$?; test $got -eq $want; }
"""


@pytest.fixture(scope="session")
def checkers(rsd_cache: Cache) -> dict[str, Path]:
    """The programs that check a mounted volume, by name: a guest's inputs."""
    return {name: compiled(rsd_cache, HERE / f"{name}.c", f"-I{API}") for name in CHECKERS}


@pytest.fixture
def volume(request: pytest.FixtureRequest) -> Volume:
    """The file system under test."""
    return VOLUMES[request.config.getoption("--volume")]


@pytest.fixture(scope="session")
def flavour(request: pytest.FixtureRequest) -> str:
    """The guest kernel's flavour."""
    return str(request.config.getoption("--guest-kernel"))


@pytest.fixture
def debug_kernel(flavour: str) -> None:
    """Skips what only that kernel can do."""
    if flavour != "debug":
        pytest.skip("takes the debug kernel: --guest-kernel debug")


@pytest.fixture(scope="session")
def parts(rsd_cache: Cache, flavour: str) -> Artifacts:
    """Everything that a guest with this kernel needs."""
    return artifacts.ensure(rsd_cache, Progress(), kernel=flavour)


@pytest.fixture
def run(
    request: pytest.FixtureRequest,
    parts: Artifacts,
    rsd_cache: Cache,
    checkers: dict[str, Path],
    tmp_path: Path,
    flavour: str,
) -> Run:
    """run(script, system="rsd", status=0, ...): a guest in virtual time, with the checkers in /in
    that the script names.

    With the debug kernel it is in real time, which takes half as long, and with more than one of
    `vcpus` too, of which there are as many as --vcpus says at least.
    The script runs with PROLOGUE before it. Fails if it ends otherwise than with `status`, or if
    the guest's kernel has found a fault, but where it is to be `faulty`; where memory is to be
    `refused`, reports of that are none. `outcome` is how the guest has to end; `on_output` gets
    what it prints.
    """

    least_vcpus = int(request.config.getoption("--vcpus"))

    def start(
        script: str,
        system: str = "rsd",
        status: int | None = 0,
        outcome: Outcome = Outcome.EXITED,
        on_output: Callable[[bytes], None] = lambda data: None,
        faulty: bool = False,
        refused: bool = False,
        **options: object,
    ) -> GuestResult:
        settings: dict[str, Any] = {
            "wall_limit_s": WALL_LIMIT_S[flavour],
            "inputs": checkers,
            **CLOCK[flavour],
        }
        options["vcpus"] = max(int(str(options.get("vcpus", 1))), least_vcpus)
        if options["vcpus"] != 1:
            settings |= {"deterministic": False, "virtual_limit_s": 0}
        settings |= options
        if isinstance(inputs := settings["inputs"], Mapping):
            settings["inputs"] = {
                name: content
                for name, content in inputs.items()
                if content != checkers.get(name) or f"/in/{name}" in script
            }
        job = GuestJob(
            system=system,
            kernel=flavour,
            script=f"{PROLOGUE}{script}\n{LEAKS}{UNLOAD}",
            out_dir=tmp_path / "out",
            **settings,
        )
        result = machine.run_guest(job, parts, cache=rsd_cache, on_output=on_output)
        console = REFUSAL.sub("", result.console) if refused else result.console
        found = FAULT.search(console)
        assert faulty or not found, result.console
        assert result.outcome is outcome, f"{result.outcome}\n{result.output}\n{result.console}"
        if outcome is Outcome.EXITED:
            assert result.status == status, result.output
        return result

    return start
