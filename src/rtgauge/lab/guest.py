# SPDX-License-Identifier: MIT
"""The lab's guests by their names: those that rtgauge knows, and the user's own kernels."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError, MeasureError
from rtgauge.lab import paths
from rtgauge.lab.kernel_image import Architecture, architecture_of
from rtgauge.suggest import nearest

NAME = r"[a-z0-9][a-z0-9-]{0,31}"
SUITE = "trixie"
"""The Debian release that the guests are made of: the first whose kernel source holds PREEMPT_RT itself."""


class Guest(BaseModel):
    """A guest that can be built: Debian's own kernel (`package`), or one of the user's (`kernel`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=f"^{NAME}$")
    architecture: Architecture
    about: str
    package: str | None = None
    kernel: Path | None = None
    modules: Path | None = None
    overlay: Path | None = None
    append: str = ""
    """Words for the kernel's command line at every boot."""


def _debian(name: str, architecture: Architecture, package: str, about: str) -> Guest:
    return Guest(name=name, architecture=architecture, package=package, about=f"Debian {SUITE}, {about}")


BUILT_IN = {
    guest.name: guest
    for guest in (
        _debian("debian", "x86_64", "linux-image-amd64", "stock kernel, x86-64"),
        _debian("debian-rt", "x86_64", "linux-image-rt-amd64", "PREEMPT_RT kernel, x86-64"),
        _debian("debian-arm64", "aarch64", "linux-image-arm64", "stock kernel, arm64"),
        _debian("debian-rt-arm64", "aarch64", "linux-image-rt-arm64", "PREEMPT_RT kernel, arm64"),
    )
}


SHOWN = {"x86_64": "x86-64", "aarch64": "arm64"}


def _file(name: str) -> Path:
    return paths.home() / "guests" / f"{name}.json"


def guests() -> dict[str, Guest]:
    """Every guest by its name. Raises MeasureError where a file about one is damaged."""
    found = dict(BUILT_IN)
    for path in sorted((paths.home() / "guests").glob("*.json")):
        try:
            guest = Guest.model_validate_json(path.read_bytes())
        except ValidationError:
            raise MeasureError(f"{path} is damaged: remove it and add the guest again") from None
        found[guest.name] = guest
    return found


def find_guest(name: str) -> Guest:
    """The guest of this name. Raises InputError."""
    known = guests()
    if name not in known:
        raise InputError(f"the lab has no guest '{name[:40]}'{nearest(name, known)}")
    return known[name]


def add(guest: Guest) -> None:
    """Keep a guest of the user's own. Raises InputError where a name or a file will not do."""
    if guest.name in BUILT_IN:
        raise InputError(f"'{guest.name}' is a guest of rtgauge's own: take another name")
    if guest.kernel is None or not guest.kernel.is_file():
        raise InputError(f"there is no kernel {guest.kernel}: give a bzImage (x86-64) or an Image (arm64)")
    _check_kernel(guest.kernel, guest.architecture)
    for folder in (guest.modules, guest.overlay):
        if folder is not None and not folder.is_dir():
            raise InputError(f"{folder} is no folder")
    path = _file(guest.name)
    paths.private(path.parent)
    new = path.with_suffix(".new")
    new.write_text(guest.model_dump_json(indent=1) + "\n")
    new.replace(path)


def _check_kernel(kernel: Path, architecture: Architecture) -> None:
    try:
        found = architecture_of(kernel)
    except OSError as error:
        raise InputError(f"the kernel {kernel} cannot be read: {error.strerror}") from None
    if found is None:
        raise InputError(f"{kernel} is no kernel that can be booted: give a bzImage (x86-64), or an Image (arm64) and --arm64")
    if found != architecture:
        how = "leave --arm64 out" if found == "x86_64" else "add it with --arm64"
        raise InputError(f"{kernel} is a kernel for {SHOWN[found]}: {how}")


def check_name(name: str) -> str:
    """A name for a guest. Raises InputError."""
    if not re.fullmatch(NAME, name):
        raise InputError(f"'{name[:40]}' cannot be a guest's name: at most 32 small letters, digits and '-'")
    return name


def forget(guest: Guest) -> bool:
    """Forget a guest of the user's own; False: it is one of rtgauge's."""
    if guest.name in BUILT_IN:
        return False
    _file(guest.name).unlink(missing_ok=True)
    return True
