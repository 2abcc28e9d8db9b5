"""The drives a guest can be given, by name. To add one, add a row to SYSTEMS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsd.errors import RsdError

MIB = 1 << 20
RAW_MEDIA_BYTES = 2048 * MIB


@dataclass(frozen=True)
class System:
    """How QEMU makes one kind of drive.

    `controller` and `namespace` are -device options; `{media}` in the namespace stands for
    the media file. A system with `raw_media` keeps its data in a plain file that we make;
    the others make their own media file on first use. The guest sees /dev/nvme0n1.
    """

    summary: str
    controller: Mapping[str, str] = field(default_factory=dict)
    namespace: Mapping[str, str] = field(default_factory=dict)
    driver: str = "nvme-ns"
    raw_media: bool = False


def _stock(**namespace: str) -> System:
    zoned = namespace.get("zoned") == "true"
    return System(
        summary=f"QEMU's own NVMe drive{', zoned' if zoned else ''}, on a 2 GiB raw file",
        controller={"serial": "stock"},
        namespace={
            "drive": "media",
            "logical_block_size": "4096",
            "physical_block_size": "4096",
            **namespace,
        },
        raw_media=True,
    )


def _rsd(preset: str) -> System:
    return System(
        summary=f"our virtual SSD, preset {preset}, 64 bytes of page metadata",
        controller={"serial": "rsd0", "inline-queues": "on", "dbcs": "off"},
        namespace={"media": "{media}", "preset": preset, "oob": "64"},
        driver="rsd-ns",
    )


SYSTEMS: dict[str, System | None] = {
    "none": None,
    "stock": _stock(),
    "stock-zns": _stock(**{"zoned": "true", "zoned.zone_size": "16M"}),
    "rsd": _rsd("risa"),
    "rsd-redo": _rsd("redo"),
}


def describe() -> str:
    """One line a system, for --help."""
    rows = ((n, s.summary if s else "no drive at all") for n, s in SYSTEMS.items())
    return "\n".join(f"  {name:10} {summary}" for name, summary in rows)


def check_name(name: str) -> str:
    """`name`, if it is a system's. Raises RsdError with the list otherwise."""
    if name not in SYSTEMS:
        raise RsdError(
            f"unknown system {name!r}: there is {', '.join(SYSTEMS)}", "./rsd run --help"
        )
    return name


def prepare_media(name: str, media: Path) -> None:
    """Make the media file if this system needs one made. A file that exists is kept."""
    system = SYSTEMS[check_name(name)]
    if system is None or not system.raw_media or media.exists():
        return
    try:
        with media.open("xb") as stream:
            stream.truncate(RAW_MEDIA_BYTES)
    except OSError as error:
        raise RsdError(
            f"media file {media}: {error.strerror}", "choose another --media FILE"
        ) from error


def comma(value: str | Path) -> str:
    """A value inside a QEMU option, where a comma would end it."""
    return str(value).replace(",", ",,")


def qemu_arguments(
    name: str,
    media: Path,
    controller: Mapping[str, str],
    namespace: Mapping[str, str],
) -> list[str]:
    """QEMU's options for this drive; the mappings override the system's own properties."""
    system = SYSTEMS[check_name(name)]
    if system is None:
        return []
    arguments = []
    if system.raw_media:
        arguments += ["-drive", f"file={comma(media)},if=none,id=media,format=raw"]
    for driver, properties in (
        ("nvme,id=nvme0", {**system.controller, **controller}),
        (f"{system.driver},bus=nvme0", {**system.namespace, **namespace}),
    ):
        options = (
            f",{key}={comma(value.replace('{media}', str(media)))}"
            for key, value in properties.items()
        )
        arguments += ["-device", driver + "".join(options)]
    return arguments
