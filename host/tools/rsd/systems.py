"""The drives a guest can be given, by name. To add one, add a row to SYSTEMS.

A translation layer without zones that no row has (rsd.layers) gets one: RISA's drive with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsd.errors import RsdError, nearest
from rsd.layers import layers

MIB = 1 << 20
RAW_MEDIA_BYTES = 2048 * MIB

# Slot of the PCI bus behind which drives beside the first one are. The machine's own devices have
# slots from 1 on, and from 0x1f on.
BESIDE_ADDRESS = 0x10

# Properties of the namespace that the command line is made with: nobody else may set them.
OURS_TO_SET = ("id", "bus", "media", "drive")


@dataclass(frozen=True)
class Look:
    """How plots show a system: colours on light and on dark ground, and matplotlib's marker."""

    light: str
    dark: str
    marker: str


# Of systems that have none of their own, in the order of SYSTEMS
OTHER_LOOKS = (
    Look("#00798c", "#4cc9d9", "<"),
    Look("#a4452c", "#f2937b", ">"),
    Look("#5b6c8f", "#a9b8d8", "d"),
    Look("#8f6f00", "#e0c050", "p"),
)


@dataclass(frozen=True)
class System:
    """How QEMU makes one kind of drive.

    `controller` and `namespace` are -device options; `{media}` in the namespace stands for
    the media file. A system with `raw_media` keeps its data in a plain file that we make;
    the others make their own media file on first use. The guest sees /dev/nvme0n1, and with
    `second` a conventional namespace on the same flash, /dev/nvme0n2. `aged`: `./rsd compare`
    measures it full and worn in (compare/aged.py).
    """

    summary: str
    controller: Mapping[str, str] = field(default_factory=dict)
    namespace: Mapping[str, str] = field(default_factory=dict)
    driver: str = "nvme-ns"
    raw_media: bool = False
    second: bool = False
    look: Look | None = None
    aged: bool = False


def _stock(look: Look, **namespace: str) -> System:
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
        look=look,
    )


def _ours(
    summary: str,
    *,
    second: bool = False,
    look: Look | None = None,
    aged: bool = False,
    **namespace: str,
) -> System:
    options = {name.replace("_", "-"): value for name, value in namespace.items()}
    return System(
        summary=f"our virtual SSD, {summary}",
        controller={"serial": "rsd0", "inline-queues": "on", "dbcs": "off"},
        namespace={"media": "{media}", **options},
        driver="rsd-ns",
        second=second,
        look=look,
        aged=aged,
    )


def _rsd(preset: str, look: Look) -> System:
    what = f"preset {preset}, 64 bytes of page metadata"
    return _ours(what, look=look, preset=preset, oob="64")


def _ftl(
    name: str,
    what: str,
    look: Look | None = None,
    *,
    over_provision: str = "5",
    **namespace: str,
) -> System:
    """RISA's drive with an FTL; its over-provisioning is 5% (RISA 4.1), spare blocks included."""
    options = {"ftl": name, "over_provision": over_provision, **namespace}
    return _ours(f"preset risa, {what}", look=look, aged=True, preset="risa", **options)


_SYSTEMS: dict[str, System | None] = {
    "none": None,
    "stock": _stock(Look("#8b929c", "#8e98a5", "o")),
    "stock-zns": _stock(
        Look("#0f9d94", "#3cc4ba", "s"), **{"zoned": "true", "zoned.zone_size": "16M"}
    ),
    "rsd": _rsd("risa", Look("#2f5fd0", "#7ea2ff", "o")),
    "rsd-redo": _rsd("redo", Look("#d9822b", "#f0a04b", "D")),
    # RISA 4.1: greedy, 1% free, one block of every channel and way at a time. The papers do not
    # say where copies go: as in drives one can buy, to blocks of their own.
    "page-ftl": _ftl(
        "page",
        "page-level FTL",
        Look("#b03a6e", "#f07fae", "^"),
        gc_unit="all",
        gc_frontiers="own",
    ),
    "block-ftl": _ftl("block", "block-level FTL", Look("#7a5c2e", "#c9a566", "v")),
    # RISA's log of 5%; what merges need comes on top
    "fast-ftl": _ftl(
        "fast",
        "hybrid FTL (FAST)",
        Look("#6b8e23", "#a5cc52", "P"),
        over_provision="9",
        log_blocks="5",
    ),
    # 5% would be hardly more than what a cached map needs beside the data
    "dftl": _ftl(
        "dftl",
        "page-level FTL with a cached map",
        Look("#7d4fc4", "#b79af0", "X"),
        over_provision="10",
        gc_unit="all",
        gc_frontiers="own",
    ),
    "barracuda-320": _ours(
        "which is a rotating disk of 320 GB, preset barracuda-320",
        preset="barracuda-320",
        ftl="disk",
    ),
    # A small namespace that is overwritten all the time needs more flash than the host sees.
    "rsd-conv": _ours(
        "preset risa, a sixteenth of its flash as a conventional namespace",
        preset="risa",
        oob="0",
        conv_blocks="8",
        over_provision="50",
        second=True,
    ),
}


def _name_of(layer: str) -> str:
    """The system with a layer that has no row of its own."""
    return layer if layer.endswith("ftl") else f"{layer}-ftl"


def _all_systems() -> dict[str, System | None]:
    """The rows, then a system for each layer that none of them has."""
    had = {system.namespace.get("ftl", "rsd") for system in _SYSTEMS.values() if system}
    return _SYSTEMS | {
        _name_of(layer.name): _ftl(layer.name, layer.doc, over_provision="20")
        for layer in layers().values()
        if layer.name not in had and not layer.zoned
    }


SYSTEMS = _all_systems()


def looks() -> dict[str, Look]:
    """How plots show the systems that have something to compare."""
    others = iter(OTHER_LOOKS * len(SYSTEMS))
    return {
        name: system.look or next(others)
        for name, system in SYSTEMS.items()
        if system and (system.look or system.aged)
    }


def describe() -> str:
    """One line a system, and one with its properties if it has more than a preset, for --help."""
    lines = []
    for name, system in SYSTEMS.items():
        lines.append(f"  {name:13} {system.summary if system else 'no drive at all'}")
        if system and system.driver == "rsd-ns":
            shown = (f"{key}={value}" for key, value in system.namespace.items() if key != "media")
            lines.append(f"  {'':13}   {' '.join(shown)}")
    return "\n".join(lines)


def check_name(name: str) -> str:
    """`name`, if it is a system's. Raises RsdError with the list otherwise."""
    if name not in SYSTEMS:
        close = nearest(name, SYSTEMS)
        raise RsdError(
            f"unknown system {name!r}: there is {', '.join(SYSTEMS)}",
            f"--system {close}" if close else "./rsd run --help explains them",
        )
    return name


def get_drive(name: str) -> System:
    """The system of this name. It is one with a drive."""
    system = SYSTEMS[check_name(name)]
    assert system is not None
    return system


def prepare_media(name: str, media: Path, option: str = "--media") -> None:
    """Make the media file, which `option` names, if this system needs one made.

    A file that exists is kept.
    """
    system = SYSTEMS[check_name(name)]
    if system is None or media.exists():
        return
    if media.is_symlink():
        raise RsdError(
            f"media file {media}: a link to {media.readlink()}, which does not exist",
            "remove the link, or make what it leads to",
        )
    if not system.raw_media:
        return
    try:
        with media.open("xb") as stream:
            stream.truncate(RAW_MEDIA_BYTES)
    except OSError as error:
        raise RsdError(
            f"media file {media}: {error.strerror}", f"choose another {option} FILE"
        ) from error


def comma(value: str | Path) -> str:
    """A value inside a QEMU option, where a comma would end it."""
    return str(value).replace(",", ",,")


def qemu_arguments(
    name: str,
    media: Path,
    controller: Mapping[str, str],
    namespace: Mapping[str, str],
    *,
    index: int = 0,
) -> list[str]:
    """QEMU's options for this drive; the mappings override the system's own properties.

    Drive number `index` is the guest's /dev/nvme<index>n1. One beside the first has an address on
    the PCI bus behind whatever the machine may have, so that the guest finds it last.
    """
    system = SYSTEMS[check_name(name)]
    if system is None:
        return []
    bus, own = f"nvme{index}", dict(system.namespace)
    ours = dict(system.controller)
    arguments = []
    if index:
        # two controllers of one serial number would be one drive with two paths
        ours |= {"serial": f"second{index}", "addr": f"{BESIDE_ADDRESS + index:#x}"}
    if system.raw_media:
        own["drive"] = f"media{index or ''}"
        arguments += ["-drive", f"file={comma(media)},if=none,id={own['drive']},format=raw"]
    devices = [
        (f"nvme,id={bus}", {**ours, **controller}),
        (f"{system.driver},bus={bus},id=ns{index}", {**own, **namespace}),
    ]
    if system.second:
        devices.append((f"rsd-ns-conv,bus={bus}", {"flash": f"ns{index}"}))
    for driver, properties in devices:
        options = (
            f",{key}={comma(value.replace('{media}', str(media)))}"
            for key, value in properties.items()
        )
        arguments += ["-device", driver + "".join(options)]
    return arguments
