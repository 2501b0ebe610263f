# SPDX-License-Identifier: MIT
"""The parameters of a step: a probe's own model, or an open model for anything that a record may hold.

The models of a record leave some values open, whose types readers know by their names. Types are checked only
when a file is read (`FROM_A_FILE`); code that uses the values trusts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo

FROM_A_FILE = {"from": "file"}
"""Validation context for values from a file, which may come from anyone."""
MOST_NS = 1 << 62
TEXTS = frozenset(
    ("context", "event", "execution", "explain_events", "lock", "method", "name", "path",
     "peer_path", "phase", "placement", "policy", "role", "rt", "solver", "space", "timer")
)  # fmt: skip
WHOLE_NUMBERS = frozenset(
    ("count", "cycles", "dma_latency_us", "explain_buffer_kb", "nodes", "priority", "seed", "trials")
)
TRUTHS = frozenset(("explain", "free_running", "samples"))
SIGNED_NS = frozenset(("wire_offset_ns",))
LIMITS, INTERVALS = "histogram_limits_ns", "intervals_ns"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return _is_whole(value) and 0 <= cast("int", value) <= MOST_NS


def _is_limits(value: object) -> bool:
    """Return whether the value maps each series to its histogram's limit (ns) or None."""
    if not isinstance(value, dict):
        return False
    limits = cast("dict[str, object]", value)
    return all(
        series.isascii() and series.isdecimal() and len(series) < 10 and (limit is None or _is_time(limit))
        for series, limit in limits.items()
    )


def _is_figure(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MOST_NS


def _are_times(value: object) -> bool:
    return isinstance(value, list) and all(
        time is None or _is_time(time) for time in cast("list[object]", value)
    )


def _parameter(name: str) -> tuple[str, Callable[[object], bool]] | None:
    """Return the type that readers expect of this parameter, and its check; None if any value is valid."""
    if name == LIMITS:
        return "times (ns) of series", _is_limits
    if name == INTERVALS:
        return "a list of times (ns)", _are_times
    if name in SIGNED_NS:
        return "a whole number", _is_whole
    if name.endswith("_ns"):
        return "a time (ns)", _is_time
    if name in TEXTS:
        return "a text", lambda value: isinstance(value, str)
    if name in WHOLE_NUMBERS:
        return "a whole number", _is_whole
    return ("true or false", lambda value: isinstance(value, bool)) if name in TRUTHS else None


def _check(
    values: dict[str, Any], kind_of: Callable[[str], tuple[str, Callable[[object], bool]] | None]
) -> None:
    for name, value in values.items():
        kind = kind_of(name)
        if kind is not None and value is not None and not kind[1](value):
            raise ValueError(f"{name[:60]} is not {kind[0]}")


def check_parameters(parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """Return a step's parameters unchanged.

    Raises ValueError if a parameter from a file lacks the type that readers expect.
    """
    if info.context is FROM_A_FILE:
        _check(parameters, _parameter)
    return parameters


def check_clock(clock: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """Return a step's clock unchanged. Raises ValueError if a file gives an invalid time."""
    if info.context is FROM_A_FILE:
        _check(clock, lambda name: ("a time (ns)", _is_figure) if name.endswith("_ns") else None)
    return clock


class Parameters(BaseModel):
    """Base of all probes' parameters.

    A field's alias is the key that users write (`interval`, with a value such as `1ms`). The field's name
    ends in the unit of the number that it holds (`interval_ns`). By default, the key is the name without the
    unit ns or us.
    """

    model_config = ConfigDict(
        extra="forbid", populate_by_name=False, frozen=True, strict=True, defer_build=True
    )
    alternatives: ClassVar[tuple[frozenset[str], ...]] = ()
    """Groups of keys that exclude each other. The key that is given last replaces the others."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Give each field without an alias its key."""
        for name, field in cls.model_fields.items():
            if field.alias is None:
                key = name.removesuffix("_ns").removesuffix("_us").replace("_", "-")
                field.alias = field.validation_alias = field.serialization_alias = key

    @property
    def values(self) -> dict[str, Any]:
        """All parameters by name, as in step.json."""
        return self.model_dump()

    def get(self, name: str) -> Any:
        """Return the parameter with this name; None if there is none.

        For code that reads steps of any probe. A probe reads its own fields.
        """
        known = name in type(self).model_fields or name in (self.model_extra or ())
        return getattr(self, name) if known else None

    def but(self, **values: Any) -> Self:
        """Return a copy with these changes, which are not checked."""
        return self.model_copy(update=values)

    @classmethod
    def held(cls, values: Mapping[str, Any]) -> Self:
        """Make the model from a record's parameters. Only types are checked, because the values were checked
        before writing.

        Raises ValueError if the probe does not have a parameter, or its type is wrong.
        """
        for name, value in values.items():
            field = cls.model_fields.get(name)
            if field is None:
                raise ValueError(f"'{name[:60]}' is not known")
            if not _fits(value, field.annotation):
                raise ValueError(f"'{name}' has a value of the wrong type")
        return cls.model_construct(**values)


class OpenParameters(Parameters):
    """Parameters of an imported step, or of a record's step before its probe reads them."""

    model_config = ConfigDict(extra="allow")

    def get(self, name: str) -> Any:
        """Return the parameter with this name; None if there is none."""
        return (self.model_extra or {}).get(name)

    @property
    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return dict(self.model_extra or {})


def _fits(value: object, annotation: Any) -> bool:
    """Return whether a value has a field's type. The field's validators are not run."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        values = cast("tuple[object, ...]", value)
        return isinstance(value, tuple) and all(_fits(each, arguments[0]) for each in values)
    if annotation is None:
        return value is None
    if isinstance(value, bool):
        return annotation is bool
    return isinstance(value, annotation)
