# SPDX-License-Identifier: MIT
"""Validates durations and CPU lists, and turns pydantic's errors into one-line messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, ValidationError

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.units import format_cpu_list, format_duration, parse_cpu_list, parse_duration_ns


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        return 0 if value.strip() == "0" else parse_duration_ns(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("give a duration with a unit, such as 100us, 1ms or 10s")
    if value != 0:
        raise ValueError(f"{value} has no unit; give {value}us, {value}ms or {value}s, for example")
    return 0


def _cpus(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("give a CPU list such as 0-3,6")
    return format_cpu_list(parse_cpu_list(value))


DurationNs = Annotated[int, BeforeValidator(_duration)]
"""A duration, parsed to an int in ns: `100us` -> 100000."""


def between(least: str, most: str) -> AfterValidator:
    """Return a validator of durations (ns) from `least` to `most`, which are texts such as `0s` and `1h`."""

    def check(value: int | None) -> int | None:
        if value is not None and value < parse_duration_ns(least):
            raise ValueError(f"{format_duration(value)} is too short; the minimum is {least}")
        if value is not None and value > parse_duration_ns(most):
            raise ValueError(f"{format_duration(value)} is too long; the maximum is {most}")
        return value

    return AfterValidator(check)


CpuList = Annotated[str, BeforeValidator(_cpus)]
"""A CPU list, parsed to its shortest form: `3,0-2` -> `0-3`."""


def dashed(name: str) -> str:
    """Return the key in a TOML file for a field's name: `up_to` -> `up-to`, `for_` -> `for`."""
    return name.removesuffix("_").replace("_", "-")


NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Names that users give, such as the name of a plan."""
DASHED = ConfigDict(
    extra="forbid", frozen=True, alias_generator=dashed, populate_by_name=False, defer_build=True
)
"""Configures the models of TOML files. Keys have dashes, and unknown keys are errors."""


def _message(details: Mapping[str, Any]) -> str:
    """Return a message for one of pydantic's errors."""
    context: dict[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "literal_error":
            return f"'{details['input']}' is not one of {context['expected']}"
        case "greater_than_equal":
            return f"{details['input']} is too small; the minimum is {context['ge']}"
        case "greater_than":
            return f"{details['input']} is too small; it must be more than {context['gt']}"
        case "less_than_equal":
            return f"{details['input']} is too large; the maximum is {context['le']}"
        case "bool_type" | "bool_parsing":
            return f"'{details['input']}' is neither true nor false"
        case "int_type" | "int_parsing" | "int_from_float":
            return f"'{details['input']}' is not a whole number"
        case "int_parsing_size":
            return "the number has too many digits"
        case "float_type" | "float_parsing":
            return f"'{details['input']}' is not a number"
        case "list_type":
            return (
                f"write it as a list: [{json.dumps(details['input'])}]"
                if isinstance(details["input"], str)
                else "write it as a list, for example [[step]]"
            )
        case "dict_type":
            return "write it as a table, for example [matrix]"
        case "string_type":
            return f"{details['input']!r} is not text"
        case "string_pattern_mismatch":
            pattern = details.get("ctx", {}).get("pattern", "")
            if pattern == NAME_PATTERN:
                return f"'{details['input']}' may contain only letters, digits, '.', '_' and '-'"
            return f"'{details['input']}' does not match the regular expression {pattern}"
        case _:
            return str(details["msg"]).removeprefix("Value error, ")


def first_error(error: ValidationError) -> str:
    """Return the message for the first validation error, without its place."""
    return _message(error.errors()[0])


GONE_KEYS = {"boot-between": 'boot = "each-run"', "deployments-by": 'boot = "each-deployment"'}
"""What keys of earlier versions are called now."""


def explain(error: ValidationError, subject: str, known: list[str]) -> InputError:
    """Turn the first validation error into an InputError.

    `subject`: what was validated, such as `plan x.toml, step 2`. `known`: its valid keys.
    """
    details = error.errors()[0]
    where = ".".join(str(part) for part in details["loc"])
    if details["type"] == "extra_forbidden":
        key = str(details["loc"][-1])
        if key in GONE_KEYS:
            return InputError(f"{subject}: the key {key} no longer exists; write {GONE_KEYS[key]} instead")
        return InputError(f"{subject}: unknown key '{key}'{nearest(key, known)}")
    message = _message(details)
    return InputError(f"{subject}: {where}: {message}" if where else f"{subject}: {message}")
