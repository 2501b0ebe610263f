# SPDX-License-Identifier: MIT
"""A load that outlives the process that started it: what another one needs to go on with it."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from rtgauge.target.target import ProgramPlace


class KeptPart(TypedDict):
    """One program of the load."""

    kept: ProgramPlace
    argv: list[str]
    wanted: dict[str, Any]
    notes: list[str]
    pids: list[int]
    cpu_ticks_begin: int | None


class KeptLoad(TypedDict):
    """The load beside a step; times in ns of the target's CLOCK_MONOTONIC."""

    started_ns: int | None
    warm_ns: int | None
    begin_ns: int | None
    parts: list[KeptPart]
