# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects on volumes that nobody has mounted: calls, power cuts, the tools, the Python binding."""

import ctypes
import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from programs import fs_tools, oftl_programs
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache

HERE = Path(__file__).resolve().parent
OFTL = REPOSITORY / "host/tools/oftl"
MIB = 1 << 20


@pytest.fixture(scope="module")
def build(rsd_cache: Cache) -> Path:
    """Directory of the built programs."""
    return oftl_programs(rsd_cache)


@pytest.fixture
def image(rsd_cache: Cache, tmp_path: Path) -> Iterator[Path]:
    """A volume in an image of 48 MiB, which is sound in the end."""
    path = tmp_path / "volume"
    tools = fs_tools(rsd_cache)
    done = run(tools / "mkfs.rfs", "-q", "-c", "-I", "48x256", path)
    assert done.returncode == 0, done.stderr
    yield path
    done = run(tools / "fsck.rfs", "-n", path)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def run(*command: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end."""
    return subprocess.run(command, input=data, capture_output=True, timeout=600, check=False)


def cases() -> list[str]:
    """Every TEST(name) of test_calls.c."""
    return re.findall(r"^TEST\((\w+)\)", (HERE / "test_calls.c").read_text(), re.M)


@pytest.mark.parametrize("test", cases())
def test_calls(build: Path, test: str) -> None:
    done = run(build / "test_calls", test)
    assert done.returncode == 0, done.stderr.decode()


def test_every_test_is_found(build: Path) -> None:
    listed = run(build / "test_calls", "--list").stdout.decode()
    assert sorted(listed.split()) == sorted(cases())


@pytest.mark.parametrize(
    "options",
    [
        "seeds=8",
        "seeds=6 oob=0",
        "seeds=6 cache=1",
        "seeds=6 oob=0 cache=1 pieces=0",
        "seeds=6 pieces=0",
        "seeds=2 steps=30 most=1048576",
        "seeds=2 steps=40 most=1048576 cache=1 every=4",
    ],
)
def test_power_cuts(build: Path, options: str) -> None:
    """After each operation of the drive: no part of a write, and all that was flushed."""
    done = run(build / "cuts", *options.split())
    assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}"
    found = re.search(rb"(\d+) operations, (\d+) points, the largest write (\d+)", done.stdout)
    assert found
    operations, points, largest = map(int, found.groups())
    assert operations > 800 and points >= operations // 4
    assert largest == (MIB if "most" in options else 40000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_many_power_cuts(build: Path, seed: int) -> None:
    options = f"seed={1000 + seed} cache={seed % 2} oob={seed % 3 % 2 * 64} most=1048576 steps=60"
    done = run(build / "cuts", *options.split())
    assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}"


@pytest.mark.long
@pytest.mark.parametrize("drive", ["", "cache=1", "oob=0", "oob=0 cache=1"])
def test_every_operation_of_200_seeds(build: Path, drive: str) -> None:
    """After each operation of the drive no write is there in part: about a minute of CPU."""
    done = run(build / "cuts", "seed=1000", "seeds=200", *drive.split())
    assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}"
    found = re.match(rb"(\d+) operations, (\d+) points", done.stdout)
    assert found and found[1] == found[2]
    print(done.stdout.decode())


def test_power_cuts_sanitized(build: Path) -> None:
    done = run(build / "cuts_asan", "seed=50", "steps=80")
    assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}"


@pytest.mark.parametrize(
    "rule",
    ["txn=0", "flushes=0", "txn=0 oob=0", "flushes=0 cache=1"]
    # pieces without the pages of their write: a log that is written beside these is rarer
    + ["parts=0 seed=6", "parts=0 seed=10 oob=0", "parts=0 seed=100 cache=1"],
)
def test_what_is_left_out_is_missed(build: Path, rule: str) -> None:
    done = run(build / "cuts", *rule.split())
    assert done.returncode == 1, done.stdout.decode()
    assert re.match(rb"FAILED: seed \d+, after operation ", done.stdout)


@pytest.mark.parametrize("options", ["seeds=3", "seeds=3 cache=1"])
def test_power_cuts_of_the_key_value_store(build: Path, options: str) -> None:
    """Each bucket is as after one of its changes, no older than one that was synced."""
    done = run(build / "kv_cuts", *options.split())
    assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}"
    assert int(done.stdout.split()[0]) > 1000
    assert run(build / "kv_cuts", "txn=0").returncode == 1


def test_objtool(build: Path, image: Path, tmp_path: Path) -> None:
    """put, get, list, stat, delete: by standard input and output, and by files."""
    tool = build / "objtool"
    large = os.urandom(3 * MIB + 17)
    content = tmp_path / "content"
    content.write_bytes(large)
    assert run(tool, "list", image).stdout == b""
    for command in (
        run(tool, "put", image, "0x11", content),
        run(tool, "put", image, "3", data=b"three"),
        run(tool, "put", image, "0xffffffffffffffff"),
    ):
        assert (command.returncode, command.stderr) == (0, b"")
    assert run(tool, "list", image).stdout == b"0x3 5\n0x11 3145745\n0xffffffffffffffff 0\n"
    assert run(tool, "get", image, "3").stdout == b"three"
    assert run(tool, "get", image, "17", tmp_path / "got").returncode == 0
    assert (tmp_path / "got").read_bytes() == large
    # what it had before is no part of it
    assert run(tool, "put", image, "17", data=b"short").returncode == 0
    assert run(tool, "get", image, "17").stdout == b"short"
    said = run(tool, "stat", image, "17").stdout.decode()
    assert re.fullmatch(
        r"object 0x11\nsize 5\nused \d+\n(?:[mcb]time \d{4}-\d\d-\d\dT[\d:]+\.\d{9}Z\n){3}"
        r"user none\n",
        said,
    )
    assert b"it is the volume" in run(tool, "get", image, "17", image).stderr
    assert run(tool, "delete", image, "17").returncode == 0
    assert run(tool, "list", image).stdout == b"0x3 5\n0xffffffffffffffff 0\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("stat VOLUME 9", 1, "ogetattr of object 0x9: there is no such object; ocreate() makes"),
        ("get VOLUME 9", 1, "ogetattr of object 0x9: there is no such object"),
        ("get VOLUME 9 FILE", 1, "ogetattr of object 0x9: there is no such object"),
        ("put VOLUME 9 /tmp", 1, "/tmp: Is a directory"),
        ("delete VOLUME 9", 1, "odelete of object 0x9: there is no such object"),
        ("put VOLUME 9 /nowhere/file", 1, "/nowhere/file: No such file or directory"),
        ("list /nowhere/volume", 1, "/nowhere/volume: No such file or directory; mkfs.rfs -I"),
        ("list /tmp", 1, "/tmp: a directory of another file system; it must be where an RFS is"),
        ("list FILE", 1, "/file: neither a zoned block device nor an image; mkfs.rfs -I makes"),
        ("get VOLUME nine", 2, "object nine: must be a number from 0 to 0xffffffffffffffff"),
        ("get VOLUME -9", 2, "object -9: must be a number from 0"),
        ("get VOLUME", 2, "objtool: get: too few arguments\nusage: objtool list VOLUME"),
        ("list VOLUME 9", 2, "objtool: list: too many arguments\nusage: objtool list VOLUME"),
        ("gets VOLUME 9", 2, "objtool: gets: there is no such command\nusage: objtool list"),
    ],
)
def test_objtool_says_what_is_wrong(
    build: Path, image: Path, arguments: str, status: int, said: str
) -> None:
    other = image.parent / "file"
    other.write_bytes(bytes(8192))
    words = arguments.replace("VOLUME", str(image)).replace("FILE", str(other)).split()
    done = run(build / "objtool", *words)
    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr.decode()
    assert other.read_bytes() == bytes(8192)
    assert run(build / "objtool", "list", image).stdout == b""


def test_kvtool(build: Path, image: Path) -> None:
    tool = build / "kvtool"
    assert run(build / "objtool", "put", image, "17", data=b"another program's").returncode == 0
    assert run(tool, image, "put", "colour", "green").returncode == 0
    assert run(tool, image, "put", "shape", "round").returncode == 0
    assert run(tool, image, "put", "colour", "blue").returncode == 0
    assert run(tool, image, "get", "colour").stdout == b"blue\n"
    assert sorted(run(tool, image, "list").stdout.split(b"\n")) == [
        b"",
        b"colour blue",
        b"shape round",
    ]
    assert run(tool, image, "delete", "colour").returncode == 0
    done = run(tool, image, "get", "colour")
    assert (done.returncode, done.stderr) == (1, b"kvtool: there is no such key\n")
    done = run(tool, image, "take", "colour")
    assert b"take: must be put KEY VALUE, get KEY" in done.stderr


def test_what_the_library_exports(build: Path) -> None:
    """The functions of oftl.h, and nothing else: the core's names stay within."""
    header = (OFTL / "oftl.h").read_text()
    declared = set(re.findall(r"^[a-z_ ]*[ *](o[a-z_]+)\(", header, re.M))
    said = run("nm", "-D", "--defined-only", build / "liboftl.so.1").stdout.decode()
    assert set(re.findall(r" T (\w+)@@LIBOFTL_1$", said, re.M)) == declared
    assert len(declared) == 11


@pytest.fixture
def oftl(build: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The Python binding."""
    monkeypatch.setenv("OFTL_LIBRARY", str(build / "liboftl.so.1"))
    monkeypatch.syspath_prepend(OFTL / "python")
    monkeypatch.delitem(sys.modules, "oftl", raising=False)
    import oftl  # type: ignore[import-not-found]

    return oftl


def test_binding(oftl: ModuleType, image: Path) -> None:
    """Each call, on a volume that is opened again."""
    with oftl.Volume(image) as volume:
        assert list(volume) == []
        volume.create(17)
        volume.write(17, b"a\0b", offset=100)
        assert volume.read(17, 1000) == bytes(100) + b"a\0b"
        assert volume.read(17, 2, offset=101) == b"\0b"
        volume.setattr(17, mtime=-5, user=b"\0user")
        volume.flush(17)
    with oftl.Volume(str(image)) as volume:
        assert list(volume) == [17]
        got = volume.getattr(17)
        assert (got.size, got.used, got.mtime, got.user) == (103, 3 * 4096, -5, b"\0user")
        assert abs(got.btime - time.time_ns()) < 10**12
        volume.setattr(17, size=50, user=b"")
        assert (volume.getattr(17).size, volume.getattr(17).user) == (50, b"")
        volume.delete(17)
        assert list(volume) == []


def test_errors_of_the_binding(oftl: ModuleType, image: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere: No such file"):
        oftl.Volume("/nowhere")
    with oftl.Volume(image) as volume:
        volume.create(1)
        with pytest.raises(FileExistsError, match="ocreate of object 0x1: there is such an"):
            volume.create(1)
        with pytest.raises(FileNotFoundError, match="object 0x2: there is no such object"):
            volume.read(2, 10)
        with pytest.raises(OSError, match="1048577 bytes; 0 to 1048576 are one write") as caught:
            volume.write(1, bytes(MIB + 1))
        assert caught.value.errno == errno.EFBIG
        with pytest.raises(ValueError, match="object 18446744073709551616: must be from 0"):
            volume.read(1 << 64, 1)
        with pytest.raises(ValueError, match="257 bytes; 256 are the most"):
            volume.setattr(1, user=bytes(257))
        with pytest.raises(OSError, match="another process has the volume") as caught:
            oftl.Volume(image)
        assert caught.value.errno == errno.EBUSY
    with pytest.raises(ValueError, match="the volume is closed"):
        volume.read(1, 1)


def test_the_binding_has_the_headers_numbers(oftl: ModuleType, tmp_path: Path) -> None:
    """Sizes, offsets and limits of oftl.h, as the compiler has them."""
    fields = [name for name, *_ in oftl._Oattr._fields_]
    program = tmp_path / "layout.c"
    offsets = "".join(f'printf("%zu ", offsetof(struct oattr, {name}));' for name in fields)
    program.write_text(
        "#include <stdio.h>\n#include <oftl.h>\nint main(void) {"
        f'{offsets} printf("%zu %zu %llu %d %d %d %d", sizeof(struct oattr), OFTL_WRITE_MAX,'
        " (unsigned long long)OFTL_OBJECT_MAX, OFTL_USER_MAX, OATTR_SIZE, OATTR_MTIME,"
        " OATTR_USER); }"
    )
    subprocess.run(["cc", f"-I{OFTL}", "-o", tmp_path / "layout", program], check=True)
    said = list(map(int, run(tmp_path / "layout").stdout.split()))
    assert said == [
        *(getattr(oftl._Oattr, name).offset for name in fields),
        ctypes.sizeof(oftl._Oattr),
        *(oftl.WRITE_MAX, oftl.OBJECT_MAX, oftl.USER_MAX),
        *(oftl._SIZE, oftl._MTIME, oftl._USER),
    ]


OWNER = """
import sys, oftl
volume = oftl.Volume(sys.argv[1])
volume.create(5)
volume.write(5, b"flushed" * 1000)
volume.flush(5)
print("owned", flush=True)
sys.stdin.read()
"""


def test_two_processes(build: Path, image: Path, rsd_cache: Cache) -> None:
    """The second is told so; when the first is killed, it has what was flushed."""
    environment = {
        **os.environ,
        "OFTL_LIBRARY": str(build / "liboftl.so.1"),
        "PYTHONPATH": str(OFTL / "python"),
    }
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, image],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        try:
            assert owner.stdout and owner.stdout.readline() == b"owned\n"
            done = run(build / "objtool", "list", image)
            assert done.returncode == 1
            assert done.stderr.decode() == (
                f"objtool: {image}: Device or resource busy; another process has the volume, and"
                " must end or close it first\n"
            )
            # Nor may it be made anew or repaired; who only reads is warned.
            tools = fs_tools(rsd_cache)
            assert b"another process" in run(tools / "mkfs.rfs", "-f", image).stderr
            assert b"another process" in run(tools / "fsck.rfs", "-p", image).stderr
            assert b"otherwise in use" in run(tools / "fsck.rfs", "-n", image).stdout
        finally:
            owner.send_signal(signal.SIGKILL)
    assert run(build / "objtool", "list", image).stdout == b"0x5 7000\n"
    assert run(build / "objtool", "get", image, "5").stdout == b"flushed" * 1000


def test_the_commands_of_the_document(tmp_path: Path) -> None:
    """They build the programs, put and get an object, and link a program with the library."""
    blocks = re.findall(r"^```\n(.*?)^```$", (OFTL / "README.md").read_text(), re.M | re.S)
    said = []
    for block in blocks:
        script = block.replace("/tmp/", f"{tmp_path}/")
        done = subprocess.run(
            ["sh", "-ec", script], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0][-2:] == ["0x11 6", "hello"]
    assert said[1] == ["hello"]


def test_manual_pages() -> None:
    """They describe each function, constant, attribute and command."""
    header = (OFTL / "oftl.h").read_text()
    page = (OFTL / "liboftl.3").read_text().replace("\\-", "-")
    names = re.findall(r"\b(?:o[a-z]+|oftl_[a-z]+)(?=\()", header)
    names += re.findall(r"^#define (O(?:FTL|ATTR)_\w+)\t", header, re.M)
    names += re.findall(r"^ \* @(\w+): ", header, re.M)
    assert len(names) > 20
    missing = sorted({name for name in names if not re.search(rf"\b{name}\b", page)})
    assert not missing
    for error in ("ENOENT", "EEXIST", "EFBIG", "EBUSY", "ENOSPC", "EROFS", "EIO", "EUCLEAN"):
        assert f".B {error}\n" in page
    usage = (OFTL / "objtool.c").read_text()
    commands = re.findall(r"^\t\{ \"(\w+)\", \d, \d \},", usage, re.M)
    described = re.findall(r"^\.TP\n\.BI? (\w+)", (OFTL / "objtool.8").read_text(), re.M)
    assert commands == described
    assert commands == re.findall(r'^"  (\w+) +[A-Z][a-z]', usage, re.M)
