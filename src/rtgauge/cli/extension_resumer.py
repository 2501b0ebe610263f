# SPDX-License-Identifier: MIT
"""What an extension tells `rtgauge resume` and `rtgauge show` about something that is no record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rtgauge.errors import InputError
from rtgauge.extension import load, registered
from rtgauge.known_extensions import from_where, known


@dataclass(frozen=True)
class ResumeOptions:
    """Options of `rtgauge resume` that a resumer may take."""

    max_pairs: int | None
    """The new total of pairs; None: as before."""
    wait_s: float
    """How long to wait for the machine's lock, in s."""
    json: bool


@dataclass(frozen=True)
class Resumer:
    """Continues one kind of thing."""

    kind: str
    """For errors: `a fleet`."""
    question: Callable[[Path], str]
    """Says what it asks, for the options that it refuses; raises RtgaugeError if it cannot be read."""
    takes: frozenset[str]
    """Names of the options that it takes: `max_pairs`, `json`. All others are refused."""
    resume: Callable[[Path, ResumeOptions], None]
    show: Callable[[Path, bool], None] | None = None
    """Prints its answer for `rtgauge show`, as JSON or not; None: it has none."""


def resumer_of(path: Path) -> Resumer | None:
    """Return what continues a file or folder; None if no extension does.

    Raises InputError if the extension that does cannot be used, or is not installed.
    """
    for name in registered("resumers"):
        if _is(path, name):
            return cast("Resumer", load("resumers", name, Resumer))
    for added in known().values():
        for name in added.get("resumers", ()):
            if _is(path, name) and (missing := from_where("resumers", name)):
                raise InputError(f"rtgauge cannot read {path}{missing}")
    return None


def _is(path: Path, name: str) -> bool:
    """Return whether a path is what a resumer's name says: a file with a suffix, or a folder with a file."""
    return path.suffix == name and path.is_file() if name.startswith(".") else (path / name).exists()
