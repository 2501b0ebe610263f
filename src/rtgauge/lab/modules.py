# SPDX-License-Identifier: MIT
"""The kernel modules of a guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab.elf import module_content, module_name, module_needs

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.lab.cpio import CpioWriter

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
LIST = "etc/modules.list"


def find_modules(folder: Path) -> dict[str, Path]:
    """Every module below a folder by its name."""
    return {module_name(path): path for path in sorted(folder.rglob("*.ko*")) if path.name.endswith((".ko", ".ko.xz", ".ko.gz", ".ko.zst"))}


def write_modules(found: dict[str, Path], wanted: list[str], cpio: CpioWriter) -> None:
    """Those that are wanted and all that they need, unpacked, with a list of them in the order in which they are to be loaded. Raises MeasureError."""
    order: list[str] = []
    contents: dict[str, bytes] = {}

    def add(name: str, asker: str) -> None:
        name = name.replace("-", "_")
        if name in contents:
            return
        if name not in found:
            raise MeasureError(f"the module {name}, which {asker} needs, is missing in the folder of modules")
        contents[name] = module_content(found[name])
        for need in module_needs(contents[name]):
            add(need, name)
        order.append(name)

    for name in wanted:
        if name in found:
            add(name, "the guest")
    for name in order:
        cpio.file(f"usr/lib/modules/{name}.ko", contents[name])
    cpio.file(LIST, "".join(f"/lib/modules/{name}.ko\n" for name in order).encode())
