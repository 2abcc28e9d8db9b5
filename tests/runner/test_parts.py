# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of the runner that need neither QEMU nor a network."""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rsd import (
    artifacts,
    cli,
    exchange,
    first_run,
    guest_run,
    guesttools,
    kernel,
    machine,
    packages,
    properties,
    qemu,
    sim,
    systems,
    written,
)
from rsd import progress as progress_module
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.bench import base, command
from rsd.cache import Cache
from rsd.errors import RsdError, StepFailed
from rsd.progress import Progress
from rsd.steps import run_logged


def rsd(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, without a guest: set-up must not be reached."""
    return subprocess.run(
        [sys.executable, "-m", "rsd", *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools"), "RSD_CACHE": "/proc/no"},
        capture_output=True,
        text=True,
        check=False,
    )


COMMANDS = (
    "setup",
    "shell",
    "run",
    "compare",
    "crash",
    "top",
    "watch",
    "plot",
    "bench",
    "test",
    "image",
    "package",
    "cite",
    "artifact",
    "site",
    "clean",
)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers(one)


# It begins with a capital letter or the name of an option's value, and has a full stop.
SENTENCES = re.compile(r"([A-Z]|(export|fill|pack) ).*\.(\s*\([^()]*\)\.)?", re.S)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_sentences(command: str) -> None:
    """Each command's summary, and each option's help but argparse's own of --help."""
    checked = 0
    for parser in parsers(cli._parser([command])):
        for action in parser._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            if isinstance(action, argparse._SubParsersAction):
                helps = [one.help for one in action._choices_actions]
            else:
                helps = [action.help]
            for text in helps:
                assert text and SENTENCES.fullmatch(text), (action.dest, text)
                checked += 1
    assert checked > len(COMMANDS) - 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str) -> None:
    done = rsd(command, "--help")
    assert done.returncode == 0
    assert f"./rsd {command}" in done.stdout.split("example", 1)[1]


def test_options_of_pytest_need_no_word_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """`./rsd test -k media`, as the help has it."""
    commands: list[list[str]] = []
    monkeypatch.setattr(cli.packages, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(cli.artifacts, "ensure", lambda *_: None)
    monkeypatch.setattr(
        cli.subprocess,
        "run",
        lambda command, **_: commands.append(command) or subprocess.CompletedProcess(command, 0),
    )
    for words in (["-k", "media"], ["-x", "--durations=5", "tests/sim", "-q"], ["tests/sim", "-x"]):
        assert cli.main(["test", *words]) == 0
        assert commands[-1][-len(words) :] == words
    assert cli.main(["test", "--no-install", "-k", "media"]) == 0
    assert commands[-1][-2:] == ["-k", "media"] and "--no-install" not in commands[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["run"], "CMD"),
        (["run", "--virtual-limit", "0", "--", "true"], "must be 1 or more"),
        (["run", "--guest-speed", "-9", "--", "true"], "-9"),
        (["run", "--kernel", "fast", "--", "true"], "fast"),
        (["run", "--set", "ways", "--", "true"], "ways: must be PROPERTY=VALUE"),
        (["run", "--set", "media=x", "--", "true"], "--media names the file"),
        (["run", "--system", "none", "--set", "ways=2", "--", "true"], "none has no drive"),
        (["run", "--in", "/proc/no", "--", "true"], "--in /proc/no: not a directory"),
        (
            ["run", "--in", "/etc/passwd", "--", "true"],
            "but a file\n  try: name the directory that",
        ),
        (["run", "--sytem", "rsd", "--", "true"], "no option --sytem\n  try: --system"),
        (["run", "fio", "--version"], "try: put -- before the guest's command"),
        (["compare", "--qick"], "compare: there is no option --qick\n  try: --quick"),
        (["compare", "--system", "rfs", "--list"], "try: --system rfs+rsd or rfs-one-group+rsd"),
        (["compare", "--workload", "sqlite", "--list"], "try: --workload small-sqlite-delete or"),
        (["sim", "--system", "block-ftl"], "try: --preset risa --set ftl=block --set over-provis"),
        (["run", "--accel", "kvm", "--", "true"], "--accel kvm: virtual time needs tcg"),
        (["run", "--memory", "63", "--", "true"], "--memory 63: a guest needs 64 MiB"),
        (["image", "swap"], "swap"),
        (["run", "--fill", "0", "--", "true"], "0: must be above 0 and up to 100 percent"),
        (["run", "--precondition", "often", "--", "true"], "must be fill, steady or a number"),
        (["run", "--system", "stock", "--fill", "9", "--", "true"], "stock has no flash"),
        (["run", "--fill", "9", "--media", "/dev/null", "--", "true"], "/dev/null exists"),
        (["run", "--packages", "gcc,GCC", "--", "true"], "'GCC': is not the name of a Debian"),
        (["compare", "--benchmark", "/proc/no"], "--benchmark /proc/no: "),
    ],
)
def test_bad_usage_is_named(arguments: Sequence[str], message: str) -> None:
    done = rsd(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_system_is_named() -> None:
    with pytest.raises(RsdError, match="unknown system 'floppy'.*stock-zns"):
        systems.check_name("floppy")
    with pytest.raises(RsdError, match="try: --system page-ftl$"):
        systems.check_name("page")


def test_a_media_file_of_other_settings_says_what_to_set() -> None:
    said = (
        "x was made with other settings, which never change (pages: the file has 8, 128 was asked "
        "for; ftl: the file has page, rsd was asked for): ..."
    )
    assert properties.advice(said) == "--set pages=8 --set ftl=page"


def test_a_file_of_in_that_is_named_wrongly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch(mode=0o644)
    for name, status, said in (
        ("mine", 127, "try: /in/mine\n"),
        ("/in/mine", 126, f"try: chmod +x {tmp_path}/mine\n"),
        ("/in/other", 127, ""),
        ("mine", 1, ""),
    ):
        guest_run.note_inputs([name], status, tmp_path, Progress())
        assert capsys.readouterr().err.endswith(said) if said else not capsys.readouterr().err


@pytest.mark.parametrize("system", ["rsd", "stock"])
def test_a_media_file_that_is_a_link_to_nothing_is_named(tmp_path: Path, system: str) -> None:
    (tmp_path / "media").symlink_to("nowhere")
    with pytest.raises(RsdError, match="media: a link to nowhere, which does not exist"):
        systems.prepare_media(system, tmp_path / "media")


def test_a_comma_in_a_media_name_stays_in_it() -> None:
    arguments = systems.qemu_arguments("rsd", Path("/a,b=c"), {}, {"oob": "16"})
    assert any("media=/a,,b=c" in word and "oob=16" in word for word in arguments)


def test_a_new_file_of_the_device_is_looked_for_also_after_a_copy_that_failed(
    tmp_path: Path,
) -> None:
    device, copy = tmp_path / "device", tmp_path / "tree/src/hw/rsd-nvme"
    for directory in (device, copy):
        directory.mkdir(parents=True)
        (directory / "meson.build").touch()
        os.utime(directory / "meson.build", (0, 0))
    (device / "new.c").touch()
    with pytest.raises(RsdError, match="changed while it was copied"):
        qemu._sync_device(tmp_path / "tree", device, "what it was before")
    assert (copy / "new.c").exists()
    assert (copy / "meson.build").stat().st_mtime > 0


def test_a_second_drive_shares_nothing_with_the_first() -> None:
    first = systems.qemu_arguments("stock", Path("/a"), {}, {})
    second = systems.qemu_arguments("stock", Path("/b"), {}, {}, index=1)
    names = [
        set(re.findall(r"\b(?:id|bus|drive|serial|addr)=([\w]+)", " ".join(words)))
        for words in (first, second)
    ]
    assert names[0] == {"nvme0", "ns0", "media", "stock"}
    assert names[1] == {"nvme1", "ns1", "media1", "second1", "0x11"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--second-set", "ways=2"], "--second-set: there is no second drive"),
        (["--second-media", "x"], "--second-media: there is no second drive"),
        (["--second", "none"], "--second none: that is no drive"),
        (["--second", "floppy"], "unknown system 'floppy'"),
        (["--system", "none", "--second", "rsd"], "system none has no first drive"),
        (["--second", "rsd", "--media", "x", "--second-media", "./x"], "the first drive has it"),
        (["--second", "rsd", "--media", "x", "--second-media", "y/../x"], "the first drive has it"),
    ],
)
def test_second_drives_that_there_cannot_be(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *options, "--", "true"]) == 2
    assert message in capsys.readouterr().err


def test_a_disk_is_not_to_be_written_before(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--system", "barracuda-320", "--precondition", "fill", "--", "true"]
    assert cli.main(words) == 2
    assert "barracuda-320 is a disk" in capsys.readouterr().err
    words = ["run", "--system", "page-ftl", "--set", "ftl=disk", *words[3:]]
    assert cli.main(words) == 2
    assert "page-ftl with ftl=disk is a disk" in capsys.readouterr().err


def test_zones_have_no_steady_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--precondition", "steady", "--", "true"]) == 2
    assert "--precondition steady: rsd has zones; its host cleans" in capsys.readouterr().err
    words = ["run", "--system", "page-ftl", "--set", "ftl=rsd", "--precondition", "steady"]
    assert cli.main([*words, "--", "true"]) == 2
    assert "has zones" in capsys.readouterr().err


def test_a_copy_has_nothing_of_the_file_before(tmp_path: Path) -> None:
    source, target, kept = (tmp_path / name for name in ("a", "b", "b.sync"))
    source.write_bytes(b"new")
    kept.write_bytes(b"of another drive")
    written.copy_media(source, target)
    assert target.read_bytes() == b"new"
    assert not kept.exists()


def written_by(program: str, tmp_path: Path) -> Path:
    """What a shell script writes in rsdsim's place, to the file of --age."""
    path = tmp_path / "rsdsim"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    simulator = sim.Simulator(path, program)
    return written.make("writing", [], simulator, Cache(tmp_path / "cache"), Progress())


def test_writing_a_drive_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RSD_HEARTBEAT_S", "0.2")
    monkeypatch.setattr(written, "shrink_media", lambda _: None)
    media = written_by(
        """echo '{"a": 1}'; echo flash >$2
        echo "rsdsim: to steadiness  40% 12, 3 a second, 6 s left ($RSD_HEARTBEAT_S)" >&2; sleep 1
        echo "rsdsim: warning: steady but for static wear levelling" >&2""",
        tmp_path,
    )
    assert media.read_text() == "flash\n"
    assert (media.parent / written.AGING).read_text() == '{"a": 1}\n'
    warning = "warning: steady but for static wear levelling\n"
    assert (media.parent / written.WARNINGS).read_text() == warning
    said = capsys.readouterr().err
    assert re.search(
        r"writing: still running, \d s: to steadiness  40% .*6 s left \(0.05\)\n", said
    )


def test_a_drive_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    failing = "echo 'rsdsim: filling 1, 2 a second' >&2; echo 'rsdsim: no room' >&2; exit 1"
    with pytest.raises(RsdError) as raised:
        written_by(failing, tmp_path)
    assert str(raised.value) == "writing: rsdsim: no room"


def test_errors_have_no_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["image", "import", str(tmp_path / "none.tar")]) == 2
    errors = capsys.readouterr().err
    assert "none.tar: no such file" in errors
    assert "try:" in errors


def test_a_bench_that_fails_leaves_what_others_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(context: base.Context) -> list[base.Row]:
        raise RsdError("no luck")

    row = base.Row("speed", "1", "2", 2.0, "", "count", None)
    benches = {
        "one": base.Bench("good", lambda context: [row]),
        "two": base.Bench("bad", fail),
    }
    nothing = Artifacts(*[tmp_path] * 6, (), {})  # type: ignore[arg-type]
    monkeypatch.setattr(command, "BENCHES", benches)
    monkeypatch.setattr(packages, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(artifacts, "ensure", lambda *_, **__: nothing)
    monkeypatch.setenv("RSD_CACHE", str(tmp_path / "cache"))
    assert cli.main(["bench", "all", "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert "speed" in shown.out and "no luck" in shown.err
    assert [r["what"] for r in json.loads((tmp_path / "bench.json").read_text())["rows"]] == [
        "speed"
    ]


def test_a_failed_step_shows_its_end_its_log_and_a_hint(tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    with pytest.raises(StepFailed) as error, Progress().step("counting") as step:
        run_logged(["sh", "-c", "seq 100; exit 3"], step=step, log=log, hint="count less")
    text = str(error.value)
    assert "counting: failed with status 3" in text
    assert "| 100\n" in text
    assert "| 50\n" not in text
    assert f"whole log: {log}" in text
    assert "try: count less" in text
    assert "\n50\n" in log.read_text()


def test_a_step_that_prints_nothing_says_that_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the clock, while it runs, with the newest line of its output if there was one."""
    monkeypatch.setenv("RSD_HEARTBEAT_S", "0.05")
    progress = Progress()
    with progress.step("silent") as step:
        time.sleep(0.2)
        step.detail("compiled half")
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert "rsd: silent: still running, 0 s\n" in said
    assert "rsd: silent: still running, 0 s: compiled half\n" in said
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_set_up_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By the clock, in one line of all steps, without what a compiler prints."""
    monkeypatch.setenv("RSD_HEARTBEAT_S", "0.05")
    monkeypatch.setattr(progress_module, "TRUST_S", 0.001)
    progress = Progress()
    with progress.expect({"index": 10, "build": 60, "kernel": 130}):
        with progress.step("index"):
            pass
        with progress.step("build") as build, progress.step("kernel") as kernel_step:
            script = "echo '[1/3] cc a'; echo warning; sleep 0.3"
            kernel_step.counter = lambda: (60, 120)
            run_logged(["sh", "-c", script], step=build, log=tmp_path / "log", hint="")
        with progress.step("of something older"):
            time.sleep(0.2)
    said = capsys.readouterr().err
    # 10, a third of 60, half of 130: 95 of 200
    how_far = r"rsd: 1 of 3 steps done, 48% of the work, about \d+ s left"
    assert re.search(how_far + r"; build \(1 of 3\); kernel \(60 of 120\)\n", said), said
    assert "warning" not in said
    assert "rsd: of something older: still running, 0 s\n" in said
    assert re.search("3 of 3 steps done, 100% of the work, about 0 s left\n", said)
    assert [title for title, _, _ in progress.timings] == [
        "index",
        "kernel",
        "build",
        "of something older",
    ]
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_step_knows_the_processor_time_of_its_command(tmp_path: Path) -> None:
    """That of its children, too."""
    spend = "import time\nwhile time.process_time() < 0.3: pass"
    with Progress().step("spending") as step:
        command = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, spend]
        run_logged(command, step=step, log=tmp_path / "log", hint="")
    assert 0.3 <= step.cpu_s < 5


def test_an_imported_guest_asks_no_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """./rsd setup of it works without a network; --update asks all the same."""
    asked: list[bool] = []
    monkeypatch.setenv("RSD_CACHE", str(tmp_path))
    monkeypatch.setattr(packages, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(cli.image, "imported", lambda _: tmp_path)
    monkeypatch.setattr(cli.debian, "release", lambda *_, update: asked.append(update))
    nothing = Artifacts(*[tmp_path] * 6, (), {})  # type: ignore[arg-type]
    monkeypatch.setattr(artifacts, "ensure", lambda *_, **__: nothing)
    assert cli.main(["setup"]) == 0 and asked == []
    assert cli.main(["setup", "--update"]) == 0 and asked == [True]
    monkeypatch.setattr(cli.image, "imported", lambda _: None)
    assert cli.main(["setup"]) == 0 and asked == [True, False]


def test_steps_to_come_are_those_without_any_result(tmp_path: Path) -> None:
    results = tmp_path / "docs/results"
    results.mkdir(parents=True)
    steps = [{"step": title, "wall_s": 2, "cpu_s": 3} for title in first_run.STEPS]
    cache = Cache(tmp_path / "cache")
    assert first_run.to_come(tmp_path, cache) == {}
    (results / "setup-2026-01-01.json").write_text(json.dumps({"steps": steps}))
    assert first_run.to_come(tmp_path, cache) == dict.fromkeys(first_run.STEPS, 3)
    (cache.root / "release.json").touch()
    (cache.root / "qemu").mkdir()
    (cache.root / "kernel-release/key").mkdir(parents=True)
    left = set(first_run.STEPS) - {"Debian index", "guest kernel, release"}
    assert set(first_run.to_come(tmp_path, cache)) == left


def test_kernel_options_that_did_not_stick_are_found() -> None:
    fragment = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n# CONFIG_D is not set\n# text\n"
    config = "CONFIG_A=y\n# CONFIG_B is not set\n# CONFIG_C is not set\n"
    assert kernel.lost_options(fragment, config) == ["CONFIG_B=m"]
    assert kernel.lost_options(fragment, config + "CONFIG_D=y\n") == [
        "CONFIG_B=m",
        "# CONFIG_D is not set",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ID=debian\n", True), ('ID=mint\nID_LIKE="ubuntu debian"\n', True), ("ID=fedora\n", False)],
)
def test_debian_is_recognised(tmp_path: Path, text: str, expected: bool) -> None:
    release = tmp_path / "os-release"
    release.write_text(text)
    assert packages.is_debian(release) is expected


def test_no_install_lists_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = packages.Requirement("libnone-dev", "to build nothing", lambda: False)
    monkeypatch.setattr(packages, "REQUIREMENTS", (absent,))
    monkeypatch.setattr(packages, "is_debian", lambda: True)
    with pytest.raises(RsdError, match="libnone-dev +to build nothing") as error:
        packages.ensure(Progress(), install=False)
    assert "apt-get install" in error.value.hint
    monkeypatch.setattr(packages, "is_debian", lambda: False)
    with pytest.raises(RsdError, match="libnone-dev") as error:
        packages.ensure(Progress(), install=True)
    assert "apt-get" not in error.value.hint


def test_long_tests_have_packages_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are installed for --long on Debian, and nothing ends for want of them elsewhere."""
    absent = packages.Requirement("long-none", "for no test", lambda: False)
    monkeypatch.setattr(packages, "REQUIREMENTS", ())
    monkeypatch.setattr(packages, "UNPRIVILEGED", packages.Requirement("none", "", lambda: True))
    monkeypatch.setattr(packages, "LONG_TESTS", (absent,))
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(packages.subprocess, "run", run)
    monkeypatch.setattr(packages.shutil, "which", lambda name: name)
    monkeypatch.setattr(packages, "is_debian", lambda: False)
    packages.ensure(Progress(), install=True, long_tests=True)
    monkeypatch.setattr(packages, "is_debian", lambda: True)
    packages.ensure(Progress(), install=True)
    packages.ensure(Progress(), install=False, long_tests=True)
    assert not ran
    packages.ensure(Progress(), install=True, long_tests=True)
    assert ran[-1][-1] == "long-none" and "install" in ran[-1]


def test_equal_inputs_give_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "INPUTS_BYTES", exchange.NVDIMM_ALIGN)
    init = tmp_path / "init"
    init.write_text("#!/bin/sh\n")
    archives = []
    for name, names in (("one", "ab"), ("two", "ba")):
        inputs = tmp_path / name
        inputs.mkdir()
        for number, file in enumerate(names):
            (inputs / file).write_text(file)
            os.utime(inputs / file, (number, number))
        os.link(inputs / "a", inputs / "c")
        archive = tmp_path / f"{name}.tar"
        exchange.write_inputs(
            archive,
            init=init,
            tools=[],
            modules=None,
            config={"x": 1},
            script="true",
            inputs=inputs,
        )
        archives.append(archive.read_bytes())
    assert archives[0] == archives[1]
    assert len(archives[0]) == exchange.NVDIMM_ALIGN


def test_a_guest_without_rfs_has_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever RFS is, the same bytes go in and the same hashes decide; with it others do."""
    monkeypatch.setattr(exchange, "INPUTS_BYTES", exchange.NVDIMM_ALIGN)
    init, tools, modules = (tmp_path / name for name in ("init", "tools", "modules"))
    init.write_text("#!/bin/sh\n")
    tools.mkdir()
    modules.mkdir()
    for name in guesttools.C_TOOLS:
        (tools / name).write_text(name)
    images: dict[bool, list[bytes]] = {False: [], True: []}
    deciding: dict[bool, list[dict[str, str]]] = {False: [], True: []}
    for text in ("one", "another"):
        for path in (*(tools / name for name in guesttools.RFS_TOOLS), modules / "rfs.ko"):
            path.write_text(text)
        hashes = {"qemu": "12ab", **artifacts._tools_hashes(tools), "module": text}
        built = Artifacts(init, init, init, init, tools, modules, (), hashes)
        for rfs in images:
            scratch = tmp_path / f"{text}-{rfs}"
            scratch.mkdir()
            job = machine.GuestJob("none", "true", rfs=rfs)
            machine._prepare(job, built, scratch, {"mode": "run"})
            images[rfs].append((scratch / "inputs").read_bytes())
            deciding[rfs].append(built.deciding(rfs=rfs))
            with tarfile.open(scratch / "inputs") as tar:
                ours = [name for name in tar.getnames() if "rfs" in name]
                assert ("bin/zappend" in tar.getnames()) and bool(ours) == rfs, ours
    assert images[False][0] == images[False][1] and images[True][0] != images[True][1]
    assert deciding[False][0] == deciding[False][1] and "tools" in deciding[False][0]
    assert all(deciding[True][0][name] != deciding[True][1][name] for name in artifacts.RFS_HASHES)


@pytest.mark.parametrize(("deterministic", "thread"), [(True, "single"), (False, "multi")])
def test_processors_take_turns_in_virtual_time(deterministic: bool, thread: str) -> None:
    job = machine.GuestJob("rsd", "true", vcpus=2, deterministic=deterministic)
    words = machine._machine(job)
    assert words[words.index("-smp") + 1] == "2" and f"tcg,thread={thread}" in words


def test_a_result_cannot_leave_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the status of the command is not lost over it."""
    result = tmp_path / "result"
    with tarfile.open(tmp_path / "tar", "w") as tar:
        member = tarfile.TarInfo("../escaped")
        tar.addfile(member)
    header = b"rsd-result outcome=exited status=0 started=1.00 ended=2.50\n"
    result.write_bytes(header.ljust(4096, b"\0") + (tmp_path / "tar").read_bytes())
    (tmp_path / "out").mkdir()
    raw = exchange.read_result(result, tmp_path / "out")
    assert raw is not None
    assert raw.status == 0
    assert "../escaped" in capsys.readouterr().err
    assert not (tmp_path / "escaped").exists()


def test_a_guest_that_wrote_no_result_has_none(tmp_path: Path) -> None:
    exchange.create_result(tmp_path / "result")
    assert exchange.read_result(tmp_path / "result", tmp_path) is None


def test_inputs_must_fit_the_guests_memory(tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.write_text("#!/bin/sh\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    built = Artifacts(init, init, init, init, tools, tools, (), {})
    job = machine.GuestJob("none", "true", inputs={"big": bytes(200 << 20)}, memory_mib=499)
    with pytest.raises(RsdError, match="need a guest with 500 MiB"):
        machine.run_guest(job, built, cache=Cache(tmp_path / "cache"))
