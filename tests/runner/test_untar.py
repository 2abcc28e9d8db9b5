# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives from a guest, or from elsewhere, stay where they are unpacked."""

import io
import resource
import subprocess
import tarfile
from pathlib import Path

import pytest

from rsd.errors import words
from rsd.untar import extract


def archive(*members: tuple[str, bytes, str]) -> tarfile.TarFile:
    """Members of (name, type, link or content)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = 0o4755
            if kind == tarfile.REGTYPE:
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
            else:
                info.linkname = text
                tar.addfile(info)
    stream.seek(0)
    return tarfile.open(fileobj=stream, mode="r:")


def test_files_directories_and_links(tmp_path: Path) -> None:
    target = tmp_path / "out"
    left_out = extract(
        archive(
            ("./d", tarfile.DIRTYPE, ""),
            ("./d/file", tarfile.REGTYPE, "text"),
            ("./d/soft", tarfile.SYMTYPE, "../d/file"),
            ("./hard", tarfile.LNKTYPE, "./d/file"),
            ("./null", tarfile.CHRTYPE, ""),
        ),
        target,
    )
    assert (target / "d/soft").read_text() == (target / "hard").read_text() == "text"
    assert (target / "d/file").stat().st_mode & 0o7777 == 0o755
    assert not (target / "null").exists()
    assert not left_out


@pytest.mark.parametrize(
    "members",
    [
        [("../file", tarfile.REGTYPE, "x")],
        [("/file", tarfile.REGTYPE, "x")],
        [("d/../../file", tarfile.REGTYPE, "x")],
        [("soft", tarfile.SYMTYPE, "../..")],
        [("soft", tarfile.SYMTYPE, "/etc/passwd")],
        [("hard", tarfile.LNKTYPE, "../secret")],
        [("d", tarfile.DIRTYPE, ""), ("s", tarfile.SYMTYPE, "d"), ("s/f", tarfile.REGTYPE, "x")],
    ],
)
def test_nothing_leads_outside(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    (tmp_path / "secret").write_text("secret")
    assert extract(archive(*members), tmp_path / "out") == [members[-1][0]]
    assert sorted(path.name for path in tmp_path.iterdir()) in (["out", "secret"], ["secret"])


def test_a_file_that_has_no_room_is_named(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OSError) as error:
            extract(archive(("big", tarfile.REGTYPE, "x" * (1 << 20))), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert words(error.value) == f"{tmp_path}/big: File too large"


def test_holes_stay_holes(tmp_path: Path) -> None:
    """A file larger than any disk, with data in its middle and a hole at its end."""
    source = tmp_path / "source"
    source.mkdir()
    with (source / "file").open("wb") as stream:
        stream.seek(1 << 40)
        stream.write(b"data" * 4096)
        stream.truncate(1 << 43)
    tar = tmp_path / "tar"
    command = ["tar", "-cf", tar, "--sparse", "--sort=name", "-C", source, "."]
    subprocess.run(command, check=True, timeout=600)
    with tarfile.open(tar, "r:") as opened:
        assert extract(opened, tmp_path / "out") == []
    made = tmp_path / "out" / "file"
    assert made.stat().st_size == 1 << 43
    assert made.stat().st_blocks * 512 < 1 << 20
    with made.open("rb") as stream:
        stream.seek((1 << 40) - 4)
        assert stream.read(12) == bytes(4) + b"datadata"


def test_a_sparse_file_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "file").open("wb") as stream:
        stream.seek(1 << 30)
        stream.write(bytes(range(256)) * 4096)
    tar = tmp_path / "tar"
    subprocess.run(["tar", "-cf", tar, "--sparse", "-C", source, "."], check=True, timeout=600)
    with tar.open("r+b") as stream:
        stream.truncate(512 << 10)
    with tarfile.open(tar, "r:") as opened, pytest.raises(tarfile.TarError):
        extract(opened, tmp_path / "out")
