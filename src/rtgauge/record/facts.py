# SPDX-License-Identifier: MIT
"""A value among the facts of a target (system.json), which may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def fact(facts: Mapping[str, Any], *path: str) -> Any:
    """The value at a path of keys, whatever the facts of a record from elsewhere have on the way there; None
    if there is none or it is unknown.
    """
    value: Any = facts
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(key)
    return None if value in (None, "unknown", "") else value
