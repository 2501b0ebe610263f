# SPDX-License-Identifier: MIT
"""The tracefs instances in which the kernel records for the recorder's engines."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rtgauge.errors import MeasureError

INSTANCES = (Path("/sys/kernel/tracing/instances"), Path("/sys/kernel/debug/tracing/instances"))
PREFIX = "rtgauge-recorder-"


def _folder() -> Path:
    """Return the folder of all instances. Raises MeasureError if there is none."""
    for folder in INSTANCES:
        if folder.is_dir():
            return folder
    raise MeasureError(
        "the recorder needs a kernel with tracefs; mount it: mount -t tracefs nodev /sys/kernel/tracing"
    )


def check_tracing() -> None:
    """Raise MeasureError unless the kernel can record for this user."""
    if os.geteuid() != 0:
        raise MeasureError("the recorder needs root, because the kernel's events belong to root; use sudo")
    _folder()


def instance_folder(name: str) -> Path:
    """Return the folder of an instance. Raises MeasureError if there is no tracefs."""
    return _folder() / name


def make_instance(name: str) -> str:
    """Make an instance; return its name, which begins with PREFIX and this process. Raises MeasureError."""
    whole = f"{PREFIX}{os.getpid()}-{name}"
    try:
        (_folder() / whole).mkdir()
    except OSError as error:
        raise MeasureError(f"the tracefs instance {whole} cannot be made: {error.strerror}") from None
    return whole


def remove_instance(name: str) -> bool:
    """Remove an instance; return whether it is gone. The kernel refuses while a program uses it."""
    with suppress(OSError):
        (_folder() / name).rmdir()
    return not (_folder() / name).exists()


def remove_leftovers() -> int:
    """Remove the instances of recorders that were killed, and return their number."""
    left = [
        place.name
        for place in _folder().glob(f"{PREFIX}*")
        if not Path(f"/proc/{place.name.removeprefix(PREFIX).partition('-')[0]}").exists()
    ]
    return sum(map(remove_instance, left))
