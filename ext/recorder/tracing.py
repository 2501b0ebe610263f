# SPDX-License-Identifier: MIT
"""The tracefs instances in which the kernel records for the recorder's engines."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.record.own_folder import OwnFolder
from rtgauge_ext.recorder.program import start_of

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
    """Make an instance; return its name: PREFIX, this process and its start. Raises MeasureError."""
    whole = f"{PREFIX}{os.getpid()}-t{start_of(os.getpid())}-{name}"
    try:
        (_folder() / whole).mkdir()
    except OSError as error:
        raise MeasureError(f"the tracefs instance {whole} cannot be made: {error.strerror}") from None
    return whole


def remove_instance(name: str) -> bool:
    """Remove an instance and its dynamic events, as engine/trace/tracepoints.c names them; return whether it
    is gone. The kernel refuses while a program uses it.
    """
    with suppress(OSError):
        (_folder() / name).rmdir()
    _remove_events(name.replace("-", "_"))
    return not (_folder() / name).exists()


def remove_leftovers(in_use: Collection[str] = ()) -> int:
    """Remove the instances of recorders that were killed, and those of this recorder that the kernel refused
    to remove because somebody used them; return their number. `in_use`: the instances that this one needs.
    """
    left = [place.name for place in _folder().glob(f"{PREFIX}*") if _is_left(place.name, PREFIX, in_use)]
    removed = sum(map(remove_instance, left))
    prefix, groups = PREFIX.replace("-", "_"), {name.replace("-", "_") for name in in_use}
    for group in (_folder().parent / "events").glob(f"{prefix}*"):  # their instances are gone
        if _is_left(group.name, prefix, groups):
            _remove_events(group.name)
    return removed


def _remove_events(group: str) -> None:
    root = _folder().parent
    if (root / "events" / group).exists():
        with (
            suppress(OSError),
            closing(OwnFolder.existing(root)) as folder,
            folder.open_log("dynamic_events", append=True) as file,
        ):
            file.write(f"-:{group}/\n".encode())


def _is_left(name: str, prefix: str, in_use: Collection[str]) -> bool:
    """Return whether the recorder that made a name has ended, or is this one and does not use it."""
    owner = re.match(r"(\d+)(?:[-_]t(\d+))?", name.removeprefix(prefix))
    if owner is None:
        return False
    start = start_of(int(owner[1]))
    if start is None or owner[2] not in {None, str(start)}:
        return True
    return int(owner[1]) == os.getpid() and owner[2] is not None and name not in in_use
