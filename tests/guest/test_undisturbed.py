# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to QEMU from outside changes nothing in a guest in virtual time.

The guest keeps its drive busy. Meanwhile programs of it wait for timers of random lengths, the
controller is reset, the power of the drive is cut, and the guest reboots. The machine is stopped
and resumed by QMP, QEMU itself by signals, and everything it prints must still be the same
bytes as in a run that was left alone. A lost interrupt would show as a hang, as a timer that is
late, or as a message of the NVMe driver.
"""

import contextlib
import json
import os
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from programs import compiled
from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache
from rsd.machine import GuestJob, Outcome
from rsd.systems import SYSTEMS

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("timers.c")

OURS = [name for name, system in SYSTEMS.items() if system and not system.raw_media]

# What makes a million requests on all of them together
IOS = 6400
ROUNDS = 1_000_000 // (len(OURS) * IOS) + 1

# A round: writes, then reads with think times beside others without, while two programs wait for
# timers all the time and the controller is reset; every second round ends with a power cut.
ROUND = """
blkzone reset $dev 2>/dev/null || blkdiscard -f $dev || exit
/in/timers $round >/out/one.$round & one=$!
/in/timers $((round + 1000)) >/out/two.$round & two=$!
common="--filename=$dev --bs=4k --ioengine=io_uring --direct=1 --thread --eta=never
    --group_reporting --output-format=json --size=$((ios * 2048)) --randseed=$round"
fio --output=/out/write.$round $common --name=write --rw=write --iodepth=$depth || exit
fio --output=/out/read.$round $common --rw=randread \
    --name=busy --iodepth=16 --number_ios=$((ios / 4)) \
    --name=idle --iodepth=1 --thinktime=333 --number_ios=$((ios / 4)) & work=$!
sleep 0.00$((round % 9 + 1))
nvme reset /dev/nvme0 || exit
wait $work || exit
kill $one $two
wait $one || exit
wait $two || exit
test $((round % 2)) = 0 || rsdctl cut $dev || exit
"""

# The first block of the drive says that the guest has rebooted. What /out had then is gone; what it
# was, is in the output.
SCRIPT = """
dev=/dev/nvme0n1 ios={ios} depth=32
grep -q none /sys/block/nvme0n1/queue/zoned || depth=1
first=1 last={rounds}
if [ "$(dd if=$dev bs=4k count=1 iflag=direct 2>/dev/null | head -c 8)" = rebooted ]; then
    first=$(({reboot} + 1))
    echo "rebooted, to go on with round $first"
elif [ {reboot} -gt 0 ]; then
    last={reboot}
fi
for round in $(seq $first $last); do {round_}
done
if [ $last = {reboot} ]; then
    blkzone reset $dev 2>/dev/null || blkdiscard -f $dev || exit
    echo rebooted | dd of=$dev bs=4k conv=sync oflag=direct 2>/dev/null || exit
    cksum /out/*
    dmesg | cksum
    echo b >/proc/sysrq-trigger
    sleep 60
    exit 1
fi
rsdctl show --json $dev > /out/counters || exit
dmesg > /out/dmesg
"""


def stress(ios: int, rounds: int, reboot: int) -> str:
    """The guest's script. It reboots after `reboot` of its `rounds`, if that is not 0."""
    return SCRIPT.format(ios=ios, rounds=rounds, reboot=reboot, round_=ROUND)


class Disturber:
    """Stops and resumes a QEMU from outside, at moments of its own, until it ends."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path = path
        self._random = random.Random(seed)
        self._thread = threading.Thread(target=self._run)
        self.commands = 0
        self.signals = 0

    def __enter__(self) -> "Disturber":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _connect(self) -> socket.socket:
        while True:
            try:
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(self._path))
                return sock
            except OSError:
                time.sleep(0.01)

    def _run(self) -> None:
        try:
            with self._connect() as sock, sock.makefile("rw") as stream:
                for command in self._choose(_peer(sock)):
                    print(json.dumps({"execute": command}), file=stream, flush=True)
                    while "return" not in (reply := json.loads(stream.readline())):
                        assert "error" not in reply, reply
                    self.commands += 1
        except (OSError, ValueError):
            return  # QEMU has ended

    def _choose(self, pid: int) -> Iterator[str]:
        """QMP commands, with signals to the process in between."""
        yield "qmp_capabilities"
        while True:
            time.sleep(self._random.random() * 0.02)
            kind = self._random.randrange(4)
            if kind == 0:
                yield "stop"
                time.sleep(self._random.random() * 0.005)
                yield "cont"
            elif kind == 1:
                yield "query-status"
            elif kind == 2:
                yield "query-named-block-nodes"
            else:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self._random.random() * 0.01)
                os.kill(pid, signal.SIGCONT)
                self.signals += 1


def _peer(sock: socket.socket) -> int:
    """The process at the other end."""
    pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


@pytest.fixture
def play(built: Artifacts, rsd_cache: Cache, tmp_path: Path) -> Callable[..., dict[str, bytes]]:
    """play(system, ios, rounds, reboot, disturbed): everything that a guest printed, by name.

    `stress` explains the numbers.
    """
    timers = compiled(rsd_cache, SOURCE)

    def start(
        system: str, ios: int, rounds: int, reboot: int, *, disturbed: bool
    ) -> dict[str, bytes]:
        out = tmp_path / f"out-{disturbed}"
        monitor = tmp_path / "monitor"
        job = GuestJob(
            system=system,
            script=stress(ios, rounds, reboot),
            inputs={"timers": timers},
            out_dir=out,
            rfs=False,
            virtual_limit_s=7200,
            extra_qemu_args=(
                *("-qmp", f"unix:{monitor},server=on,wait=off"),
                *("-action", "reboot=reset"),
            ),
        )
        disturber = Disturber(monitor, ios) if disturbed else None
        with disturber or contextlib.nullcontext():
            result = machine.run_guest(job, built, cache=rsd_cache)
        assert result.outcome is Outcome.EXITED, result.console
        assert result.status == 0, result.output
        assert ("rebooted" in result.output) == (reboot > 0)
        if disturber:
            assert disturber.commands > 20
            assert disturber.signals > 3
        found = {path.name: path.read_bytes() for path in out.iterdir()}
        return found | {"output": result.output.encode(), "console": result.console.encode()}

    return start


@pytest.mark.parametrize(("system", "reboot"), [("rsd", 1), ("page-ftl", 0)])
def test_a_disturbed_run_prints_the_same(
    play: Callable[..., dict[str, bytes]], system: str, reboot: int
) -> None:
    alone = play(system, 1000, 2, reboot, disturbed=False)
    assert {"one.2", "two.2", "counters", "write.2", "read.2", "console"} <= set(alone)
    assert play(system, 1000, 2, reboot, disturbed=True) == alone


@pytest.mark.long
@pytest.mark.parametrize("system", OURS)
def test_a_million_requests(play: Callable[..., dict[str, bytes]], system: str) -> None:
    """Over all systems together."""
    alone = play(system, IOS, ROUNDS, ROUNDS // 2, disturbed=False)
    assert play(system, IOS, ROUNDS, ROUNDS // 2, disturbed=True) == alone
