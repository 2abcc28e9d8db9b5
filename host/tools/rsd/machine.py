"""A guest: QEMU's command line and one run from start to result.

    from rsd.machine import GuestJob, run_guest
    result = run_guest(GuestJob(system="rsd", script="fio ... > /out/fio.json"))

The guest's root, its inputs and its results are NVDIMMs, that is, memory: nothing that
the guest touches during a measurement waits for the host. guest/init describes the other
side.

A guest in virtual time does not boot: it goes on from a saved one (saved.py), which is made
when there is none yet for this QEMU, kernel, root, init, firmware and machine.
"""

import contextlib
import dataclasses
import enum
import os
import socket
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsd import artifacts, exchange, guesttools, image, properties, saved, systems
from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_inputs
from rsd.errors import RsdError, how_it_ended, no_room
from rsd.progress import Progress
from rsd.qmp import Monitor
from rsd.systems import comma

# One guest instruction takes 2^SHIFT ns: -2 is a machine of 4 instructions a nanosecond.
GUEST_SPEED_SHIFT = -2
GUEST_SPEED_RANGE = range(-4, 11)

# Controller options in real time: what stock has.
REAL_TIME = {"inline-queues": "off", "dbcs": "on"}

# KASAN keeps a byte for eight of what is mapped: of inputs and results, and of a root image that
# has up to 1 GiB.
SHADOW_MIB = (exchange.INPUTS_BYTES + exchange.RESULT_BYTES + (1 << 30)) // 8 >> 20

# The guest's watchdog fires this much after the virtual limit, for a guest that is too
# stuck to end its script by itself. It counts to 2046 s at most: init feeds it every
# WATCHDOG_ROUND_S when the limit is beyond that.
WATCHDOG_MARGIN_S = 60
WATCHDOG_ROUND_S = 1000

# The first program: find the inputs and where results go (NVDIMMs come in their own time
# and in no dependable order), unpack the inputs and start the init among them. Being here
# and not in the root image, it can change freely.
BOOT = (
    "mount -t devtmpfs dev /dev; "
    "until [ -b /dev/pmem0 -a -b /dev/pmem1 -a -b /dev/pmem2 ]; do sleep 0.05; done; "
    "for d in /dev/pmem[0-2]; do case $(head -c 10 $d | tr -d '\\0') in "
    "rsd-inputs) export inputs=$d;; rsd-result) export result=$d;; esac; done; "
    "mount -t tmpfs -o mode=755 run /run && mkdir /run/rsd && "
    "tar -xf $inputs -C /run/rsd && exec /run/rsd/init"
)

# What TCG executes. Its RDRAND gives numbers that -seed decides. Left out is what costs an emulated
# CPU more than a real one: a copy that goes on byte by byte (ERMS and its like: each byte is an
# instruction of the guest's clock, where a real CPU moves 32 or 64 bytes a cycle), a fifth level of
# page tables, and what guards the kernel's accesses to user memory at each of them.
TCG_CPU = "max,+rdrand,-rdseed,-erms,-fsrm,-fsrs,-fsrc,-fzrm,-la57,-smap,-pku"

POLL_S = 0.02

# A guest that is to end early, for the wall limit or a signal, has so long to leave its results. It
# is told again and again: one that still boots does not listen yet.
GRACE_S = 60
REPEAT_S = 1


class Outcome(enum.Enum):
    """How a run ended. Only EXITED has a status of the command's own."""

    EXITED = "exited"
    PANIC = "guest panic"
    HANG = "guest hang"
    VIRTUAL_TIMEOUT = "virtual time-out"
    WALL_TIMEOUT = "wall time-out"
    LOST = "guest ended without a result"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Beside:
    """A second drive of a guest, /dev/nvme1n1, of any system that has one.

    Its media file is kept; without one it is fresh and goes away with the run. `namespace`
    overrides properties of its namespace.
    """

    system: str
    media: Path | None = None
    namespace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GuestJob:
    """What to run in which guest.

    `script` is a POSIX shell script, run as root; it finds `inputs` (a directory, or a
    mapping of names to contents or files) in /in and leaves its results in /out. `media`
    is kept; without one, the drive is fresh and goes away with the run. Without `rfs` the guest
    has neither RFS's module nor its tools, and what it does cannot depend on them: they would lie
    in its memory. `controller` and
    `namespace` override properties of the system's devices; `beside` is a second drive, whose
    controller has the same ones. `out_dir` receives /out; by
    default a new temporary directory that the caller owns. Limits are in seconds; a virtual
    limit of 0 and a wall limit of None are none.

    In a `deterministic` guest an idle CPU's time passes at once; `waits` lets it pass in real time,
    for drives that do their work in it. Several `vcpus` take turns there; in real time they run at
    the same time on the host's. `cold` boots and saves a guest for this run alone. `machine_args`
    are more of QEMU's options that make the machine, as its CPU: a saved guest has them, too.
    `extra_qemu_args` are for this run's QEMU alone.
    """

    system: str
    script: str
    media: Path | None = None
    inputs: exchange.Inputs = None
    rfs: bool = True
    out_dir: Path | None = None
    deterministic: bool = True
    waits: bool = False
    cold: bool = False
    guest_speed: int = GUEST_SPEED_SHIFT
    accel: str = "tcg"
    kernel: str = "release"
    virtual_limit_s: int = 600
    wall_limit_s: float | None = 3600
    memory_mib: int = 1024
    vcpus: int = 1
    controller: Mapping[str, str] = field(default_factory=dict)
    namespace: Mapping[str, str] = field(default_factory=dict)
    beside: Beside | None = None
    machine_args: tuple[str, ...] = ()
    extra_qemu_args: tuple[str, ...] = ()

    @property
    def machine_mib(self) -> int:
        """The machine's memory. The debug kernel has as much left as the other, or never boots."""
        return self.memory_mib + (SHADOW_MIB if self.kernel == "debug" else 0)


@dataclass
class Stop:
    """Asks a run to end early and to leave its results. `heeded` while there is a guest to end."""

    asked: bool = False
    heeded: bool = False


@dataclass(frozen=True)
class GuestResult:
    """What a run gave. `status` is the script's exit status, None unless EXITED.

    `complete` says that /out was copied, which can be so of a run that was ended early, too.
    `output` is what the script printed, `console` what the kernel did. `virtual_s` is the
    guest's time from before to after the script; `qemu_cpu_s` QEMU's user and system time
    for the whole run, with the boot if this QEMU booted, and `qemu_switches` how often a thread
    of it went to sleep. `hashes` are SHA-256 of everything that decides the result. `warnings`
    are what QEMU said of properties at its end.
    """

    outcome: Outcome
    status: int | None
    out_dir: Path
    output: str
    console: str
    virtual_s: float | None
    wall_s: float
    qemu_cpu_s: float
    hashes: Mapping[str, str]
    qemu_command: tuple[str, ...]
    qemu_switches: int = 0
    complete: bool = True
    warnings: tuple[str, ...] = ()


class QemuFailed(RsdError):
    """QEMU itself ended badly: an option it refuses, or a crash. `status` as Popen has it."""

    def __init__(self, status: int, stderr: str, command: tuple[str, ...], hint: str = "") -> None:
        self.status = status
        self.stderr = stderr
        self.command = command
        lines = "".join(f"  | {line}\n" for line in stderr.splitlines()[-15:])
        super().__init__(
            f"QEMU {how_it_ended(status)}\n{lines}".rstrip(), properties.advice(stderr) or hint
        )


def run_guest(
    job: GuestJob,
    built: Artifacts | None = None,
    *,
    cache: Cache | None = None,
    on_output: Callable[[bytes], None] = lambda data: None,
    stop: Stop | None = None,
) -> GuestResult:
    """Start a guest, run the job's script in it, and wait for its end.

    `built` saves looking for QEMU and the image again; without it they are built if they
    are missing. `on_output` gets what the script prints, while it prints it. `stop` may be set from
    elsewhere, by a signal's handler; the outcome is INTERRUPTED then. Raises
    QemuFailed if QEMU fails, RsdError for a job that cannot run; every other end is in the
    result. QEMU is gone when this returns or raises.
    """
    cache = cache or Cache()
    built = built or artifacts.ensure(cache, Progress(), kernel=job.kernel)
    out_dir = job.out_dir or Path(tempfile.mkdtemp(prefix="rsd-out-"))
    with cache.scratch("guest") as scratch:
        media = _prepare(job, built, scratch, {"mode": "run"})
        begin = _saved_guest(job, built, cache, scratch)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            monitor = Monitor(ours)
            if begin is not None:
                saved.begin_from(begin, monitor)
            command = (
                *qemu_command(job, built, scratch, media, begin=begin),
                *("-chardev", f"file,id=console,path={comma(scratch)}/console"),
                *("-chardev", f"file,id=output,path={comma(scratch)}/output"),
                *("-serial", "chardev:console", "-serial", "chardev:output"),
                *("-chardev", f"socket,id=qmp,fd={theirs.fileno()}"),
                *("-mon", "chardev=qmp,mode=control"),
            )
            end = _attend(
                job, command, scratch, theirs.fileno(), monitor, on_output, stop or Stop()
            )
        console = _text(scratch / "console")
        if begin is not None:
            console = _text(begin / "console") + console
        raw = exchange.read_result(scratch / "result", out_dir)
        if raw is None and end.early is None and begin is not None:
            saved.check(begin)
        if raw is None and end.status != 0 and end.early is None:
            raise QemuFailed(end.status, _text(scratch / "stderr"), command, no_room(scratch))
        outcome = _judge(raw, end, monitor, console)
        return GuestResult(
            outcome=outcome,
            status=raw.status if raw and outcome is Outcome.EXITED else None,
            out_dir=out_dir,
            output=_text(scratch / "output"),
            console=console,
            virtual_s=raw.ended_s - raw.started_s if raw else None,
            wall_s=end.wall_s,
            qemu_cpu_s=end.cpu_s,
            hashes=built.deciding(rfs=job.rfs),
            qemu_command=command,
            qemu_switches=end.switches,
            complete=raw is not None,
            warnings=tuple(properties.warnings(_text(scratch / "stderr"))),
        )


def standalone(job: GuestJob, built: Artifacts, directory: Path, *, interactive: bool) -> list[str]:
    """QEMU's command line for a guest that boots by itself, with its files in `directory`.

    That exists. The first serial line is the terminal; the script's output goes to
    `directory`/output.
    """
    settings: dict[str, str | int] = {"mode": "run"}
    if interactive:
        settings = {"mode": "shell", "rows": 24, "columns": 80, "term": "vt100"}
    job = dataclasses.replace(job, media=job.media or directory / "media")
    media = _prepare(job, built, directory, settings)
    lines = ["-serial", "mon:stdio"]
    if not interactive:
        lines += ["-serial", f"file:{directory / 'output'}"]
    return [*qemu_command(job, built, directory, media, interactive=interactive), *lines]


def run_shell(
    job: GuestJob, built: Artifacts, *, cache: Cache, terminal: os.terminal_size
) -> Outcome:
    """An interactive guest on our terminal, until the user leaves it or a limit is reached.

    The job's script is not used; /out is unpacked into `job.out_dir`, if there is one. LOST
    is also what leaving with Ctrl-A X looks like.
    """
    with cache.scratch("shell") as scratch:
        settings = {
            "mode": "shell",
            "rows": terminal.lines or 24,
            "columns": terminal.columns or 80,
            "term": _safe_word(os.environ.get("TERM", "vt100")),
        }
        media = _prepare(job, built, scratch, settings)
        command = (
            *qemu_command(job, built, scratch, media, interactive=True),
            *("-chardev", "stdio,id=console,mux=on,signal=off"),
            *("-serial", "chardev:console", "-mon", "chardev=console,mode=readline"),
        )
        with (scratch / "stderr").open("wb") as stderr, _restored_terminal():
            # In our own process group: a background one may not configure the terminal.
            process = subprocess.Popen(_tied_to_us(command), stderr=stderr)
            try:
                status = process.wait(job.wall_limit_s)
            except subprocess.TimeoutExpired:
                return Outcome.WALL_TIMEOUT
            finally:
                _kill(process)
        if status != 0:
            raise QemuFailed(status, _text(scratch / "stderr"), command)
        raw = exchange.read_result(scratch / "result", job.out_dir or scratch / "out")
        if raw is None:
            return Outcome.LOST
        return Outcome.VIRTUAL_TIMEOUT if raw.outcome == "timed-out" else Outcome.EXITED


def qemu_command(
    job: GuestJob,
    built: Artifacts,
    scratch: Path,
    media: Path,
    *,
    begin: Path | None = None,
    interactive: bool = False,
) -> list[str]:
    """QEMU's options, consoles and monitor excepted. It goes on from the saved guest `begin`."""
    # Queues handled inside the doorbell make time exact, and cost the host more.
    controller = job.controller if job.deterministic else {**REAL_TIME, **job.controller}
    saved_guest = []
    if begin is not None:
        saved_guest = [
            *saved.memory(begin, job.machine_mib, saving=False),
            *("-device", saved.STOPPING_DEVICE, "-incoming", "defer"),
        ]
    return [
        str(built.qemu),
        *_machine(job, interactive=interactive),
        *_files(built, scratch),
        *saved_guest,
        *systems.qemu_arguments(job.system, media, controller, job.namespace),
        *_beside(job, scratch, controller),
        *job.extra_qemu_args,
    ]


def _beside(job: GuestJob, scratch: Path, controller: Mapping[str, str]) -> list[str]:
    """QEMU's options for the second drive, if there is one. Its raw file is made, if it has one."""
    if job.beside is None:
        return []
    media = job.beside.media or scratch / "second"
    systems.prepare_media(job.beside.system, media, "--second-media")
    return systems.qemu_arguments(
        job.beside.system, media, controller, job.beside.namespace, index=1
    )


def _machine(job: GuestJob, *, interactive: bool = False) -> list[str]:
    """The options that make the machine, and name no files."""
    if job.accel == "kvm":
        cpu = ["-accel", "kvm", "-cpu", "host"]
    else:
        thread = "multi" if job.vcpus > 1 and not job.deterministic else "single"
        cpu = ["-accel", f"tcg,thread={thread}", "-cpu", TCG_CPU]
    if job.deterministic:
        idle = "sleep=on" if job.waits else "sleep=off,inline-warp=on"
        clock = ["-icount", f"shift={job.guest_speed},{idle}"]
        clock += ["-rtc", "base=2026-01-01,clock=vm", "-seed", "42"]
    else:
        clock = ["-rtc", "base=utc"]
    return [
        *("-M", "q35,nvdimm=on", "-smp", str(job.vcpus), *cpu, *clock),
        *("-m", f"{job.machine_mib}M,slots=3,maxmem={job.machine_mib + 16384}M"),
        *("-nodefaults", "-no-user-config", "-vga", "none", "-display", "none", "-no-reboot"),
        *("-device", "i6300esb", "-action", "watchdog=poweroff"),
        *("-append", kernel_command_line(job, interactive=interactive)),
        *job.machine_args,
    ]


def _files(built: Artifacts, scratch: Path) -> list[str]:
    """The options that name the files that every machine has."""
    words = [word for directory in built.firmware for word in ("-L", str(directory))]
    words += ["-kernel", str(built.kernel)]
    for index, (name, writable) in enumerate(
        ((built.root, False), (scratch / "inputs", False), (scratch / "result", True))
    ):
        mode = "readonly=off" if writable else "readonly=on"
        unarmed = "off" if writable else "on"
        words += ["-object", f"memory-backend-file,id=mem{index},mem-path={comma(name)},share=on,"]
        words[-1] += f"size={name.stat().st_size},{mode}"
        words += ["-device", f"nvdimm,id=nv{index},memdev=mem{index},unarmed={unarmed}"]
    return words


def save_guest(job: GuestJob, built: Artifacts, directory: Path) -> None:
    """Boot the machine of this job, without its drive, and save it to `directory`, which exists."""
    savepoint = built.tools / guesttools.SAVEPOINT
    exchange.write_inputs(directory / "inputs", init=built.init, savepoint=savepoint)
    exchange.create_result(directory / "result")
    machine = [str(built.qemu), *_machine(job), *_files(built, directory)]
    saved.save([*machine, *saved.memory(directory, job.machine_mib, saving=True)], directory)
    (directory / "inputs").unlink()
    (directory / "result").unlink()


def saved_key(job: GuestJob, built: Artifacts) -> str:
    """What tells the saved guest of this job from others: all that its boot depends on."""
    parts = {name: built.hashes[name] for name in saved.DECIDING}
    sizes = [exchange.INPUTS_BYTES, exchange.RESULT_BYTES]
    return hash_inputs(parts, sizes, saved.STOPPING_DEVICE, saved.SUMS, _machine(job))


def _saved_guest(job: GuestJob, built: Artifacts, cache: Cache, scratch: Path) -> Path | None:
    """What the run goes on from. None: it boots by itself.

    Several vCPUs do not all stop at the instruction at which one stops the machine. In real time,
    no two guests would be the same, and the guest's date would be that of its boot.
    """
    if not job.deterministic or job.vcpus > 1:
        return None
    # Idle time passes otherwise there, but the machine is the same.
    job = dataclasses.replace(job, waits=False)
    if job.cold:
        directory = scratch / "saved"
        directory.mkdir()
        save_guest(job, built, directory)
        return directory

    def build(directory: Path) -> None:
        with Progress().step("guest: boot and save"):
            save_guest(job, built, directory)

    directory = cache.entry(saved.KIND, saved_key(job, built), build)
    saved.mark_used(cache, directory)
    return directory


def kernel_command_line(job: GuestJob, *, interactive: bool) -> str:
    """The guest kernel's parameters. An interactive console gets fewer messages."""
    words = [
        f"root={image.ROOT} rootfstype=erofs rootwait ro console=ttyS0",
        f"loglevel={3 if interactive else 5}",
        # A guest that found a bug in itself must not go on and give figures.
        "panic=-1 oops=panic softlockup_panic=1 sysctl.kernel.hung_task_panic=1",
        # The test for a working timer takes 100 ms, and fails on a busy host.
        "no_timer_check",
        # Otherwise the first getrandom() waits seconds for jitter that an exact CPU lacks.
        "random.trust_cpu=on",
        # guest/init opens it twice: to set its time, and for the whole run.
        "i6300esb.nowayout=0",
    ]
    if job.kernel == "debug":
        # KASAN finds what these checks of each object would, and more; they take a third more time.
        words.append("slub_debug=-")
    if job.deterministic:
        # No loops to find out how fast the CPU is: its TSC counts
        # nanoseconds, and the HPET needs no calibration.
        words.append("nokaslr tsc=reliable tsc_early_khz=1000000 nolapic_timer")
    return " ".join([*words, f'init=/bin/sh -- -c "{BOOT}"'])


@dataclass(frozen=True)
class _End:
    """How the QEMU process ended. `early` is why it was told to, if it was."""

    status: int
    early: Outcome | None
    wall_s: float
    cpu_s: float
    switches: int


def _prepare(
    job: GuestJob, built: Artifacts, scratch: Path, settings: Mapping[str, str | int]
) -> Path:
    """Write everything QEMU opens. Gives the media file."""
    media = job.media or scratch / "media"
    watchdog = min(job.virtual_limit_s, WATCHDOG_ROUND_S) + WATCHDOG_MARGIN_S
    systems.prepare_media(job.system, media)
    size = exchange.write_inputs(
        scratch / "inputs",
        init=built.init,
        tools=guesttools.programs(built.tools, rfs=job.rfs),
        modules=built.modules if job.rfs else None,
        config={"virtual_limit": job.virtual_limit_s, "watchdog": watchdog, **settings},
        script=job.script,
        inputs=job.inputs,
    )
    # The guest unpacks them into memory, of which a tmpfs takes half.
    needed_mib = size * 5 // 2 >> 20
    if job.inputs is not None and needed_mib > job.memory_mib:
        raise RsdError(
            f"the inputs need a guest with {needed_mib} MiB of memory, this one has"
            f" {job.memory_mib}",
            f"--memory {needed_mib}, or a smaller --in DIR",
        )
    exchange.create_result(scratch / "result")
    return media


def _attend(
    job: GuestJob,
    command: tuple[str, ...],
    scratch: Path,
    monitor_fd: int,
    monitor: Monitor,
    on_output: Callable[[bytes], None],
    stop: Stop,
) -> _End:
    """Run QEMU to its end. At the wall limit, or when `stop` is set, the guest is told to end."""
    started = time.monotonic()
    output_path = scratch / "output"
    output_path.touch()
    early: Outcome | None = None
    told = killed = float("inf")
    with (scratch / "stderr").open("wb") as stderr, output_path.open("rb") as output:
        process = subprocess.Popen(
            _tied_to_us(command),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            pass_fds=(monitor_fd,),
            process_group=0,
        )
        try:
            stop.heeded = True
            while True:
                # wait4 rather than poll: it is the only one that gives the CPU time of
                # this child alone.
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                monitor.poll()
                if data := output.read():
                    on_output(data)
                if pid:
                    break
                if monitor.errors:  # it cannot read what it is to go on from, and would wait
                    process.kill()
                now = time.monotonic()
                if early is None:
                    early = _ends_early(job, now - started, stop)
                    if early is not None:
                        killed, told = now + GRACE_S, now
                if now >= told:
                    monitor.execute("chardev-send-break", {"id": "output"})
                    told = now + REPEAT_S
                if now >= killed:
                    process.kill()
                time.sleep(POLL_S)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            stop.heeded = False
            _kill(process)
    return _End(
        process.returncode,
        early,
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_nvcsw,
    )


def _ends_early(job: GuestJob, wall_s: float, stop: Stop) -> Outcome | None:
    """Why a run is to end that has taken so long, if it is."""
    if stop.asked:
        return Outcome.INTERRUPTED
    if job.wall_limit_s is not None and wall_s > job.wall_limit_s:
        return Outcome.WALL_TIMEOUT
    return None


def _judge(raw: exchange.RawResult | None, end: _End, monitor: Monitor, console: str) -> Outcome:
    if raw is not None:
        if raw.outcome == "too-large":
            raise RsdError(
                f"the results in the guest's /out are larger than {exchange.RESULT_BYTES >> 20} MiB"
                " or could not be archived",
                "leave less in /out",
            )
        if raw.outcome == "cut-off":
            assert end.early is not None
            return end.early
        return Outcome.VIRTUAL_TIMEOUT if raw.outcome == "timed-out" else Outcome.EXITED
    if end.early is not None:
        return end.early
    # Softlockup and hung-task detectors end in a panic too, but what happened is a hang.
    if "Kernel panic - not syncing" in console:
        hung = ("softlockup: hung tasks", "hung_task: blocked tasks")
        return Outcome.HANG if any(words in console for words in hung) else Outcome.PANIC
    if "WATCHDOG" in monitor.events:
        return Outcome.HANG
    return Outcome.LOST


def _tied_to_us(command: tuple[str, ...]) -> list[str]:
    """The command, made to die with the thread that starts it."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _restored_terminal() -> Iterator[None]:
    """QEMU makes the terminal raw, and cannot undo that if it is killed."""
    saved = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)


def _safe_word(text: str) -> str:
    """`text` if a shell would take it literally: it ends up in guest/init's variables."""
    return text if all(c.isalnum() or c in "-_.+" for c in text) else "vt100"


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
