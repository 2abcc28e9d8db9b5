"""What goes into a guest and what comes out: two files that the guest sees as NVDIMMs."""

import io
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.errors import RsdError
from rsd.untar import extract

# QEMU wants NVDIMM sizes aligned; the files are sparse, so a step costs nothing.
NVDIMM_ALIGN = 128 << 20
# A guest that is saved with one file of inputs goes on with others of the same size.
INPUTS_BYTES = 4 << 30
RESULT_BYTES = 2 << 30
HEADER_BYTES = 4096

Inputs = Path | Mapping[str, bytes | str | Path] | None


@dataclass(frozen=True)
class RawResult:
    """The header that guest/init writes. Times are guest seconds since boot."""

    outcome: str
    status: int
    started_s: float
    ended_s: float


def write_inputs(
    path: Path,
    *,
    init: Path,
    savepoint: Path | None = None,
    tools: Sequence[Path] = (),
    modules: Path | None = None,
    config: Mapping[str, str | int] | None = None,
    script: str = "",
    inputs: Inputs = None,
) -> int:
    """Write the inputs' tar, and give its bytes. Equal arguments give equal bytes: no times,
    owners, order.

    With `savepoint`, and no more than init, it is for a guest that boots to be saved.
    """
    config = config or {}
    settings = "".join(f"{key}={value}\n" for key, value in config.items())
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        # The first name in the archive is how the guest knows this NVDIMM from the others.
        _add_bytes(tar, "rsd-inputs", b"", 0o644)
        _add_bytes(tar, "init", init.read_bytes(), 0o755)
        if savepoint is not None:
            _add_bytes(tar, "savepoint", savepoint.read_bytes(), 0o755)
        _add_bytes(tar, "config", settings.encode(), 0o644)
        _add_bytes(tar, "job", script.encode(), 0o644)
        for tool in tools:
            _add_tree(tar, f"bin/{tool.name}", tool)
        if modules is not None:
            _add_tree(tar, "modules", modules)
        if isinstance(inputs, Path):
            _add_tree(tar, "in", inputs)
        elif inputs:
            for name, content in sorted(inputs.items()):
                if isinstance(content, Path):
                    _add_tree(tar, f"in/{name}", content)
                else:
                    data = content.encode() if isinstance(content, str) else content
                    _add_bytes(tar, f"in/{name}", data, 0o644)
    size = path.stat().st_size
    if size > INPUTS_BYTES:
        raise RsdError(
            f"the inputs take {size >> 20} MiB, a guest can be given {INPUTS_BYTES >> 20}",
            "a smaller --in DIR",
        )
    with path.open("ab") as stream:
        stream.truncate(INPUTS_BYTES)
    return size


def create_result(path: Path) -> None:
    """Make the sparse file that the guest writes its result to."""
    with path.open("xb") as stream:
        stream.write(b"rsd-result\n")
        stream.truncate(RESULT_BYTES)


def read_result(path: Path, out_dir: Path) -> RawResult | None:
    """Unpack the guest's /out into `out_dir`. None: the guest did not write a result."""
    with path.open("rb") as stream:
        # As create_result left it, the header has no fields.
        words = stream.read(HEADER_BYTES).split(b"\n", 1)[0].decode("ascii", "replace").split()
        if words[:1] != ["rsd-result"] or len(words) == 1:
            return None
        fields = dict(word.split("=", 1) for word in words[1:])
        if fields["outcome"] != "too-large":
            try:
                with tarfile.open(fileobj=stream, mode="r:") as tar:
                    left_out = extract(tar, out_dir)
            except tarfile.TarError as error:
                raise RsdError(f"the guest's /out cannot be read: {error}") from error
            for name in left_out:
                print(f"rsd: left out of the results, leads outside: {name!r}", file=sys.stderr)
    return RawResult(
        fields["outcome"],
        int(fields["status"]),
        float(fields["started"]),
        float(fields["ended"]),
    )


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = mode
    tar.addfile(info, io.BytesIO(data))


def _walk(root: Path) -> Iterator[Path]:
    yield root
    if root.is_dir() and not root.is_symlink():
        for child in sorted(root.iterdir()):
            yield from _walk(child)


def _add_tree(tar: tarfile.TarFile, name: str, root: Path) -> None:
    if not root.exists():
        raise RsdError(f"input {root}: no such file or directory", "check --in DIR")
    for path in _walk(root):
        below = path.relative_to(root)
        info = tar.gettarinfo(path, arcname=str(Path(name) / below))
        if info is None:
            raise RsdError(f"input {path}: not a file, directory or link", "remove it from --in")
        # Hard links would tie two names in an order that the host's inodes decide.
        if info.islnk():
            info.type = tarfile.REGTYPE
            info.linkname = ""
            info.size = path.stat().st_size
        # The guest must not see the host's umask, clock or users.
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        info.mtime = 0
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if info.isreg():
            with path.open("rb") as stream:
                tar.addfile(info, stream)
        else:
            tar.addfile(info)
