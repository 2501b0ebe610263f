# SPDX-License-Identifier: MIT
"""The kernel modules of a guest."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from typing import TYPE_CHECKING, Any

from rtgauge.errors import MeasureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WANTED = (
    "virtio_pci",
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "crc32c_generic",
    "ext4",
    "veth",
)
"""For the disk, the network and the loads; what a kernel has built in has no module and is not missed."""


def find_modules(folder: Path) -> dict[str, Path]:
    """Every module below a folder by its name."""
    return {module_name(path): path for path in sorted(folder.rglob("*.ko*")) if path.name.endswith((".ko", ".ko.xz", ".ko.gz", ".ko.zst"))}


def with_needs(found: Mapping[str, Path], wanted: Iterable[str]) -> dict[str, bytes]:
    """Those that are wanted and there, and all that they need, by name, in the order in which they are to be loaded. Raises MeasureError."""
    from elftools.common.exceptions import ELFError

    contents: dict[str, bytes] = {}

    def add(name: str, asker: str) -> None:
        if name in contents:
            return
        if name not in found:
            raise MeasureError(f"the module {name}, which {asker} needs, is missing in the folder of modules")
        content = module_content(found[name])
        try:
            needs = module_needs(content)
        except ELFError:
            raise MeasureError(f"{found[name]} is no kernel module") from None
        for need in needs:
            add(need.replace("-", "_"), name)
        contents[name] = content

    for name in wanted:
        if name in found:
            add(name, "the guest")
    return contents


def _elf(content: bytes) -> Any:
    from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

    return ELFFile(io.BytesIO(content))


def module_content(path: Path) -> bytes:
    """A kernel module, unpacked. Raises MeasureError for a packing that is not known here."""
    content = path.read_bytes()
    try:
        if path.suffix == ".xz":
            return lzma.decompress(content)
        if path.suffix == ".gz":
            return gzip.decompress(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        raise MeasureError(f"{path} is damaged: it cannot be unpacked") from None
    if path.suffix == ".ko":
        return content
    raise MeasureError(f"{path}: modules packed like this cannot be read here: unpack them (to .ko) and give that folder")


def module_needs(content: bytes) -> list[str]:
    """The names of the modules that must be loaded before this one."""
    section = _elf(content).get_section_by_name(".modinfo")
    words: list[bytes] = section.data().split(b"\0") if section is not None else []
    lists = [word.removeprefix(b"depends=").decode() for word in words if word.startswith(b"depends=")]
    return [name for names in lists for name in names.split(",") if name]


def module_name(path: Path) -> str:
    """`virtio-rng.ko.xz` -> `virtio_rng`: the kernel does not tell `-` from `_`."""
    return path.name.partition(".ko")[0].replace("-", "_")
