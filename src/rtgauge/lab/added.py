# SPDX-License-Identifier: MIT
"""Guests by their names: those that rtgauge knows, and the user's own kernels."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rtgauge.errors import InputError, MeasureError
from rtgauge.lab import places
from rtgauge.lab.guest import BUILT_IN, NAME, Guest
from rtgauge.lab.image import remove_images
from rtgauge.lab.kernel_image import architecture_of
from rtgauge.lab.running_guests import folder_of, process_of
from rtgauge.suggest import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.lab.guest import Architecture

SHOWN = {"x86_64": "x86-64", "aarch64": "arm64"}


def _file(name: str) -> Path:
    return places.home() / "guests" / f"{name}.json"


def guests() -> dict[str, Guest]:
    """Every guest by its name. Raises MeasureError where a file about one is damaged."""
    found = dict(BUILT_IN)
    for path in sorted((places.home() / "guests").glob("*.json")):
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
    places.private(path.parent)
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


def remove(guest: Guest) -> list[str]:
    """Remove what was built for a guest, its disk, and the guest itself where it is the user's own; says what. Raises InputError where it runs."""
    if process_of(guest.name) is not None:
        raise InputError(f"lab:{guest.name} runs: rtgauge lab stop {guest.name}")
    gone: list[str] = []
    if remove_images(guest.name):
        gone.append("its image")
    if folder_of(guest.name).is_dir():
        shutil.rmtree(folder_of(guest.name))
        gone.append("its disk")
    if guest.name not in BUILT_IN:
        _file(guest.name).unlink(missing_ok=True)
        gone.append("what was added")
    return gone
