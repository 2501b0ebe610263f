# SPDX-License-Identifier: MIT
"""The kernel modules of a guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab.elf import module_content, module_name, module_needs

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
