# SPDX-License-Identifier: MIT
"""Parameters of a step: a probe's own model, or an open one of whatever a record holds."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Mapping


class Parameters(BaseModel):
    """Parameters of a probe.

    Written in the field's notation under the alias, held as numbers under the name.
    """

    model_config = ConfigDict(
        extra="forbid", populate_by_name=False, frozen=True, strict=True, defer_build=True
    )

    @property
    def values(self) -> dict[str, Any]:
        """Every parameter by its name, as step.json has it."""
        return self.model_dump()

    def get(self, name: str) -> Any:
        """The parameter of this name; None if there is none.

        For what reads steps of any probe: a probe knows its own fields.
        """
        known = name in type(self).model_fields or name in (self.model_extra or ())
        return getattr(self, name) if known else None

    def but(self, **values: Any) -> Self:
        """The same parameters except for these, which are not checked."""
        return self.model_copy(update=values)

    @classmethod
    def held(cls, values: Mapping[str, Any]) -> Self:
        """The parameters that a record holds. They were checked when they were written, so here only their
        types are.

        Raises ValueError for a parameter that the probe does not have, or of another type.
        """
        for name, value in values.items():
            field = cls.model_fields.get(name)
            if field is None:
                raise ValueError(f"'{name[:60]}' is not known")
            if not _fits(value, field.annotation):
                raise ValueError(f"'{name}' has a value of another type")
        return cls.model_construct(**values)


class OpenParameters(Parameters):
    """Parameters as a record has them: of an imported step, or before the probe makes its own of them."""

    model_config = ConfigDict(extra="allow")

    def get(self, name: str) -> Any:
        """The parameter of this name; None if there is none."""
        return (self.model_extra or {}).get(name)

    @property
    def values(self) -> dict[str, Any]:
        """Every parameter by its name."""
        return dict(self.model_extra or {})


def _fits(value: object, annotation: Any) -> bool:
    """Whether a value is of a field's type, whatever validators it has."""
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
