# SPDX-License-Identifier: MIT
"""Finds a guest's kernel modules and their dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge_ext.signal.module_file import module_content, module_information

BASE_MODULES = (
    "virtio_pci",
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "crc32c_generic",
    "ext4",
    "e1000e",
    "veth",
)
"""Modules for disk, network and loads, which may also be built into a kernel."""


def find_modules(folder: Path) -> dict[str, Path]:
    """Return every module below a folder, by name."""
    return {
        module_name(path): path
        for path in sorted(folder.rglob("*.ko*"))
        if path.name.endswith((".ko", ".ko.xz", ".ko.gz", ".ko.zst"))
    }


def with_needs(available: Mapping[str, Path], names: Iterable[str]) -> dict[str, bytes]:
    """Return name -> content of the wanted modules that exist and of their dependencies, in load order.

    Raises MeasureError if a dependency is missing or a file is not a kernel module.
    """
    from elftools.common.exceptions import ELFError

    contents: dict[str, bytes] = {}

    def add(name: str, dependent: str) -> None:
        if name in contents:
            return
        if name not in available:
            raise MeasureError(f"the folder of modules lacks {name}, which {dependent} needs")
        content = module_content(available[name])
        try:
            needs = module_needs(content)
        except ELFError:
            raise MeasureError(f"{available[name]} is not a kernel module") from None
        for need in needs:
            add(need.replace("-", "_"), name)
        contents[name] = content

    for name in names:
        if name in available:
            add(name, "the guest")
    return contents


def module_needs(content: bytes) -> list[str]:
    """Return the names of the modules that this module depends on. Raises ELFError."""
    return [name for name in module_information(content).get("depends", "").split(",") if name]


def module_name(path: Path) -> str:
    """Return `virtio_rng` for `virtio-rng.ko.xz`, because the kernel treats `-` and `_` as equal."""
    return path.name.partition(".ko")[0].replace("-", "_")
