# SPDX-License-Identifier: MIT
"""What an extension tells `rtgauge restore --applied` about settings that it keeps at each boot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from rtgauge.extension import load, registered


@dataclass(frozen=True)
class Keeper:
    """Keeps settings at each boot."""

    undo: Callable[[], bool]
    """Undoes what is kept on this machine. Returns whether there was something to undo."""


def keepers() -> list[Keeper]:
    """Return all keepers. Raises InputError if the extension of one cannot be used."""
    return [cast("Keeper", load("keepers", name, Keeper)) for name in registered("keepers")]
