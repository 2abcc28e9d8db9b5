# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the host's time goes while a guest reads in virtual time: perf's samples, strace's counts.

QEMU runs under the tool. It is run twice, with few requests and with many, and what the first took
is subtracted from the second: the start of QEMU, and the translation of what every guest executes.
"""

import dataclasses
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rsd.bench.base import Context
from rsd.errors import RsdError

SAMPLES_A_SECOND = 1999

# Where the tools come from, which nothing else needs
PACKAGES = {"perf": "linux-perf", "strace": "strace"}

# What perf takes for the place of code
TRANSLATED, QEMU, HOST_KERNEL, LIBRARIES = (
    "translated code",
    "QEMU",
    "the host's kernel",
    "libraries",
)


def shares(context: Context, run: Callable[[Context], object]) -> Counter[tuple[str, str]]:
    """Samples of one run by place and function. Raises RsdError without perf."""
    with context.cache.scratch("perf") as scratch:
        data = scratch / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_A_SECOND)]
        run(_under(context, scratch, [*record, "-o", str(data), "--"]))
        shown = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym,dso"],
            capture_output=True,
            text=True,
            check=False,
        )
        if shown.returncode:
            raise RsdError(f"perf script: {shown.stderr.strip()}", "install Debian's linux-perf")
    return Counter(_place(line, context.built.qemu.name) for line in shown.stdout.splitlines())


def _place(line: str, qemu: str) -> tuple[str, str]:
    """Of a sample: `7f0012345678 function+0x10 (/path/of/the/file)`."""
    where, _, file = line.strip().rpartition(" (")
    file = file.rstrip(")")
    function = where.split(None, 1)[-1]
    if file.startswith("[kernel"):
        return HOST_KERNEL, function
    if Path(file).name == qemu:
        return QEMU, function
    if ".so" in Path(file).name or file == "[vdso]":
        return LIBRARIES, function
    return TRANSLATED, ""


def system_calls(context: Context, run: Callable[[Context], object]) -> int:
    """How many one run makes, of all threads of QEMU. Raises RsdError without strace."""
    with context.cache.scratch("strace") as scratch:
        counts = scratch / "counts"
        tool = ["strace", "-f", "-qq", "-c", "-U", "calls", "-o", str(counts)]
        run(_under(context, scratch, tool))
        numbers = [line.split()[0] for line in counts.read_text().splitlines() if line.strip()]
    # The last is the sum of the others.
    return max(int(number) for number in numbers if number.isdecimal())


def _under(context: Context, scratch: Path, tool: list[str]) -> Context:
    """The context with a QEMU that is started by the tool."""
    if not shutil.which(tool[0]):
        raise RsdError(f"{tool[0]} is not installed", f"apt-get install {PACKAGES[tool[0]]}")
    wrapper = scratch / context.built.qemu.name
    command = shlex.join([*tool, str(context.built.qemu)])
    wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    wrapper.chmod(0o755)
    built = dataclasses.replace(context.built, qemu=wrapper)
    return dataclasses.replace(context, built=built)
