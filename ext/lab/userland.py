# SPDX-License-Identifier: MIT
"""Collects the programs of a guest (BusyBox, an ssh server, Python and the loads) and the libraries they
need.
"""

from __future__ import annotations

import io
import posixpath
import shutil
from pathlib import Path
from typing import Any

from rtgauge.errors import MeasureError
from rtgauge_ext.lab.kernel_image import ELF, Architecture

PACKAGES = (
    "base-files",
    "busybox-static",
    "dash",
    "dropbear-bin",
    "iperf3",
    "iproute2",
    "python3",
    "rt-tests",
    "rtla",
    "stress-ng",
    "util-linux",
)
PROGRAMS = (
    "usr/bin/busybox",
    "usr/sbin/dropbear",
    "usr/bin/dropbearkey",
    "usr/bin/ip",
    "usr/bin/iperf3",
    "usr/bin/stress-ng",
    "usr/bin/cyclictest",
    "usr/bin/hackbench",
    "usr/bin/rtla",
    "usr/bin/python3",
    "usr/bin/dash",
    "usr/bin/chrt",
    "usr/bin/nsenter",
    "usr/bin/setsid",
    "usr/bin/taskset",
    "usr/bin/unshare",
)
FILES = ("usr/lib/os-release",)
PYTHON_MODULES = "usr/lib/python3.*/**/*"
RTLA = "rtla"
WITHOUT_RTLA = frozenset({"riscv64"})
"""The architectures for which Debian does not build rtla."""
LIBRARY_FOLDERS = (
    *(f"usr/lib/{architecture}-linux-gnu" for architecture in ("x86_64", "aarch64", "riscv64")),
    "usr/lib",
    "usr/lib64",
)


def packages_of(architecture: Architecture) -> list[str]:
    """Return the Debian packages from which a guest's programs come."""
    return [name for name in PACKAGES if name != RTLA or architecture not in WITHOUT_RTLA]


def needed_libraries(content: bytes) -> list[str]:
    """Return the names of the shared libraries and the loader that `content`, a program or library, needs.

    Empty if it is static or not an ELF file.
    """
    if not content.startswith(ELF):
        return []
    from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

    elf: Any = ELFFile(io.BytesIO(content))
    names = [segment.get_interp_name() for segment in elf.iter_segments("PT_INTERP")]
    for segment in elf.iter_segments("PT_DYNAMIC"):
        names += [tag.needed for tag in segment.iter_tags("DT_NEEDED")]
    return [str(name) for name in names]


def resolve(tree: Path, name: str) -> list[str]:
    """Return a path in an unpacked system, followed by the targets of its links; empty if it does not exist.

    Names are relative to `tree`; links never lead out of it. Debian's merged /usr (`lib` is `usr/lib`) is
    handled.
    """
    chain: list[str] = []
    name = _merged(name)
    while len(chain) < 16 and name not in chain:
        path = tree / name
        if not path.is_symlink() and not path.is_file():
            return []
        chain.append(name)
        if not path.is_symlink():
            return chain
        name = _merged(posixpath.normpath(posixpath.join("/", posixpath.dirname(name), str(path.readlink()))))
    return []


def _merged(name: str) -> str:
    name = name.lstrip("/")
    return (
        name
        if name.startswith("usr/") or name.partition("/")[0] not in {"bin", "sbin", "lib", "lib64"}
        else f"usr/{name}"
    )


def _find_library(tree: Path, name: str) -> list[str]:
    if "/" in name:
        return resolve(tree, name)
    for folder in LIBRARY_FOLDERS:
        library = resolve(tree, f"{folder}/{name}")
        if library:
            return library
    return []


def pick(tree: Path, place: Path, architecture: Architecture) -> None:
    """Copy the programs, Python's modules and their libraries from unpacked packages to the new folder
    `place`.

    Raises MeasureError if one of them is missing.
    """
    rtla = f"usr/bin/{RTLA}" if architecture in WITHOUT_RTLA else ""
    modules = [str(path.relative_to(tree)) for path in tree.glob(PYTHON_MODULES) if path.is_file()]
    wanted = [name for name in (*PROGRAMS, *FILES, *modules) if name != rtla]
    waiting = [(name, resolve(tree, name)) for name in wanted]
    taken: set[str] = set()
    while waiting:
        program, names = waiting.pop()
        if not names:
            raise MeasureError(
                f"the Debian packages in the image lack {program}; try rtgauge lab build --fresh, or a "
                "newer rtgauge"
            )
        new = [name for name in names if name not in taken]
        taken.update(new)
        if new and names[-1] in new:
            waiting += [
                (library, _find_library(tree, library))
                for library in needed_libraries((tree / names[-1]).read_bytes())
            ]
    for name in sorted(taken):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, place / name, follow_symlinks=False)
