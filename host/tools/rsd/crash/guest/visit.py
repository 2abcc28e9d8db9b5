# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: visit.py PLAN. Visits the states of a plan, one after the other, without booting.

PLAN is a JSON file: `device`, `volume` (see state.Volume), `limit_s` of a check; `states` with id,
op, outcomes, names (that must hold) or steps (done and begun, of ace.py); `check`, a command, and
`ace`, what ace.run() gave with `works`, as ace.dump() writes its sequences, of which one may be
there at most.

Prints "@begin ID", and "@end ID {...}" with the verdict. What was read and written meanwhile is in
/out/commands/ID, lines of the kernel's trace. Ends with LEFT if a volume cannot be unmounted, so
that the drive cannot be rewound: the other states are for another guest.
"""

import json
import os
import sys
import time

import ace
from drive import Drive
from mounts import LIBC, call
from state import Failed, Volume, visit

LEFT = 9
TRACING = "/sys/kernel/tracing"
# NVMe's opcodes of writes and reads; the queue of admin commands has number 0
FILTER = "(opcode == 1 || opcode == 2) && qid != 0"
KEPT = ("(nvme_cmd_read ", "(nvme_cmd_write ")
BUFFER_KIB = 8192
# A volume is busy for a moment after a program in it was killed.
PATIENCE, PAUSE_S = 20, 0.1


class Commands:
    """The commands by which a drive is read and written, as the kernel's tracing has them."""

    def __init__(self) -> None:
        os.makedirs("/out/commands", exist_ok=True)
        if not os.path.exists(f"{TRACING}/trace"):
            call("mount", "-t", "tracefs", "none", TRACING)
        self._set("buffer_size_kb", str(BUFFER_KIB))
        self._set("events/nvme/nvme_setup_cmd/filter", FILTER)
        self._set("events/nvme/nvme_setup_cmd/enable", "1")

    def _set(self, name: str, value: str) -> None:
        with open(f"{TRACING}/{name}", "w") as stream:
            stream.write(value)

    def clear(self) -> None:
        with open(f"{TRACING}/trace", "w"):
            pass

    def keep(self, state: int) -> bool:
        """Whether all of them are there."""
        with open(f"{TRACING}/per_cpu/cpu0/stats") as stream:
            lost = [line for line in stream if line.startswith(("overrun:", "dropped"))]
        with open(f"{TRACING}/trace") as source, open(f"/out/commands/{state}", "w") as target:
            target.writelines(line for line in source if any(words in line for words in KEPT))
        return all(line.split(":")[1].strip() == "0" for line in lost)


class Check:
    """What is asked of a mounted volume."""

    def __init__(self, plan: dict[str, object]) -> None:
        self.limit_s = plan["limit_s"]
        self.command = plan["check"]
        self.built_in = plan["ace"]
        if built_in := self.built_in:
            self.works = ace.load(built_in["works"])
            self.trees = ace.trees(self.works, built_in["refused"])
            self.root = built_in["root"]

    def __call__(self, state: dict[str, object]) -> None:
        if self.command:
            os.chdir("/mnt")
            try:
                call(*self.command, *state["names"], limit_s=self.limit_s)
            finally:
                os.chdir("/")
        elif self.built_in:
            done, begun = state["steps"]
            ace.check(ace.Allowed(self.works, self.trees, done, begun), self.root)


def is_left() -> bool:
    """Whether a volume is still mounted, whatever is tried."""
    for _ in range(PATIENCE):
        if not os.path.ismount("/mnt") or not LIBC.umount2(b"/mnt", 0):
            return False
        time.sleep(PAUSE_S)
    return True


def main() -> None:
    with open(sys.argv[1]) as stream:
        plan = json.load(stream)
    drive = Drive(plan["device"])
    volume = Volume(**plan["volume"])
    check, commands = Check(plan), Commands()
    for state in plan["states"]:
        print(f"@begin {state['id']}", flush=True)
        commands.clear()
        verdict = {"passed": True}
        try:
            visit(
                drive,
                volume,
                state["op"],
                state["outcomes"],
                lambda state=state: check(state),
                limit_s=plan["limit_s"],
            )
        except Failed as error:
            verdict = {"passed": False, "stage": error.stage, "said": error.said}
        verdict["complete"] = commands.keep(state["id"])
        print(f"@end {state['id']} {json.dumps(verdict)}", flush=True)
        if is_left():
            sys.exit(LEFT)


main()
