# SPDX-License-Identifier: GPL-2.0-or-later
"""The report: one HTML file without anything from outside."""

import html
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rsd.report import plots
from rsd.report.data import Results, label

METRICS = (
    ("IOPS", "iops"),
    ("MB/s", "bandwidth"),
    ("mean", "latency.mean"),
    ("p50", "latency.p50"),
    ("p99", "latency.p99"),
    ("p99.9", "latency.p99.9"),
    ("max", "latency.max"),
)
# Of a benchmark on a file system: title, metric, divisor. None: a latency of the last phase.
STACK_METRICS = (
    ("time, s", "run_time", 1),
    ("work a second", "throughput", 1),
    ("mean", "latency.mean", None),
    ("p50", "latency.p50", None),
    ("p99", "latency.p99", None),
    ("p99.9", "latency.p99.9", None),
    ("drive's reads, p99", "drive.read.latency.p99", 1),
    ("drive's writes, p99", "drive.write.latency.p99", 1),
    ("written by the file system, MB", "fs.written", 1e6),
    ("of what was asked", "fs.write_amplification", 1),
    ("NAND programs", "nand.programs", 1),
    ("drive's write amplification", "write_amplification", 1),
    ("erases", "nand.erases", 1),
    ("map, bytes", "map_bytes", 1),
)
NAND = (
    ("NAND reads", "nand.reads"),
    ("programs", "nand.programs"),
    ("erases", "nand.erases"),
    ("of them awaited", "nand.erases_on_demand"),
    ("write amplification", "write_amplification"),
    ("queue wait, us", "nand.queue_wait.mean"),
)
# What the tiles show, if it was measured: text, workloads (the first that exists), metric, unit.
TILES = (
    ("random read, 4 KiB, queue depth {depth}", "randread-4k-qd", "iops", "IOPS"),
    ("zone append, 4 KiB, queue depth {depth}", "append-4k-qd", "iops", "IOPS"),
    ("sequential read, 128 KiB, queue depth {depth}", "read-128k-qd", "bandwidth", "MB/s"),
)


# Tables that pictures refer to
LOADS, FLASH = "load-figures", "flash-figures"


def write(content: Mapping[str, Any], path: Path) -> None:
    """Write the report of one results.json. Equal content gives equal bytes."""
    results = Results(content)
    style = plots.style()
    body = "\n".join(_body(results))
    path.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>rsd compare</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(results: Results) -> Iterator[str]:
    yield from _head(results)
    yield _section(
        "Throughput",
        "Commands completed a second of virtual time. Both axes are logarithmic.",
        plots.depth_curves(results),
        LOADS,
    )
    yield _section(
        "Every workload",
        "Bytes moved a second of virtual time; each dot is one drive.",
        plots.throughput(results),
        LOADS,
    )
    yield _section(
        "Latency",
        "Completion latency as the guest saw it, in virtual time. QEMU's own drives have no "
        "model of one: what is shown is how long the host took to do the file I/O.",
        plots.latencies(results),
        LOADS,
    )
    yield _section(
        "What the flash did",
        "Counted by the drive, from before to after each workload. QEMU's own drives have no "
        "flash to count.",
        plots.nand_work(results),
        FLASH,
    )
    yield from _stacks(results)
    yield from _spread(results)
    yield from _tables(results)
    yield from _how(results)


def _head(results: Results) -> Iterator[str]:
    yield "<h1>Virtual SSDs, side by side</h1>"
    if results.systems:
        names = " and ".join(filter(None, [", ".join(results.systems[:-1]), results.systems[-1]]))
        yield (
            f'<p class="lead">{_text(names)}, measured by fio, nvme-cli and zappend inside a '
            f"booted guest: {len(results.workloads)} workloads of a fixed number of I/Os.</p>"
        )
    if results.stacks:
        yield (
            f'<p class="lead">{len(results.stacks)} file systems on drives, measured by '
            f"{len(results.benchmarks)} benchmarks of a fixed amount of work.</p>"
        )
    items = (
        f'<li><i class="swatch" style="background:var(--{name}, var(--ink))"></i><b>{name}</b>'
        f"<span>{_text(results.content['configuration']['systems'][name]['summary'])}</span></li>"
        for name in results.systems
    )
    yield f'<ul class="key">{"".join(items)}</ul>'
    tiles = [tile for name in results.systems for tile in _tiles(results, name)]
    if tiles:
        yield f'<div class="tiles">{"".join(tiles)}</div>'
    for failure in results.content["failures"]:
        yield (
            f'<p class="verdict bad">Failed: {_text(failure["system"])}, run {failure["run"]}, '
            f"{_text(failure['workload'])}: {_text(failure['why'])}</p>"
        )


def _tiles(results: Results, system: str) -> Iterator[str]:
    """Only of our drives: QEMU's own have no performance of their own to state."""
    if not any(results.value(system, name, "map_bytes") for name in results.workloads):
        return
    for text, start, metric, unit in TILES:
        cells = [name for name in results.workloads if name.startswith(start)]
        cells = [name for name in cells if results.value(system, name, metric) is not None]
        if not cells:
            continue
        best = max(cells, key=lambda name: results.workloads[name]["queue_depth"])
        depth = results.workloads[best]["queue_depth"]
        value = results.value(system, best, metric)
        yield (
            f'<div class="tile"><small><i class="swatch" style="background:'
            f'var(--{system}, var(--ink));display:inline-block"></i> '
            f"{system}</small><b>{_number(value)} {unit}</b>"
            f"<small>{text.format(depth=depth)}</small></div>"
        )


def _section(title: str, note: str, picture: str | None, table: str) -> str:
    """A picture, with a link to the table that has its figures."""
    if picture is None:
        return ""
    return (
        f'<section><h2>{title}</h2><p class="note">{note}</p><figure>{picture}'
        f'<figcaption><a href="#{table}">The same as a table</a></figcaption></figure></section>'
    )


def _stacks(results: Results) -> Iterator[str]:
    """File systems on drives: a picture a benchmark, and the figures."""
    if not results.benchmarks:
        return
    yield (
        "<section><h2>File systems</h2>"
        '<p class="note">Each benchmark starts on a copy of the aged volume of its stack: files '
        "filled 60% of the flash, were overwritten at random until twice its size was written, "
        "and most of them removed. Drives of one scale have the same flash. Time runs until "
        "everything is on the drive (sync). NAND operations by cause: "
    )
    for cause in plots.CAUSE_COLOURS:
        swatch = f"background:var(--cause-{cause});display:inline-block"
        yield f' <i class="swatch" style="{swatch}"></i> {cause}'
    yield ".</p>"
    for name, facts in results.benchmarks.items():
        if picture := plots.benchmark(results, name):
            yield (
                f'<h3>{name}</h3><p class="note">{_text(facts["title"])}. Drive: '
                f"{_text(facts['scale'])}; guest memory {facts['guest_memory_mib']} MiB.</p>"
                f"<figure>{picture}</figure>"
            )
    heads = "".join(f"<th>{title}</th>" for title, _, _ in STACK_METRICS)
    rows = []
    for name, facts in results.benchmarks.items():
        for at, stack in enumerate(results.measured_stacks(name)):
            cells = "".join(
                f"<td>{_number(_stack_value(results, stack, name, metric, divisor))}</td>"
                for _, metric, divisor in STACK_METRICS
            )
            label = f"{name}, {_text(facts['unit'])}" if at == 0 else ""
            rows.append(
                f'<tr class="{"" if at else "first"}"><td>{label}</td>'
                f'<td class="name">{stack}</td>{cells}</tr>'
            )
    yield _table(
        "Benchmarks (latencies: microseconds, of the last phase)",
        f'<th>benchmark</th><th class="name">stack</th>{heads}',
        rows,
    )
    yield "</section>"


def _stack_value(
    results: Results, stack: str, benchmark: str, metric: str, divisor: float | None
) -> float | None:
    phases = results.benchmarks[benchmark]["phases"]
    if divisor is None and len(phases) > 1:
        metric = f"{phases[-1]}.{metric}"
    value = results.value(stack, benchmark, metric)
    return None if value is None else value / (divisor or 1)


def _spread(results: Results) -> Iterator[str]:
    yield "<section><h2>The same run again</h2>"
    yield (
        '<p class="note">Every system was measured more than once, each time in a new guest on a '
        "new drive, on a guest CPU whose clock is its instruction counter. One mark is one run "
        "of one workload.</p>"
    )
    for system in (*results.systems, *results.stacks):
        repeat = results.content["repeatability"][system]
        runs = repeat["runs"]
        if repeat["identical"]:
            count = sum(
                record["system"] == system and record["clock"] != "wall"
                for record in results.content["records"]
            )
            yield (
                f'<p class="verdict"><b>{system}</b>: {runs} runs compared, all {count} virtual '
                "and count records identical. Spread 0.</p>"
            )
        elif repeat["differences"]:
            yield (
                f'<p class="verdict bad"><b>{system}</b>: {len(repeat["differences"])} records '
                f"differ between {runs} runs, the first: {_text(repeat['differences'][0])}</p>"
            )
        elif found := [abs(value) for value in results.deviations(system)]:
            yield (
                f"<p><b>{system}</b>: over {runs} runs, IOPS of the same workload lie up to "
                f"{max(found):.1f}% from the median run.</p>"
            )
    if picture := plots.spreads(results):
        yield f"<figure>{picture}</figure>"
        spans = [(system, results.deviations(system)) for system in results.systems]
        rows = [
            f"<tr><td>{system}</td><td>{len(found)}</td><td>{min(found):+.1f}</td>"
            f"<td>{max(found):+.1f}</td></tr>"
            for system, found in spans
            if found
        ]
        yield _table(
            "IOPS of single runs, against the median run of the same workload",
            "<th>system</th><th>runs</th><th>lowest, %</th><th>highest, %</th>",
            rows,
        )
    yield "</section>"


def _tables(results: Results) -> Iterator[str]:
    yield (
        "<section><h2>All figures</h2>"
        '<p class="note"><span class="tag">virtual</span> figures are in the guest\'s own time, '
        '<span class="tag">count</span> figures are counted, and neither depends on the host on '
        'rsd drives; <span class="tag">wall</span> is the time the host took. Latencies are '
        "microseconds. Of several runs, the median one.</p>"
    )
    heads = "".join(f"<th>{title}</th>" for title, _ in METRICS)
    rows = []
    for workload, prefix in results.loads():
        first = True
        for system in results.systems:
            if results.value(system, workload, f"{prefix}iops") is None:
                continue
            cells = "".join(
                f"<td>{_number(results.value(system, workload, prefix + metric))}</td>"
                for _, metric in METRICS
            )
            wall = _number(results.value(system, workload, "host.wall"))
            name = label(workload, prefix) if first else ""
            rows.append(
                f'<tr class="{"first" if first else ""}"><td>{name}</td>'
                f'<td class="name">{system}</td>{cells}<td>{wall}</td></tr>'
            )
            first = False
    yield _table(
        "Load figures (virtual; wall in the last column)",
        f'<th>workload</th><th class="name">system</th>{heads}<th>wall, s</th>',
        rows,
        LOADS,
    )
    rows = []
    for workload in results.workloads:
        for system in results.systems:
            if results.value(system, workload, "nand.programs") is None:
                continue
            cells = "".join(
                f"<td>{_number(results.value(system, workload, metric))}</td>" for _, metric in NAND
            )
            rows.append(f'<tr><td>{workload}</td><td class="name">{system}</td>{cells}</tr>')
    heads = "".join(f"<th>{title}</th>" for title, _ in NAND)
    if rows:
        yield _table(
            "Flash (count; queue wait virtual)",
            f'<th>workload</th><th class="name">system</th>{heads}',
            rows,
            FLASH,
        )
    admin = list(
        dict.fromkeys(
            record["metric"]
            for record in results.content["records"]
            if record["workload"] == "admin" and record["clock"] == "count"
        )
    )
    if admin:
        heads = "".join(f"<th>{system}</th>" for system in results.systems)
        rows = [
            f"<tr><td>{metric}</td>"
            + "".join(
                f"<td>{_number(results.value(system, 'admin', metric))}</td>"
                for system in results.systems
            )
            + "</tr>"
            for metric in admin
        ]
        yield _table(
            "Identify, zone report and logs, by nvme-cli (count)", f"<th></th>{heads}", rows
        )
    yield "</section>"


def _table(title: str, head: str, rows: list[str], name: str = "") -> str:
    """A table that is folded up; a link to `name` unfolds it."""
    anchor = f' id="{name}"' if name else ""
    return (
        f'<details><summary>{title}</summary><div class="scroll"{anchor}><table><tr>{head}</tr>'
        f"{''.join(rows)}</table></div></details>"
    )


def _how(results: Results) -> Iterator[str]:
    content = results.content
    configuration = content["configuration"]
    speed = configuration["guest_instructions_per_ns"]
    yield (
        "<section><h2>What was run, and how to repeat it</h2>"
        f"<p>The guest CPU executes {speed:g} instructions a nanosecond of virtual time, on "
        "TCG with one thread. On our drives idle time is skipped; on QEMU's own, which work in "
        "host time, it passes as on the host. Equal hashes give equal virtual and count records "
        "on the rsd drives, on any machine:</p>"
    )
    hashes = "".join(
        f'<tr><td>{_text(name)}</td><td class="name"><code>{_text(value)}</code></td></tr>'
        for name, value in content["hashes"].items()
    )
    versions = "".join(
        f'<tr><td>{_text(name)}</td><td class="name">{_text(value)}</td></tr>'
        for name, value in content["versions"].items()
    )
    yield f'<div class="scroll"><table>{hashes}{versions}</table></div>'
    if "command" in configuration:
        yield f"<p>This report was made by:</p><pre>{_text(configuration['command'])}</pre>"
    for name, stack in results.stacks.items():
        lines = "\n".join([stack["mkfs"], stack["mount"]])
        yield (
            f"<details><summary>{name}: {_text(stack['summary'])}</summary>"
            + "".join(f"<pre>{_text(shlex.join(words))}</pre>" for words in stack["qemu"])
            + f"<pre>{_text(lines)}</pre></details>"
        )
    for name, facts in results.benchmarks.items():
        lines = "\n".join([facts["setup"], facts["command"]])
        yield f"<details><summary>{name}</summary><pre>{_text(lines)}</pre></details>"
    for name in results.systems:
        system = configuration["systems"][name]
        commands = "\n".join(system["commands"].values())
        yield (
            f"<details><summary>{name}: QEMU and load generators</summary>"
            + "".join(f"<pre>{_text(shlex.join(words))}</pre>" for words in system["qemu"])
            + f"<pre>{_text(commands)}</pre></details>"
        )
    yield "</section>"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _number(value: float | None) -> str:
    if value is None:
        return "&ndash;"
    if value >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.4g}"
