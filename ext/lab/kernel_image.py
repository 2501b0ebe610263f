# SPDX-License-Identifier: MIT
"""Finds the architecture of a kernel file, and unpacks the file to the form that QEMU boots fastest."""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Literal

from rtgauge.input_file import MIB, open_regular, read_regular

Architecture = Literal["x86_64", "aarch64", "riscv64"]
ELF = b"\x7fELF"
SECTOR = 512
ZBOOT_HEADER = 64
MOST_KERNEL = 1024 * MIB
ELF_X86_64 = b"\x3e\0"
PHYS32_ENTRY = "18"
"""The ELF note of a kernel with a direct 32-bit entry point (xen/include/public/elfnote.h)."""


def architecture_of(kernel: Path) -> Architecture | None:
    """Return the architecture of a kernel file that QEMU can boot; None for other files. Raises OSError."""
    with open_regular(kernel) as file:
        head = file.read(2 * SECTOR)
    if head[0x202:0x206] == b"HdrS" or (head.startswith(ELF) and head[18:20] == ELF_X86_64):
        return "x86_64"
    # Documentation/arch/arm64/booting.rst; QEMU unpacks a compressed kernel
    if (
        head[0x38:0x3C] == b"ARM\x64"
        or (head[:2] == b"MZ" and head[4:8] == b"zimg")
        or head.startswith(b"\x1f\x8b")
    ):
        return "aarch64"
    return (
        "riscv64" if head[0x38:0x3C] == b"RSC\x05" else None
    )  # Documentation/arch/riscv/boot-image-header.rst


def bootable(kernel: Path, architecture: Architecture, place: Path) -> None:
    """Copy the kernel to `place`, unpacked if possible, because an emulated processor needs seconds to unpack
    it at each boot. Raises OSError.
    """
    content = read_regular(kernel, MOST_KERNEL)
    unpacked = _unpack_x86(content) if architecture == "x86_64" else _unpack_efi(content)
    place.write_bytes(content if unpacked is None else unpacked)


def _unpack_x86(content: bytes) -> bytes | None:
    """Return a bzImage's kernel (Documentation/arch/x86/boot.rst); None without a direct entry point."""
    if len(content) < 2 * SECTOR or content[0x202:0x206] != b"HdrS":
        return None
    sectors = content[0x1F1] or 4
    offset, length = struct.unpack_from("<II", content, 0x248)
    start = (sectors + 1) * SECTOR + offset
    # the last 4 bytes of the payload are the unpacked size
    unpacked = _unpack(content[start : start + length - 4])
    return unpacked if unpacked is not None and _has_entry(unpacked) else None


def _unpack_efi(content: bytes) -> bytes | None:
    """Return a compressed EFI image's kernel (drivers/firmware/efi/libstub/zboot-header.S), or None."""
    if len(content) < ZBOOT_HEADER or content[:2] != b"MZ" or content[4:8] != b"zimg":
        return None
    offset, length = struct.unpack_from("<II", content, 8)
    return _unpack(content[offset : offset + length])


def _unpack(packed: bytes) -> bytes | None:
    try:
        if packed.startswith(b"\x1f\x8b"):
            return gzip.decompress(packed)
        if packed.startswith(b"\xfd7zXZ"):
            return lzma.decompress(packed)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return None
    if packed.startswith(b"\x28\xb5\x2f\xfd") and shutil.which("zstd") is not None:
        completed = subprocess.run(
            ["zstd", "-dcq"], input=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        return completed.stdout if completed.returncode == 0 else None
    return None


def _has_entry(content: bytes) -> bool:
    """Return whether an ELF kernel has a direct entry point."""
    if not content.startswith(ELF):
        return False
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import NoteSegment

    try:
        segments = [
            segment
            for segment in ELFFile(io.BytesIO(content)).iter_segments()
            if isinstance(segment, NoteSegment)
        ]
    except ELFError:
        return False
    return any(
        str(note["n_type"]) == PHYS32_ENTRY and note["n_name"] == "Xen"
        for segment in segments
        for note in segment.iter_notes()
    )
