# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell script that runs the cells of one system inside a guest.

It prints `@begin NAME` and `@end NAME STATUS` around each cell, and leaves in /out/NAME:
`main.json` (fio's, zappend's or, for "admin", several files), `command`, `errors`, and on our
drives `before.json` and `after.json`, the drive's counters.
"""

import shlex
from collections.abc import Sequence

from rsd.compare.cells import KIB, MIB, SYSTEMS, Cell, Prepare, Tool, Traits

BLOCK = "/dev/nvme0n1"
CHAR = "/dev/ng0n1"

# Long enough for every background erasure of a cell's preparation. Our guests skip idle
# time, so it costs nothing there; QEMU's own drives have nothing to finish.
REST_S = 2

PROLOGUE = f"""\
set -u
exec </dev/null
drive={BLOCK}
versions() {{
	uname -r
	fio --version
	nvme version | head -n 1
	zappend --version
}}
versions >/out/versions 2>&1

# A preparation that fails would make the figures meaningless.
must() {{
	"$@" >/tmp/prepare 2>&1 && return
	echo "@failed $*"
	cat /tmp/prepare
	exit 3
}}
empty_zones() {{ must blkzone reset "$drive"; sleep "$rest"; }}
empty_blocks() {{ must blkdiscard "$drive"; sleep "$rest"; }}
# fill MIB: write the start of the drive once, in order.
fill() {{
	must dd if=/dev/zero of="$drive" bs=1M count="$1" oflag=direct conv=fsync,notrunc
	sleep "$rest"
}}
counters() {{ must rsdctl show --json "$drive" && mv /tmp/prepare "$1"; }}
"""


def guest_script(system: str, cells: Sequence[Cell]) -> str:
    """The whole script. The order of the cells is part of the result."""
    traits = SYSTEMS[system]
    parts = [f"rest={REST_S if traits.ours else 0}\n", PROLOGUE]
    filled = 0
    for cell in cells:
        parts.append(f"\n# {cell.name}\necho '@begin {cell.name}'\nmkdir /out/{cell.name}\n")
        preparation, filled = _prepare(cell, traits, filled)
        parts.append(preparation)
        parts.append(_measure(cell, traits))
    return "".join(parts)


def command_line(cell: Cell, traits: Traits) -> list[str]:
    """The generator's command, without its output options."""
    if cell.family.tool is Tool.ZAPPEND:
        words = ["zappend", "--ios", str(cell.ios), "--qd", str(cell.depth)]
        words += ["--blocks", str(cell.block // (4 * KIB))]
        return [*words, *(["--oob"] if traits.oob else []), CHAR]
    words = ["fio", f"--name={cell.name}", f"--filename={BLOCK}", *cell.family.fio]
    if not traits.zoned:
        words = [word for word in words if not word.startswith("--max_open_zones")]
    words += [f"--bs={cell.block}", f"--iodepth={cell.depth}"]
    words += [] if traits.aged else [f"--size={cell.region}"]
    words += [f"--number_ios={cell.ios}", f"--io_size={cell.ios * cell.block}"]
    words += ["--ioengine=io_uring", "--direct=1", "--thread", "--randrepeat=1"]
    words += ["--percentile_list=50:90:99:99.9:99.99", "--eta=never"]
    return [*words, *(["--zonemode=zbd"] if traits.zoned else [])]


def _prepare(cell: Cell, traits: Traits, filled: int) -> tuple[str, int]:
    """Shell text, and how many bytes of the drive are filled after the cell has run."""
    if traits.aged:
        return 'sleep "$rest"\n', 0
    erase = "empty_zones\n" if traits.zoned else "empty_blocks\n"
    writes = "write" in cell.directions
    if cell.family.prepare is Prepare.EMPTY:
        return erase, 0
    text = "" if filled >= cell.region else f"{erase}fill {cell.region // MIB}\n"
    return text, 0 if writes else max(filled, cell.region)


def _measure(cell: Cell, traits: Traits) -> str:
    out = f"/out/{cell.name}"
    if cell.family.tool is Tool.NVME:
        return _admin(out, traits)
    command = command_line(cell, traits)
    if cell.family.tool is Tool.FIO:
        command += ["--output-format=json", f"--output={out}/main.json"]
    else:
        command += ["--output", f"{out}/main.json"]
    text = shlex.join(command)
    lines = [f"echo {shlex.quote(text)} >{out}/command"]
    if traits.ours:
        lines.append(f"counters {out}/before.json")
    lines += [f"{text} >{out}/errors 2>&1", "status=$?"]
    if traits.ours:
        lines.append(f"counters {out}/after.json")
    lines.append(f'echo "@end {cell.name} $status"')
    return "\n".join(lines) + "\n"


def _admin(out: str, traits: Traits) -> str:
    queries = {
        "id-ctrl.json": "nvme id-ctrl /dev/nvme0 -o json",
        "id-ns.json": f"nvme id-ns {BLOCK} -o json",
        "smart.json": "nvme smart-log /dev/nvme0 -o json",
    }
    if traits.zoned:
        queries["zns-id-ns.json"] = f"nvme zns id-ns {BLOCK} -o json"
        queries["zones.json"] = f"nvme zns report-zones {BLOCK} -o json"
    if traits.ours:
        queries["counters.bin"] = (
            f"nvme get-log {BLOCK} --namespace-id=1 --log-id=0xca --log-len=4096 --raw-binary"
        )
    lines = [f"cat >{out}/command <<'EOF'", *queries.values(), "EOF", "status=0"]
    for name, query in queries.items():
        lines.append(f"{query} >{out}/{name} 2>>{out}/errors || status=$?")
    lines.append(f'echo "@end {out.rsplit("/", 1)[1]} $status"')
    return "\n".join(lines) + "\n"
