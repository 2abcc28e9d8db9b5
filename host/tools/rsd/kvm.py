"""Whether KVM works here. /dev/kvm can open and answer, and still not run a guest."""

from pathlib import Path

from rsd import machine
from rsd.artifacts import Artifacts
from rsd.cache import Cache, hash_inputs
from rsd.errors import RsdError
from rsd.machine import GuestJob, Outcome

PROBE_LIMIT_S = 10


def kvm_works(cache: Cache, built: Artifacts) -> bool:
    """Start a guest with KVM and see. The answer is remembered until the host reboots."""
    if not Path("/dev/kvm").exists():
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = cache.root / f"kvm-{hash_inputs(boot, dict(built.hashes))}"
    with cache.lock("kvm"):
        if not note.exists():
            for old in cache.root.glob("kvm-*"):
                old.unlink(missing_ok=True)
            note.write_text("yes" if _probe(cache, built) else "no")
        return note.read_text() == "yes"


def _probe(cache: Cache, built: Artifacts) -> bool:
    with cache.scratch("kvm-probe") as out:
        job = GuestJob(
            system="none",
            script="true",
            out_dir=out,
            deterministic=False,
            accel="kvm",
            wall_limit_s=PROBE_LIMIT_S,
        )
        try:
            result = machine.run_guest(job, built, cache=cache)
        except RsdError:
            return False
        return result.outcome is Outcome.EXITED and result.status == 0
