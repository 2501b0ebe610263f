# SPDX-License-Identifier: MIT
"""Turns pydantic's complaints into one line for a person, and the field's notation into numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from rtgauge.errors import InputError
from rtgauge.nearest import nearest
from rtgauge.units import format_cpu_list, parse_cpu_list, parse_duration_ns


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        return parse_duration_ns(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("write a duration with its unit, like 100us, 1ms, 10s")
    if value != 0:
        raise ValueError(f"{value} has no unit; write it like {value}us, {value}ms or {value}s")
    return 0


def _cpus(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("write a CPU list like 0-3,6")
    return format_cpu_list(parse_cpu_list(value))


DurationNs = Annotated[int, BeforeValidator(_duration)]
"""A duration written as `100us`; an int of ns inside."""

CpuList = Annotated[str, BeforeValidator(_cpus)]
"""A CPU list written as `0-3,6`; the same text, ordered, inside."""


def explain(error: ValidationError, what: str, known: list[str]) -> InputError:
    """The first complaint as an InputError: `what` names the thing (`plan x.toml, step 2`), `known` its keys."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        return InputError(f"{what}: unknown key '{key}'{nearest(key, known)}")
    message = first["msg"].removeprefix("Value error, ")
    return InputError(f"{what}: {where}: {message}" if where else f"{what}: {message}")
