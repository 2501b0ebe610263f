# SPDX-License-Identifier: MIT
"""Finds a guest's kernel modules and their dependencies."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rtgauge.errors import MeasureError
from rtgauge.input_file import MIB, read_regular

MOST_MODULE = 256 * MIB
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
"""Modules for disk, network and loads, which may also be built into a kernel."""
STRIP = ("strip", "--strip-debug")
"""The command that strips debug information, which would take minutes over a serial line."""


def find_modules(folder: Path) -> dict[str, Path]:
    """Return every module below a folder, by name."""
    return {
        module_name(path): path
        for path in sorted(folder.rglob("*.ko*"))
        if path.name.endswith((".ko", ".ko.xz", ".ko.gz", ".ko.zst"))
    }


def with_needs(available: Mapping[str, Path], wanted: Iterable[str]) -> dict[str, bytes]:
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

    for name in wanted:
        if name in available:
            add(name, "the guest")
    return contents


def _elf(content: bytes) -> Any:
    from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

    return ELFFile(io.BytesIO(content))


def module_content(path: Path) -> bytes:
    """Read and unpack a kernel module. Raises MeasureError if it is damaged, cannot be read, or has an
    unknown compression.
    """
    try:
        content = read_regular(path, MOST_MODULE)
    except OSError as error:
        raise MeasureError(f"{path} cannot be read: {error.strerror}") from None
    try:
        if path.suffix == ".xz":
            return lzma.decompress(content)
        if path.suffix == ".gz":
            return gzip.decompress(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        raise MeasureError(f"the module {path} is damaged: it cannot be unpacked") from None
    if path.suffix == ".ko":
        return content
    raise MeasureError(
        f"{path} is compressed in an unknown format; unpack the modules to .ko files and give their folder"
    )


def module_information(content: bytes) -> dict[str, str]:
    """Return the fields that modinfo shows: key -> value, the last if a key repeats. Raises ELFError."""
    section = _elf(content).get_section_by_name(".modinfo")
    words: list[bytes] = section.data().split(b"\0") if section is not None else []
    return {
        key: value
        for key, sign, value in (word.decode(errors="replace").partition("=") for word in words)
        if sign
    }


def module_needs(content: bytes) -> list[str]:
    """Return the names of the modules that this module depends on. Raises ELFError."""
    return [name for name in module_information(content).get("depends", "").split(",") if name]


def module_name(path: Path) -> str:
    """Return `virtio_rng` for `virtio-rng.ko.xz`, because the kernel treats `-` and `_` as equal."""
    return path.name.partition(".ko")[0].replace("-", "_")
