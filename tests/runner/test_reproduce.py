# SPDX-License-Identifier: GPL-2.0-or-later
"""./rsd artifact: packed, verified, and what is not the same is named. And ./rsd cite."""

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from rsd import __version__, artifacts, cite, cli, packages, reproduce, site
from rsd.artifacts import REPOSITORY, Artifacts
from rsd.cache import Cache
from rsd.errors import RsdError
from rsd.progress import Progress

TEXT = """
name = "paper"
inputs = "work"

[[figures]]
name = "one"
command = "cat given; echo more >written"
files = ["written"]

[[figures]]
name = "two"
command = "cat given given"
"""


@pytest.fixture
def description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "ensure", lambda *_, **__: None)
    (tmp_path / "work/below").mkdir(parents=True)
    (tmp_path / "work/given").write_text("a\nb\n")
    (tmp_path / "work/below/file").write_text("")
    path = tmp_path / "paper.toml"
    path.write_text(TEXT)
    return path


def packed(description: Path) -> Path:
    assert cli.main(["artifact", "pack", str(description)]) == 0
    return description.with_suffix(".tar")


def test_what_was_packed_is_verified(description: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = packed(description)
    first = archive.read_bytes()
    assert packed(description).read_bytes() == first
    with tarfile.open(archive) as tar:
        assert "inputs/below/file" in tar.getnames()
        assert tar.extractfile("expected/one/written").read() == b"more\n"  # type: ignore[union-attr]
    assert cli.main(["artifact", "verify", str(archive)]) == 0
    assert capsys.readouterr().out == (
        "one: the same bytes\ntwo: the same bytes\n2 of 2 figures of paper are the same\n"
    )
    assert cli.main(["artifact", "verify", str(archive), "--figure", "two"]) == 0
    assert "1 of 1 figures" in capsys.readouterr().out
    assert cli.main(["artifact", "verify", str(archive), "--figure", "three"]) == 2
    assert cli.main(["artifact", "verify", str(archive), "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "two: cat given given"


def changed(archive: Path, name: str, data: bytes, *, honest: bool) -> None:
    """Another content of a file in it; `honest`: the manifest says so."""
    with tarfile.open(archive) as tar:
        kept = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    kept[name] = data
    if honest:
        manifest = json.loads(kept["artifact.json"])
        manifest["sha256"][name] = reproduce.hashlib.sha256(data).hexdigest()
        manifest["made_with"]["sha256"]["drive"] = "another"
        kept["artifact.json"] = json.dumps(manifest).encode()
    with tarfile.open(archive, "w") as tar:
        for member, content in kept.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_what_is_not_the_same_is_named(
    description: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figure, the line, and which part is another."""
    archive = packed(description)
    changed(archive, "expected/two/out", b"a\nb\nc\nb\n", honest=True)
    assert cli.main(["artifact", "verify", str(archive)]) == 1
    said = capsys.readouterr().out
    assert "one: the same bytes\n" in said
    assert "two: out is not the same: line 3 was 'c', is 'a'\n" in said
    assert "1 of 2 figures of paper are the same\n  drive: another there, " in said


def test_a_damaged_one_is_refused(description: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = packed(description)
    changed(archive, "inputs/given", b"other\n", honest=False)
    assert cli.main(["artifact", "verify", str(archive)]) == 2
    assert "inputs/given is damaged" in capsys.readouterr().err
    assert cli.main(["artifact", "verify", str(description)]) == 2
    assert "no artifact" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "paper"', "", "name is missing"),
        ('"work"', '"nowhere"', "nowhere is not a directory"),
        ('name = "two"', 'name = "one"', "two have one name"),
        ('["written"]', '["../written"]', "'../written': must be inside"),
        ("cat given given", "false", "two: exit status 1 of false"),
        ('["written"]', '["missing"]', "wrote no file missing"),
        ("inputs =", "imports =", "no field 'imports'"),
    ],
)
def test_a_wrong_description_is_named(
    description: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    description.write_text(TEXT.replace(old, new))
    assert cli.main(["artifact", "pack", str(description)]) == 2
    assert message in capsys.readouterr().err
    assert not description.with_suffix(".tar").exists()


def test_a_guest_is_only_built_for_commands_that_have_one(
    description: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_: object, **__: object) -> Artifacts:
        raise RsdError("a guest is built")

    monkeypatch.setattr(artifacts, "ensure", build)
    packed(description)
    description.write_text(TEXT.replace("cat given given", "echo ./rsd run -- true"))
    assert cli.main(["artifact", "pack", str(description)]) == 2


def test_cite_names_every_part(built: Artifacts) -> None:
    facts = cite.identity(built)
    assert set(facts["sha256"]) == {"drive", *built.hashes}
    entry = cite.bibtex(facts)
    for name in ("qemu", "kernel", "root", "drive"):
        assert facts["sha256"][name][:16] in entry
    assert entry.count("{") == entry.count("}")
    assert cite.differences(facts, facts) == []
    other = {**facts, "versions": {**facts["versions"], "qemu": "9"}}
    (line,) = cite.differences(other, facts)
    assert line.startswith("qemu: 9 there, ")


def test_the_citation_file_is_valid(rsd_cache: Cache) -> None:
    """By the schema of its format; and of the version that the program says."""
    packages_ = site.mkdocs(rsd_cache, Progress())
    sys.path.insert(0, str(packages_))
    try:
        import fastjsonschema  # type: ignore[import-not-found]
        import yaml  # type: ignore[import-untyped]
    finally:
        sys.path.remove(str(packages_))
    schema = json.loads((packages_ / "cffconvert/schemas/1.2.0/schema.json").read_text())
    valid = fastjsonschema.compile(schema)
    text = (REPOSITORY / "CITATION.cff").read_text()
    content = yaml.load(text, yaml.BaseLoader)
    valid(content)
    assert content["version"] == __version__
    del content["authors"]
    with pytest.raises(fastjsonschema.JsonSchemaException, match="authors"):
        valid(content)
