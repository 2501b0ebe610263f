# SPDX-License-Identifier: MIT
"""What an extension tells `rtgauge restore` about what it keeps on this machine at each boot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from rtgauge.extension import load, registered


@dataclass(frozen=True)
class Keeper:
    """Keeps settings, or a service, at each boot."""

    undo: Callable[[], bool]
    """Undoes what is kept on this machine, for --applied. Returns whether that has also restored the settings
    in the journal.
    """
    kept: Callable[[], list[str]] = list
    """Returns a line for each service that is kept on this machine, and how to remove it."""


def keepers() -> list[Keeper]:
    """Return all keepers. Raises InputError if the extension of one cannot be used."""
    return [cast("Keeper", load("keepers", name, Keeper)) for name in registered("keepers")]
