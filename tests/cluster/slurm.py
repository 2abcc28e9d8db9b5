# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm cluster of one controller and two nodes on this machine, in a directory of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
NODES = ("n1", "n2")

DEFAULT = Path("/etc/slurm/slurm.conf")

# No accounting and no cgroups: what a test needs of Slurm is its queue, its nodes and its failures.
CONFIGURATION = """\
ClusterName=rsd
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.sock
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=5
MinJobAge=600
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=1 RealMemory=8000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs=1 RealMemory=8000
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """What of Slurm this machine has not. Debian's packages are slurmctld, slurmd, slurm-client
    and munge."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@dataclass
class Cluster:
    """`environment` is what Slurm's commands need."""

    directory: Path
    environment: dict[str, str]

    def states(self) -> dict[str, str]:
        """The state of each node, as sinfo has it."""
        out = self._run("sinfo", "-N", "-h", "-o", "%N %T")
        return dict(line.split() for line in out.splitlines())

    def jobs(self) -> dict[str, tuple[str, str]]:
        """State and node of each job in the queue."""
        out = self._run("squeue", "-h", "-t", "all", "-o", "%i|%T|%N")
        return {
            job: (state, node) for job, state, node in (line.split("|") for line in out.split())
        }

    def kill(self, node: str) -> None:
        """As a power cut: the node's daemon and whatever it started, without a word to anybody."""
        daemon = int((self.directory / f"slurmd-{node}.pid").read_text())
        for pid in [daemon, *self._started_by(node)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start(self, node: str) -> None:
        """The node's daemon, which forgets what ran when it was killed."""
        subprocess.run(["/usr/sbin/slurmd", "-c", "-N", node], env=self.environment, check=True)

    def _started_by(self, node: str) -> list[int]:
        """Processes of jobs on a node: all have its name in their environment."""
        wanted = f"SLURMD_NODENAME={node}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if wanted in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        steps = subprocess.run(
            ["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True
        )
        for line in steps.stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            if command.startswith("slurmstepd: [") and self._node_of(int(pid)) == node:
                found.append(int(pid))
        return found

    def _node_of(self, pid: int) -> str:
        """Of a slurmstepd, which has its node's spool directory open or as an argument."""
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(path)
                for node in NODES:
                    if target.startswith(str(self.directory / f"spool-{node}")):
                        return node
        return ""

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """A running cluster, whose nodes are idle. All of its processes end with it.

    Needs root, and a machine that has no Slurm of its own.
    """
    directory.chmod(0o755)
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (directory / name).mkdir()
    ports = [_free_port() for _ in range(3)]
    configuration = directory / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().split(".")[0],
            directory=directory,
            port=ports[0],
            port1=ports[1],
            port2=ports[2],
        )
    )
    key = directory / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    environment["PATH"] += ":/usr/sbin"
    munge = {
        "socket": "munge.sock",
        "key-file": "munge.key",
        "pid-file": "munged.pid",
        "log-file": "munged.log",
        "seed-file": "munged.seed",
    }
    one = Cluster(directory, environment)
    # The executor keeps Slurm's variables from its jobs, which look here.
    DEFAULT.parent.mkdir(exist_ok=True)
    DEFAULT.symlink_to(configuration)
    try:
        subprocess.run(
            [
                *("/usr/sbin/munged", "--force"),
                *(f"--{name}={directory / file}" for name, file in munge.items()),
            ],
            check=True,
        )
        subprocess.run(["/usr/sbin/slurmctld", "-c"], env=environment, check=True)
        for node in NODES:
            one.start(node)
        until = time.monotonic() + 60
        while set(one.states().values()) != {"idle"}:
            if time.monotonic() > until:
                raise TimeoutError(f"Slurm's nodes are {one.states()}: {directory}/slurmctld.log")
            time.sleep(0.5)
        yield one
    finally:
        DEFAULT.unlink()
        for node in NODES:
            with contextlib.suppress(OSError, ValueError):
                one.kill(node)
        for name in ("slurmctld.pid", "munged.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((directory / name).read_text()), signal.SIGTERM)
