# SPDX-License-Identifier: MIT
"""Finds loads by name, and imports them when needed."""

from __future__ import annotations

from typing import cast

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.load.load import Load
from rtgauge.nearest_name import nearest


def names() -> list[str]:
    """Return the names of all loads."""
    return list(extension.registered("loads"))


def get(name: str) -> Load:
    """Return the load with this name. Some names take a parameter after a colon (`swarm:100`).

    Raises InputError, with the nearest name, if there is no such load, or if its package cannot be used.
    """
    head, colon, word = name.partition(":")
    if head not in extension.registered("loads"):
        raise InputError(f"unknown load '{name}'{from_where('loads', head) or nearest(head, names())}")
    kind = cast("type[Load]", extension.load("loads", head, Load))
    if not colon:
        return kind()
    if kind.parameter and word:
        return kind(word)  # type: ignore[call-arg] - its constructor takes what `parameter` says
    raise InputError(f"load '{name[:100]}': write {f'{head}:{kind.parameter}' if kind.parameter else head}")
