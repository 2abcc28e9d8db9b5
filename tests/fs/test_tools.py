# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.rfs, fsck.rfs and dump.rfs on images."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from programs import RFS_TOOLS, fs_programs, fs_tools
from rsd.cache import Cache

UNIT = 4096 + 64 + 8
# Of a block's header, and the type of those of the node map
MAGIC, NODE_MAP = b"RFSB", 14
ZONES, ZONE_BLOCKS = 48, 256
PACKAGING = Path(__file__).resolve().parents[2] / "host/fs/packaging"


class Tools:
    """The programs and an image to use them on."""

    def __init__(self, build: Path, image: Path) -> None:
        self.build = build
        self.image = image

    def run(self, program: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.build / program, *args],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def mkfs(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run("mkfs.rfs", *args, self.image)

    def fsck(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run("fsck.rfs", *args, self.image)

    def dump(self, *args: str) -> str:
        done = self.run("dump.rfs", self.image, *args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def at(self, address: int) -> int:
        """Where a block is in the image file."""
        tables = 4096 + ZONES * 8
        return -(-tables // 4096) * 4096 + address * UNIT

    def wipe(self, zone: int) -> None:
        """An empty zone."""
        with self.image.open("r+b") as stream:
            stream.seek(4096 + zone * 8)
            stream.write(bytes(8))
            stream.seek(self.at(zone * ZONE_BLOCKS))
            stream.write(bytes(UNIT * ZONE_BLOCKS))

    def addresses(self, kind: int) -> list[int]:
        """Of all blocks whose headers say that they are of a type."""
        image = self.image.read_bytes()
        return [
            address
            for address in range(ZONES * ZONE_BLOCKS)
            if image.startswith(MAGIC, self.at(address)) and image[self.at(address) + 12] == kind
        ]

    def damage(self, address: int, offset: int = 100) -> None:
        """Change a byte of a block's content."""
        with self.image.open("r+b") as stream:
            stream.seek(self.at(address) + offset)
            byte = stream.read(1)[0]
            stream.seek(self.at(address) + offset)
            stream.write(bytes([byte ^ 0x55]))


@pytest.fixture(scope="module")
def build(rsd_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = fs_tools(rsd_cache)
    directory = tmp_path_factory.mktemp("tools")
    for name in RFS_TOOLS:
        (directory / f"{name}.rfs").symlink_to(built / f"{name}.rfs")
    (directory / "populate").symlink_to(fs_programs(rsd_cache) / "populate")
    return directory


@pytest.fixture
def tools(build: Path, tmp_path: Path) -> Tools:
    return Tools(build, tmp_path / "image")


@pytest.fixture(params=["64", "0"], ids=["oob", "summaries"])
def volume(tools: Tools, request: pytest.FixtureRequest) -> Tools:
    """An image with an empty volume."""
    done = tools.mkfs("-L", "a volume", "-m", request.param, "-I", f"{ZONES}x{ZONE_BLOCKS}x250")
    assert done.returncode == 0, done.stderr
    return tools


def test_made_and_checked(volume: Tools) -> None:
    assert volume.fsck().returncode == 0
    assert "label a volume\n" in volume.dump()
    assert "inode 2 generation 1 mode 40755 links 2" in volume.dump("inode", "2")


def test_mkfs_ways(tools: Tools) -> None:
    """Nothing reports them of an image, and without them the volume is as it always was."""
    for options, ways in (((), 1), (("-w", "1"), 1), (("--ways=4",), 4)):
        tools.image.unlink(missing_ok=True)
        done = tools.mkfs("-I", "99x256", *options)
        assert done.returncode == 0, done.stderr
        assert ("striped over 4 zones" in done.stdout) == (ways == 4)
        assert f"\nstriped over {ways} zones\n" in tools.run("dump.rfs", tools.image).stdout
        assert tools.fsck().returncode == 0


def test_mkfs_asks_before_it_overwrites(volume: Tools) -> None:
    before = volume.dump()
    done = volume.mkfs()
    assert done.returncode == 1
    assert 'holds an RFS labelled "a volume"; -f overwrites it' in done.stderr
    assert volume.dump() == before
    assert volume.mkfs("-f").returncode == 0
    assert volume.dump() != before


def test_mkfs_size(volume: Tools) -> None:
    for size, zones in (("40M", 40), ("41999999", 40), (str(48 << 20), 48)):
        done = volume.run("mkfs.rfs", "-f", volume.image, size)
        assert done.returncode == 0, done.stderr
        assert f"zones {zones} of 256 blocks" in volume.dump()
        assert volume.fsck().returncode == 0
    for size in ("49M", "0", "1K", "x", "5Q", "99999999999999999999"):
        done = volume.run("mkfs.rfs", "-f", volume.image, size)
        assert done.returncode == 1
        assert f"size {size}: must be from one zone, 1048576 bytes, to the device" in done.stderr
    before = volume.dump()
    done = volume.run("mkfs.rfs", "-f", volume.image, "8M")
    assert done.returncode == 1
    assert volume.dump() == before  # what is refused leaves the volume as it was
    assert volume.fsck().returncode == 0
    assert re.search(r"8 zones of 250 blocks; \d+ are the least: 3 for check-points", done.stderr)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-I", "x"], "-I x: must be ZONESxBLOCKS"),
        (["-I", "48x256x257"], "must be ZONESxBLOCKS"),
        (["-I", "7x4096"], "7 zones of 4096 blocks; 8 are the least"),
        (["-I", "8x256"], "8 zones of 256 blocks; 9 are the least"),
        (["-I", "99x7"], "zones of 7 blocks"),
        (["-I", "13x64"], "13 zones of 64 blocks; 14 are the least"),
        (["-I", "27x32x24"], "27 zones of 24 blocks; 28 are the least"),
        (["-w", "7", "-I", "27x32x24"], "27 zones of 24 blocks; 28 are the least"),
        (
            ["-w", "7", "-I", "35x32x24"],
            "has 35 zones of 24 blocks, and 37 are the least for that; -w 5 is the most for these",
        ),
        (["-U", "12"], "must be 32 hexadecimal digits"),
        (["-L", "x" * 65], "65 bytes; 64 are the most"),
        (["-m", "16"], "-m 16: must be 0 or 64"),
        (["-w", "0"], "-w 0: must be from 1"),
        (["--ways=65"], "-w 65: must be from 1, where nothing is striped, to 64"),
        (["-w", "4x"], "-w 4x: must be from 1"),
        (["-w", "4", "-m", "0", "-I", "99x256"], "without which zones are not striped over"),
        ([], "No such file"),
    ],
)
def test_mkfs_refuses(tools: Tools, args: list[str], message: str) -> None:
    done = tools.mkfs(*args)
    assert done.returncode == 1
    assert message in done.stderr
    assert not tools.image.exists()


def test_mkfs_of_8_zones(tools: Tools) -> None:
    done = tools.mkfs("-I", "8x4096")
    assert done.returncode == 0, done.stderr
    assert "zones 8 of 4096 blocks" in tools.dump()
    assert tools.fsck().returncode == 0


@pytest.fixture
def hybrid(tools: Tools, tmp_path: Path) -> Tools:
    """A hybrid volume with files that flash has, or the slow device, or both."""
    slow = tmp_path / "slow"
    with slow.open("wb") as stream:
        stream.truncate(80 << 20)
    done = tools.mkfs("-I", "48x64", "--slow", str(slow))
    assert done.returncode == 0, done.stderr
    assert "79 MiB of files on the slow device" in done.stdout
    done = tools.run("populate", tools.image, "clean", slow)
    assert done.returncode == 0, done.stderr
    return tools


def test_hybrid(hybrid: Tools) -> None:
    """fsck.rfs and dump.rfs know both devices, and say what they lack."""
    slow = str(hybrid.image.parent / "slow")
    done = hybrid.fsck("-v", "--slow", slow)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "70 files, 2 directories" in done.stdout
    found = re.search(r"slow device: (\d+) blocks of files, (\d+) of 20475 in use", done.stdout)
    assert found
    assert found[1] == found[2]
    done = hybrid.run("dump.rfs", "--slow", slow, hybrid.image)
    assert done.returncode == 0, done.stderr
    states = re.search(r"(\d+) free, (\d+) have what flash has, too, (\d+) alone", done.stdout)
    assert states
    both, alone = int(states[2]), int(states[3])
    assert both > 20
    assert alone > 20
    assert both + alone == int(found[1])

    # where blocks are: on flash, at home, or both
    kinds = dict.fromkeys(("flash", "home", "both"), 0)
    for ino in range(4, 84):
        done = hybrid.run("dump.rfs", "--slow", slow, hybrid.image, "map", str(ino))
        lines = done.stdout.splitlines()
        assert done.returncode or lines[0] == "block address bytes writes seconds home"
        for line in lines[1:]:
            fields = line.split()
            kinds["flash" if len(fields) == 5 else "both" if int(fields[1]) else "home"] += 1
    assert kinds["home"] == alone
    assert kinds["both"] == both
    assert sum(kinds.values()) == 210

    for program in ("fsck.rfs", "dump.rfs"):
        done = hybrid.run(program, hybrid.image)
        assert "--slow DEV must name it" in done.stderr
        done = hybrid.run(program, "--slow", f"{slow}-not", hybrid.image)
        assert "No such file" in done.stderr
    done = hybrid.run("dump.rfs", "--slow", "none", hybrid.image)
    assert done.returncode == 0
    assert "it is not there" in done.stdout
    done = hybrid.fsck("--slow", "none")
    assert done.returncode == 8
    assert "can only be read" in done.stderr
    short = Path(f"{slow}-short")
    short.write_bytes(Path(slow).read_bytes()[:-8192])
    for program in ("fsck.rfs", "dump.rfs"):
        done = hybrid.run(program, "--slow", str(short), hybrid.image)
        assert done.returncode == (8 if program == "fsck.rfs" else 1)
        said = rf"--slow {short}: (\d+) blocks; that of the volume on {hybrid.image} has (\d+):"
        sizes = re.search(said, done.stderr)
        assert sizes and int(sizes[1]) == int(sizes[2]) - 2, done.stderr
    for given in (["--slow", slow], []):
        done = hybrid.fsck("--rescan", *given)
        assert done.returncode == 8
        assert "a hybrid volume" in done.stderr

    done = hybrid.run("mkfs.rfs", "-I", "48x64", "--slow", slow, f"{hybrid.image}-2")
    assert done.returncode == 1
    assert "has data; -f overwrites it" in done.stderr
    done = hybrid.run("mkfs.rfs", "-I", "480x64", "--slow", slow, f"{hybrid.image}-2")
    assert done.returncode == 1
    done = hybrid.run("mkfs.rfs", "-f", "-I", "480x64", "--slow", slow, f"{hybrid.image}-2")
    assert done.returncode == 1
    assert "they must have room for 30720 of files" in done.stderr
    assert not Path(f"{hybrid.image}-2").exists()


def test_flash_is_lost(tools: Tools, tmp_path: Path) -> None:
    """fsck.rfs --replica says what the slow device has, and makes the volume on a new drive."""
    slow = str(tmp_path / "slow")
    with Path(slow).open("wb") as stream:
        stream.truncate(80 << 20)
    done = tools.mkfs("-I", "48x64", "--slow", slow)
    assert done.returncode == 0, done.stderr
    done = tools.fsck("--replica", "--slow", slow)
    assert done.returncode == 8
    assert "it has no replica of the metadata" in done.stderr
    tools.image.unlink()
    done = tools.mkfs("-f", "-I", "48x64", "--slow", slow, "--replica")
    assert done.returncode == 0, done.stderr
    assert "77 MiB of files on the slow device" in done.stdout
    done = tools.run("populate", tools.image, "clean", slow)
    assert done.returncode == 0, done.stderr
    was = tools.run("dump.rfs", "--slow", slow, tools.image)
    replica = re.search(r"replica of the metadata of check-point (\d+)", was.stdout)
    assert replica, was.stdout
    assert f"check-point {replica[1]} in zones" in was.stdout

    # the same file as an empty drive
    new = tools.image.parent / "new"
    new.write_bytes(tools.image.read_bytes()[:4096])
    os.truncate(new, tools.image.stat().st_size)
    lost = re.compile(r"(\S+): bytes (\d+) to (\d+) are lost")
    done = tools.run("fsck.rfs", "--replica", "--slow", slow, new)
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"replica of check-point {replica[1]}, of 20" in done.stdout
    assert not any(new.read_bytes()[4096:])
    kinds = dict.fromkeys(("flash", "slow"), 0)
    for ino in range(4, 84):
        done_map = tools.run("dump.rfs", "--slow", slow, tools.image, "map", str(ino))
        for line in done_map.stdout.splitlines()[1:]:
            kinds["flash" if len(line.split()) == 5 else "slow"] += 1
    assert kinds["slow"] > 40
    spans = [(int(at), int(to) + 1) for _, at, to in lost.findall(done.stdout)]
    blocks = sum(-((at - to) // 4096) for at, to in spans)
    assert all(to <= 2 * 4096 + 1000 for _, to in spans)
    assert blocks == kinds["flash"] > 0
    names = {name for name, _, _ in lost.findall(done.stdout)}
    assert names <= {f"/d/file-{i}" for i in range(80) if i >= 40 or i % 4}
    summary = f"{70 - len(names)} files are whole, {len(names)} have lost {blocks} blocks"
    assert summary in done.stdout

    done = tools.run("fsck.rfs", "--replica", "--slow", slow, "-y", tools.image)
    assert done.returncode == 8
    assert "it has data; reset all of its zones" in done.stderr
    done = tools.run("fsck.rfs", "--replica", "--slow", slow, "-y", new)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{new}: made anew" in done.stdout
    done = tools.run("fsck.rfs", "-v", "--slow", slow, new)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "70 files, 2 directories" in done.stdout
    assert f"slow device: {kinds['slow']} blocks of files, {kinds['slow']} of" in done.stdout
    done = tools.run("fsck.rfs", "--replica", "--slow", slow, new)
    assert done.returncode == 0, done.stdout
    assert "70 files are whole, 0 have lost 0 blocks" in done.stdout
    for ino in range(4, 84):
        for line in tools.run("dump.rfs", "--slow", slow, new, "map", str(ino)).stdout.splitlines()[
            1:
        ]:
            assert line.split()[1] == "0"

    done = tools.fsck("--replica")
    assert done.returncode == 16
    assert "give --slow DEV" in done.stderr
    done = tools.mkfs("-f", "--replica")
    assert done.returncode == 1
    assert "give --slow DEV, too" in done.stderr
    done = tools.run("fsck.rfs", "--replica", "--slow", new, new)
    assert "no slow device of an RFS" in done.stderr


def test_hybrid_is_repaired(hybrid: Tools) -> None:
    """A block at home that is damaged on flash stays; the table of states is made anew."""
    slow = str(hybrid.image.parent / "slow")
    ino = next(
        ino
        for ino in range(4, 84)
        if re.search(
            r"^0 [1-9]\d* 4096 1 \d+ \d+$",
            hybrid.run("dump.rfs", "--slow", slow, hybrid.image, "map", str(ino)).stdout,
            re.M,
        )
    )
    done = hybrid.run("dump.rfs", "--slow", slow, hybrid.image, "map", str(ino))
    address = int(done.stdout.splitlines()[1].split()[1])
    with hybrid.image.open("r+b") as stream:
        stream.seek(hybrid.at(address) + 4096)  # its page metadata
        stream.write(bytes(64))
    done = hybrid.fsck("--slow", slow)
    assert done.returncode == 4, done.stdout
    assert "not what is at address" in done.stdout
    done = hybrid.fsck("-p", "--slow", slow)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"inode {ino}: block 0 is on one device alone" in done.stdout
    done = hybrid.fsck("--slow", slow)
    assert done.returncode == 0, done.stdout


def test_damaged_states_are_repaired(hybrid: Tools) -> None:
    """The copy of the table of states that a check-point was written with is damaged."""
    slow = hybrid.image.parent / "slow"
    # the newer copy of the first block: its number of a check-point is the higher one
    with slow.open("r+b") as stream:
        stamps = []
        for copy in (1, 2):
            stream.seek(copy * 4096 + 32)
            stamps.append(int.from_bytes(stream.read(8), "little"))
        assert min(stamps) > 0
        stream.seek((1 + (stamps[1] > stamps[0])) * 4096 + 1000)
        stream.write(b"damaged")
    done = hybrid.run("dump.rfs", "--slow", slow, hybrid.image)
    assert done.returncode == 0, done.stderr
    assert "its table of states is damaged" in done.stdout
    done = hybrid.fsck("--slow", str(slow))
    assert done.returncode == 4, done.stdout
    assert "table of states: a block is damaged" in done.stdout
    done = hybrid.fsck("-p", "--slow", str(slow))
    assert done.returncode == 1, done.stdout + done.stderr
    done = hybrid.fsck("--slow", str(slow))
    assert done.returncode == 0, done.stdout
    done = hybrid.run("dump.rfs", "--slow", slow, hybrid.image)
    assert "damaged" not in done.stdout


def test_not_a_volume(tools: Tools) -> None:
    tools.image.write_bytes(b"nothing")
    for program, status in (("mkfs.rfs", 1), ("fsck.rfs", 8), ("dump.rfs", 1)):
        done = tools.run(program, tools.image)
        assert done.returncode == status
        assert "neither a zoned block device nor an image" in done.stderr
    assert tools.run("fsck.rfs").returncode == 16
    assert tools.run("fsck.rfs", "-Z", tools.image).returncode == 16


def test_fsck_recovers(volume: Tools) -> None:
    assert volume.run("populate", volume.image).returncode == 0
    image = volume.image.read_bytes()
    done = volume.fsck()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "to be recovered at the next mount" in done.stdout
    assert volume.image.read_bytes() == image
    assert len(volume.dump("dir", "3").splitlines()) == 30
    done = volume.fsck("-p")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "recovered" in done.stdout
    done = volume.fsck("-v")
    assert done.returncode == 0
    assert "30 files, 2 directories" in done.stdout
    assert len(volume.dump("dir", "3").splitlines()) == 30


def test_dump_of_a_leaf(volume: Tools) -> None:
    """One that is runs is nowhere, which is not address 0."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    assert "\nleaves that are runs 2\n" in volume.dump()
    found = re.search(r"^(\d+) .* file-39$", volume.dump("dir", "3"), re.M)
    assert found
    assert re.search(r"^below node \d+, which is runs$", volume.dump("inode", found[1]), re.M)
    lines = volume.dump("map", found[1]).splitlines()[1:]
    assert [int(line.split()[0]) for line in lines] == [0, 1, 2, 252, 253, 254]


def test_fsck_says_how_far_it_is(volume: Tools) -> None:
    """Each pass to its end, as a line of four words, or on the terminal."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    for options, passes in (((), [2]), (("--rescan",), [1, 2])):
        said = volume.image.with_name("said")
        with said.open("w") as stream:
            where = stream.fileno()
            arguments = [volume.build / "fsck.rfs", "-C", str(where), *options, volume.image]
            done = subprocess.run(arguments, pass_fds=[where], capture_output=True, check=False)
        lines = [line.split() for line in said.read_text().splitlines()]
        assert done.returncode == (4 if options else 0)
        assert {line[3] for line in lines} == {str(volume.image)}
        for number in passes:
            steps = [(int(line[1]), int(line[2])) for line in lines if line[0] == str(number)]
            assert steps == sorted(set(steps))
            assert 10 < len(steps) <= 1001
            assert steps[-1][0] == steps[-1][1]
        assert {line[0] for line in lines} == {str(number) for number in passes}
    done = volume.fsck("-C", "0")
    assert f"{volume.image}: check 100.0%\n" in done.stdout


def test_fsck_progress_to_nobody(volume: Tools) -> None:
    """What is no descriptor is refused before one of that number is the image's."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    image = volume.image.read_bytes()
    for where in ("x", "", "-1", "3", "4", "99", "4294967296", "99999999999999999999"):
        done = volume.fsck("-y", "-C", where)
        assert done.returncode == 16
        assert f"-C {where}: must be 0" in done.stderr
    reader, writer = os.pipe()
    arguments = [str(volume.build / "fsck.rfs"), "-y", "--rescan", "-C"]
    done = subprocess.run(
        [*arguments, str(reader), volume.image], pass_fds=[reader], capture_output=True, check=False
    )
    assert done.returncode == 16
    assert volume.image.read_bytes() == image
    # who has read it is gone
    os.close(reader)
    done = subprocess.run(
        [*arguments, str(writer), volume.image], pass_fds=[writer], capture_output=True, check=False
    )
    os.close(writer)
    assert done.returncode == 1
    assert volume.fsck().returncode == 0


def test_fsck_finds(volume: Tools) -> None:
    """Damage to each kind of block a check-point leads to."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    assert volume.fsck().returncode == 0
    image = volume.image.read_bytes()
    inode = volume.dump("inode", "3")
    assert volume.dump("xattr", "3") == 'user.text "words"\ntrusted.bytes 00ff\n'
    targets = {int(at) for at in re.findall(r"(?:below|xattr) node \d+ at (\d+)", inode)}
    assert len(targets) == 2
    ino = volume.dump("dir", "3").split()[0]
    if "page metadata 64" in volume.dump():
        targets.add(int(volume.dump("map", ino).splitlines()[1].split()[1]))
        for line in volume.dump("zones").splitlines()[1:]:
            zone, _, stream, _, _, live = line.split()[:6]
            if stream in ("meta", "imap") and live != "0":
                blocks = volume.dump("blocks", zone).splitlines()[1:]
                newest = {entry.split()[1]: entry.split()[0] for entry in blocks}
                wanted = newest.keys() & {"inodes", "imap", "nmap", "timb", "ztab"}
                targets |= {int(zone) * ZONE_BLOCKS + int(newest[kind]) for kind in wanted}
        assert len(targets) == 8
    for target in targets:
        volume.image.write_bytes(image)
        volume.damage(target)
        done = volume.fsck()
        assert done.returncode == 4, f"block {target}: {done.stdout}{done.stderr}"


def test_fsck_rescan(volume: Tools) -> None:
    """Check-points, superblocks and label are gone; what was written since is there too."""
    assert volume.run("populate", volume.image).returncode == 0
    names = volume.dump("dir", "3")
    uuid = volume.dump().splitlines()[0]
    for zone in range(3):
        volume.wipe(zone)
    image = volume.image.read_bytes()
    done = volume.fsck("-y")
    assert done.returncode == 8
    assert "--rescan can do without" in done.stdout
    done = volume.fsck("--rescan")
    assert done.returncode == 4, done.stdout + done.stderr
    assert volume.image.read_bytes() == image
    done = volume.fsck("--rescan", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the superblock is lost" in done.stdout
    assert volume.fsck("-v").returncode == 0
    assert volume.dump("dir", "3") == names
    assert len(names.splitlines()) == 30
    assert volume.dump().splitlines()[:2] == [uuid, "label "]


def test_fsck_rescan_without_node_map(volume: Tools) -> None:
    """Blocks of files whose leaves were runs are found by their pages, which fsck says."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    assert "\nleaves that are runs 2\n" in volume.dump()
    names = volume.dump("dir", "3")
    maps = volume.addresses(NODE_MAP)
    assert maps
    for address in maps:
        volume.damage(address)
    assert volume.fsck().returncode in (4, 8)
    done = volume.fsck("--rescan", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 leaves of the index were made of the metadata of pages" in done.stdout
    assert "; 0 of the files lost a block or do not have as many as they had" in done.stdout
    told = re.findall(r"^rescan: inode (\d+): its blocks are those of", done.stdout, re.M)
    found = re.search(r"^(\d+) .* file-39$", names, re.M)
    assert found
    assert told == [found[1]]
    assert volume.fsck("-v").returncode == 0
    assert "\nleaves that are runs 2\n" in volume.dump()
    assert volume.dump("dir", "3") == names


def test_fsck_repairs(volume: Tools) -> None:
    """A directory's block is gone: its names are dropped, its files found again."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    below = re.search(r"below node \d+ at (\d+)", volume.dump("inode", "3"))
    assert below
    volume.damage(int(below[1]))
    image = volume.image.read_bytes()
    assert volume.fsck().returncode == 4
    done = volume.fsck("-p")
    assert done.returncode == 4
    assert "repairs take something away: -y makes them" in done.stderr
    assert volume.image.read_bytes() == image
    done = volume.fsck("-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert volume.fsck().returncode == 0
    ino = re.search(r"^(\d+) 4 lost.found$", volume.dump("dir", "2"), re.M)
    assert ino
    lost = volume.dump("dir", ino[1]).splitlines()
    assert len(lost) == 30
    assert "size 9192 " in volume.dump("inode", lost[0].split()[0])


def test_fsck_repairs_bytes(volume: Tools) -> None:
    """A byte of a file was changed: its block is dropped, the file's other ones stay."""
    if "page metadata 64" not in volume.dump():
        return  # without it there are no checksums of data
    assert volume.run("populate", volume.image, "clean").returncode == 0
    ino = volume.dump("dir", "3").split()[0]
    before = volume.dump("map", ino).splitlines()[1:]
    volume.damage(int(before[0].split()[1]))
    assert volume.fsck().returncode == 4
    assert "1 repairs take something away" in volume.fsck("-p").stderr
    done = volume.fsck("-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"inode {ino}: block 0 is not at address" in done.stdout
    assert volume.fsck().returncode == 0
    assert volume.dump("map", ino).splitlines()[1:] == before[1:]


# A process begins with the maximum of who started it, which is this one's: so a small one does.
MAX_RSS = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def test_fsck_memory(tools: Tools) -> None:
    """1 TB: memory goes with the inodes in use, not with those there may be."""
    done = tools.run("mkfs.rfs", "-I", "65536x4096", tools.image)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", MAX_RSS, tools.build / "fsck.rfs", tools.image]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 200 << 10, "KiB, with sanitizers"


def test_dump_pointers(volume: Tools) -> None:
    """What an inode points to is where its blocks are."""
    assert volume.run("populate", volume.image, "clean").returncode == 0
    # The order of names differs in each volume, and some files have an index node.
    inodes = [line.split()[0] for line in volume.dump("dir", "3").splitlines()]
    ino = next(ino for ino in inodes if "blocks 3 height 0" in volume.dump("inode", ino))
    blocks = [line.split()[1] for line in volume.dump("map", ino).splitlines()[1:]]
    pointers = re.search(r"height 0 .*\n(?:.*\n)*?blocks (.*)", volume.dump("inode", ino))
    assert pointers
    assert len(blocks) == 3
    assert pointers[1].split() == [*blocks, "0", "0", "0", "0"]


# What of libblkid its probe for RFS uses; the device is three superblocks, each in a zone of 4 KiB.
BLKID = {
    "superblocks.h": """
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { uint64_t zone_size; } *blkid_probe;
struct blkid_idmag { const char *magic; int len, is_zoned, zonenum, kboff_inzone; };
struct blkid_idinfo { const char *name; int usage;
    int (*probefunc)(blkid_probe, const struct blkid_idmag *); struct blkid_idmag magics[4]; };
#define BLKID_USAGE_FILESYSTEM 1
#define le32_to_cpu(x) (x)
#define le64_to_cpu(x) (x)
extern unsigned char blocks[3 * 4096];
#define blkid_probe_get_buffer(pr, off, size) (&blocks[off])
#define blkid_probe_set_label(pr, s, n) printf("label %.*s\\n", (int)(n), (const char *)(s))
#define blkid_probe_set_uuid(pr, u) \\
    do { for (int i = 0; i < 16; i++) printf("%02x", (u)[i]); puts(""); } while (0)
#define blkid_probe_sprintf_version(pr, f, v) printf("version " f "\\n", v)
#define blkid_probe_set_fsblocksize(pr, n) (void)(n)
#define blkid_probe_set_block_size(pr, n) (void)(n)
#define blkid_probe_set_fssize(pr, n) printf("size %llu\\n", (unsigned long long)(n))
""",
    "crc32c.h": """
static uint32_t crc32c(uint32_t crc, const void *buf, size_t size)
{
    const unsigned char *byte = buf;
    while (size--) {
        crc ^= *byte++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return crc;
}
""",
    "main.c": """
#include "rfs.c"
unsigned char blocks[3 * 4096];
int main(int argc, char **argv)
{
    blkid_probe pr = malloc(sizeof(*pr));
    pr->zone_size = argc > 1 ? 4096 : 0;
    return fread(blocks, sizeof(blocks), 1, stdin) == 1 ? rfs_idinfo.probefunc(pr, NULL) : 2;
}
""",
}


def test_libblkid_probe(tools: Tools, tmp_path: Path) -> None:
    """The probe of the patch for util-linux finds a volume by its newest valid superblock."""
    patch = (PACKAGING / "libblkid-add-RFS.patch").read_text()
    added = patch.split("+++ b/libblkid/src/superblocks/rfs.c\n")[1].split("\ndiff ")[0]
    source = "\n".join(line[1:] for line in added.splitlines()[1:])
    for name, text in {**BLKID, "rfs.c": source}.items():
        (tmp_path / name).write_text(text)
    command = ["cc", "-Wall", "-o", tmp_path / "probe", tmp_path / "main.c"]
    subprocess.run(command, check=True, timeout=600)

    def probe(*supers: bytes, zoned: bool = True) -> tuple[int, list[str]]:
        command = [tmp_path / "probe", *(["zoned"] if zoned else [])]
        done = subprocess.run(command, input=b"".join(supers), capture_output=True, check=False)
        return done.returncode, done.stdout.decode().splitlines()

    made = []
    for label in ("older", "newer"):
        assert tools.mkfs("-f", "-L", label, "-I", f"{ZONES}x{ZONE_BLOCKS}").returncode == 0
        image = tools.image.read_bytes()
        made.append(image[tools.at(0) : tools.at(0) + 4096])
        uuid = tools.dump().splitlines()[0].split()[1].replace("-", "")
        tools.image.unlink()
    none = bytes(4096)
    size = f"size {ZONES * ZONE_BLOCKS * 4096}"
    want = ["label newer", uuid, "version 2", size]
    older, newer = made
    assert probe(newer, none, none) == (0, want)
    assert probe(older, newer, none) == (0, want)
    assert probe(newer, none, older) == (0, want)
    torn = bytes([*newer[:100], newer[100] ^ 1, *newer[101:]])
    assert probe(none, torn, newer) == (0, want)
    assert probe(torn, none, none) == (1, [])
    # Of an image nobody knows where the other zones are.
    assert probe(newer, none, none, zoned=False) == (0, want)
    assert probe(torn, newer, newer, zoned=False) == (1, [])


def test_dump_arguments(volume: Tools) -> None:
    for args in (["x"], ["inode"], ["inode", "x"], ["super", "1"], ["dir", "2", "3"]):
        assert volume.run("dump.rfs", volume.image, *args).returncode == 1
    done = volume.run("dump.rfs", volume.image, "inode", "99")
    assert done.returncode == 1
    assert "there is no such inode" in done.stderr
    assert volume.dump("recovery").startswith("pages_read ")
