# SPDX-License-Identifier: MIT
"""What is done to a machine to bring a deployment about, as settings of the engine's verb `set`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A value to write. `essential`: without it this is not the deployment; others may refuse, and are counted."""

    path: str
    value: str
    essential: bool = True


@dataclass(frozen=True)
class Note:
    """What is put back at the end, whatever stands there then: hotplug and moves between groups change it unasked."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Write:
    """Settings that are written together, in this order."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Gather:
    """The tasks of the group above go into this one, as far as they do."""

    group: str


Action = Note | Write | Gather


def mask(cpus: list[int]) -> str:
    """[0, 1, 33] -> `"2,00000003"`: a mask as the kernel takes it."""
    digits = f"{sum(1 << cpu for cpu in set(cpus)):x}"
    parts = [digits[max(0, end - 8) : end] for end in range(len(digits), 0, -8)]
    return ",".join(reversed(parts))
