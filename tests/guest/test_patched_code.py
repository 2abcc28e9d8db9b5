# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel changes its code under another vCPU's thread, which then executes the new code.

Trace points are switched on and off: with jump labels and static calls each switch writes INT3
into the scheduler's code, makes the CPUs synchronize, and takes it away again. A translated block
of what was there before would end in "Oops: int3". On a busy host this happened within a minute
or two, if QEMU waited for 100 us in every 64th insertion into its jump cache, before
qemu-patches/0025 and 0031 said what they say now; without such waits once in many runs.
"""

import pytest

from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome, run_guest

pytestmark = [pytest.mark.guest, pytest.mark.long]

SECONDS = 95

# Two processes wake each other all the time.
PING = f"""
import os, time
there, back = os.pipe(), os.pipe()
if not os.fork():
    while os.read(there[0], 1) != b"q":
        os.write(back[1], b"x")
    os._exit(0)
end = time.time() + {SECONDS}
while time.time() < end:
    os.write(there[1], b"y")
    os.read(back[0], 1)
os.write(there[1], b"q")
"""

SWITCH = f"""
import os, time
events = ("sched_switch", "sched_waking", "sched_wakeup")
files = [os.open(f"/sys/kernel/tracing/events/sched/{{one}}/enable", os.O_WRONLY) for one in events]
end, times = time.time() + {SECONDS}, 0
while time.time() < end:
    for value in (b"1", b"0"):
        for file in files:
            os.pwrite(file, value, 0)
    times += 1
print("switched", times)
"""


def test_trace_points_on_two_processors(built: Artifacts, rsd_cache: Cache) -> None:
    script = "mount -t tracefs t /sys/kernel/tracing || exit\npython3 /in/ping &\n"
    script += "python3 /in/switch || exit\nwait\n"
    inputs = {"ping": PING.encode(), "switch": SWITCH.encode()}
    job = GuestJob(
        "rsd", script, inputs=inputs, deterministic=False, vcpus=2, wall_limit_s=4 * SECONDS
    )
    result = run_guest(job, built, cache=rsd_cache)
    assert result.outcome is Outcome.EXITED, result.console[-4000:]
    assert result.status == 0, result.output
    assert int(result.output.split()[-1]) > 10
