# SPDX-License-Identifier: MIT
"""The error for a guard that does not start: most often because another run holds the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.errors import LockedError, MeasureError

if TYPE_CHECKING:
    from collections.abc import Mapping


def guard_error(line: Mapping[str, Any], name: str | None = None) -> MeasureError:
    """The error of a guard's line `error` (docs/formats/agent.md); `name`: the target, where the message has to say it."""
    message = str(line.get("message")) if name is None else f"{name}: {line.get('message')}"
    if line.get("code") != "locked":
        return MeasureError(message)
    error = LockedError(message)
    error.run = str(line["run"]) if line.get("run") is not None else None
    return error
