# SPDX-License-Identifier: MIT
"""Models the lab's guests: with Debian's kernels, and with kernels that the user added."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError, MeasureError
from rtgauge.nearest_name import nearest
from rtgauge.record.files import write_whole
from rtgauge.user_cache import private_folder
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.kernel_image import Architecture, architecture_of

NAME = r"[a-z0-9][a-z0-9-]{0,31}"
SUITE = "trixie"
"""The guests' Debian release, the first with PREEMPT_RT in its kernel."""
NEWEST = "newest"
"""The version of the newest kernel in any suite."""
MEMORY_MIB = 1024
HIDDEN = ("proc", "sys", "dev", "run", "tmp")
DISKS = ("usr", "var")
"""The folders on which guest_files/init mounts file systems: `HIDDEN` and, if the guest has disks, `DISKS`.
"""


class Guest(BaseModel):
    """A guest with Debian's kernel (`package`) or the user's own (`kernel`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = Field(pattern=f"^{NAME}$")
    architecture: Architecture
    about: str
    package: str | None = None
    version: str = ""
    """The beginning of the version of Debian's kernel, such as 7.3; NEWEST: the newest; "": the suite's."""
    suite: str = ""
    """The Debian suite of the kernel; "": SUITE or, with a version, any of several."""
    kernel: Path | None = None
    modules: Path | None = None
    overlay: Path | None = None
    append: str = ""
    """Kernel parameters for every boot."""
    serial: bool = False
    """Whether the guest has no disk and no network. Its files are then in the initial RAM disk, and ssh uses
    a second serial line.
    """


@dataclass(frozen=True)
class BootedGuest:
    """A booted guest: QEMU's process, the loopback port of its ssh server, and its boot options."""

    name: str
    pid: int
    port: int
    accelerator: str
    append: str
    smp: str
    release: str
    boot_s: float
    memory_mib: int = MEMORY_MIB
    asked_port: int | None = None
    """The port given with --port, if any."""
    icount: bool = False
    """Whether the guest's clock counts instructions."""
    serial: bool = False
    """Whether `port` leads to a serial line instead of a network."""


def _debian(name: str, architecture: Architecture, package: str, about: str) -> Guest:
    return Guest(name=name, architecture=architecture, package=package, about=f"Debian {SUITE}, {about}")


@functools.cache
def built_in() -> Mapping[str, Guest]:
    """Return the built-in guests by name."""
    guests = (
        _debian("debian", "x86_64", "linux-image-amd64", "stock kernel, x86-64"),
        _debian("debian-rt", "x86_64", "linux-image-rt-amd64", "PREEMPT_RT kernel, x86-64"),
        _debian("debian-arm64", "aarch64", "linux-image-arm64", "stock kernel, arm64"),
        _debian("debian-rt-arm64", "aarch64", "linux-image-rt-arm64", "PREEMPT_RT kernel, arm64"),
        _debian("debian-riscv64", "riscv64", "linux-image-riscv64", "stock kernel, riscv64"),
    )
    return {guest.name: guest for guest in guests}


def of_version(guest: Guest, version: str, suite: str) -> Guest:
    """Return a guest with another of Debian's kernels: debian-rt and 7.3 make debian-rt-7-3.

    Raises InputError if the guest does not have Debian's kernel, or if a name is wrong.
    """
    if guest.package is None:
        raise InputError(f"lab:{guest.name} has a kernel of your own; --kernel and --suite choose Debian's")
    if version and not re.fullmatch(rf"{NEWEST}|[0-9]+(\.[0-9]+)+(-rc[0-9]+)?", version):
        raise InputError(f"--kernel {version[:40]}: give a version, such as 7.3, or {NEWEST}")
    if suite and not re.fullmatch(r"[a-z]+(-[a-z]+)?", suite):
        raise InputError(f"--suite {suite[:40]}: give a Debian suite, such as sid or {SUITE}-backports")
    words = [word.replace(".", "-") for word in (suite, version) if word]
    about = f"Debian {suite or 'of any suite'}, kernel {version or NEWEST}, {SHOWN[guest.architecture]}"
    name = check_name("-".join([guest.name, *words]))
    return guest.model_copy(update={"name": name, "version": version, "suite": suite, "about": about})


SHOWN = {"x86_64": "x86-64", "aarch64": "arm64", "riscv64": "riscv64"}


def _file(name: str) -> Path:
    return paths.home() / "guests" / f"{name}.json"


def guests() -> dict[str, Guest]:
    """Return all guests by name. Raises MeasureError if a guest's file is damaged."""
    known = dict(built_in())
    for path in sorted((paths.home() / "guests").glob("*.json")):
        try:
            guest = Guest.model_validate_json(path.read_bytes())
        except ValidationError:
            raise MeasureError(f"{path} is damaged: remove it and add the guest again") from None
        known[guest.name] = guest
    return known


def find_guest(name: str) -> Guest:
    """Return the guest with this name. Raises InputError if there is none."""
    known = guests()
    if name not in known:
        raise InputError(f"the lab does not have a guest '{name[:40]}'{nearest(name, known)}")
    return known[name]


def add(guest: Guest) -> None:
    """Save the user's guest. Raises InputError if its name or one of its files cannot be used."""
    if guest.name in built_in():
        raise InputError(f"'{guest.name}' is a built-in guest: choose another name")
    if guest.kernel is None or not guest.kernel.is_file():
        raise InputError(
            f"the kernel {guest.kernel} is not a file: give a bzImage (x86-64) or an Image (arm64, riscv64)"
        )
    _check_kernel(guest.kernel, guest.architecture)
    if guest.serial and guest.architecture != "x86_64":
        raise InputError(
            f"--serial does not work for {SHOWN[guest.architecture]}, because there QEMU has only one serial "
            "line, which is the console; leave --serial out"
        )
    for folder in (guest.modules, guest.overlay):
        if folder is not None and not folder.is_dir():
            raise InputError(f"{folder} is not a folder")
    if guest.overlay is not None:
        _check_overlay(guest.overlay, HIDDEN if guest.serial else (*HIDDEN, *DISKS))
    save(guest)


def save(guest: Guest) -> None:
    """Write the user's guest, without a check of its files."""
    path = _file(guest.name)
    private_folder(path.parent)
    write_whole(path, (guest.model_dump_json(indent=1) + "\n").encode())


def _check_overlay(overlay: Path, hidden: Iterable[str]) -> None:
    """Raise InputError if the overlay has files that a mounted file system would hide in the guest."""
    for name in hidden:
        if (overlay / name).is_dir() and any((overlay / name).iterdir()):
            raise InputError(
                f"{overlay}/{name} would be hidden, because the guest mounts a file system at /{name}; use "
                "another folder, such as /opt"
            )


def _check_kernel(kernel: Path, architecture: Architecture) -> None:
    try:
        actual = architecture_of(kernel)
    except OSError as error:
        raise InputError(f"the kernel {kernel} cannot be read: {error.strerror}") from None
    if actual is None:
        raise InputError(
            f"{kernel} is not a bootable kernel: give a bzImage (x86-64), an Image (riscv64), or an Image "
            "(arm64) and --arm64"
        )
    if actual != architecture:
        remedy = "add it with --arm64" if actual == "aarch64" else "leave out --arm64"
        raise InputError(f"{kernel} is a kernel for {SHOWN[actual]}: {remedy}")


def check_name(name: str) -> str:
    """Return the name. Raises InputError if a guest cannot have it."""
    if not re.fullmatch(NAME, name):
        raise InputError(
            f"'{name[:40]}' cannot be the name of a guest: begin it with a lower-case letter or a digit, and "
            "use at most 32 lower-case letters, digits and '-'"
        )
    return name


def forget(guest: Guest) -> bool:
    """Remove the user's guest. Return False for a built-in guest."""
    if guest.name in built_in():
        return False
    _file(guest.name).unlink(missing_ok=True)
    return True
