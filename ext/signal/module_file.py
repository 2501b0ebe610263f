# SPDX-License-Identifier: MIT
"""Reads files of kernel modules."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any

from rtgauge.errors import MeasureError
from rtgauge.input_file import MIB, read_regular

MOST_MODULE = 256 * MIB
STRIP = ("strip", "--strip-debug")
"""The command that strips debug information, which would take minutes over a serial line."""


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
