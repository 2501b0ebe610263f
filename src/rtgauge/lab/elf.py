# SPDX-License-Identifier: MIT
"""What programs and kernel modules say about what they need."""

from __future__ import annotations

import gzip
import io
import lzma
import posixpath
import zlib
from typing import TYPE_CHECKING, Any

from rtgauge.errors import MeasureError

if TYPE_CHECKING:
    from pathlib import Path

ELF = b"\x7fELF"


def _elf(content: bytes) -> Any:
    from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

    return ELFFile(io.BytesIO(content))


def needed_libraries(content: bytes) -> list[str]:
    """The shared libraries of a program or library, and its loader's path; none where it is static or no ELF file."""
    if not content.startswith(ELF):
        return []
    elf = _elf(content)
    names = [segment.get_interp_name() for segment in elf.iter_segments("PT_INTERP")]
    for segment in elf.iter_segments("PT_DYNAMIC"):
        names += [tag.needed for tag in segment.iter_tags("DT_NEEDED")]
    return [str(name) for name in names]


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


def resolve(tree: Path, name: str) -> list[str]:
    """A path in an unpacked system and, where it is a link, all that it leads to, in order; [] where it is not there.

    Names are relative to `tree`; links never lead out of it. Debian's merged folders (`lib` is `usr/lib`) are known.
    """
    found: list[str] = []
    name = _merged(name)
    while len(found) < 16 and name not in found:
        path = tree / name
        if not path.is_symlink() and not path.is_file():
            return []
        found.append(name)
        if not path.is_symlink():
            return found
        name = _merged(posixpath.normpath(posixpath.join("/", posixpath.dirname(name), str(path.readlink()))))
    return []


def _merged(name: str) -> str:
    name = name.lstrip("/")
    return name if name.startswith("usr/") or name.partition("/")[0] not in {"bin", "sbin", "lib", "lib64"} else f"usr/{name}"
