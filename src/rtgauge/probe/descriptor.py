# SPDX-License-Identifier: MIT
"""What a probe is to the host: its parameters, and how the engine is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rtgauge.validation import explain


class Parameters(BaseModel):
    """Parameters of a probe. Written in the field's notation under the alias, held as numbers under the name."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False, frozen=True, strict=True)


class Probe(ABC):
    """One kind of measurement."""

    name: ClassVar[str]
    help: ClassVar[str]
    """A line, in a list of probes."""
    about: ClassVar[str]
    """What its command's help says: a line, an empty one, and more where it is needed."""
    examples: ClassVar[tuple[str, ...]]
    """Options of its command that make sense together."""
    parameters: ClassVar[type[Parameters]]
    alternatives: ClassVar[tuple[frozenset[str], ...]] = ()
    """Groups of keys of which one is given: the one that is said later replaces the other."""

    argument: ClassVar[str | None] = None
    """The parameter that its command takes without a name in front of it, and must have."""
    argument_metavar: ClassVar[str | None] = None
    files: ClassVar[Mapping[str, str]] = {}
    """Parameters that are a file's name on the command line, where what they keep goes, and their help; `samples` is one for all."""
    searches: ClassVar[bool] = False
    """Whether its command can look for the largest of it that keeps every deadline."""
    in_plans_only: ClassVar[frozenset[str]] = frozenset()
    """Parameters that its command does not have."""
    takes_load: ClassVar[bool] = True
    takes_requirement: ClassVar[bool] = False
    """Whether it measures what a requirement bounds, which is `bounds`."""
    bounds: ClassVar[str] = "latency"

    @abstractmethod
    def arguments(self, parameters: dict[str, Any], samples_dir: str | None) -> list[str]:
        """The engine's command line: verb and options, for parameters as `normalise` gives them."""

    @abstractmethod
    def expected_ns(self, parameters: dict[str, Any]) -> int | None:
        """How long it takes with its warm-up; None where it runs until it is stopped."""


def key_names(probe: Probe) -> list[str]:
    """The parameters' names as people write them (`interval`, `warm-up`)."""
    return [field.alias or name for name, field in probe.parameters.model_fields.items()]


def normalise(probe: Probe, written: dict[str, Any], what: str) -> dict[str, Any]:
    """`{"interval": "1ms"}` -> every parameter with its default, in numbers. Raises InputError; `what` names the place."""
    try:
        return probe.parameters.model_validate(written).model_dump()
    except ValidationError as error:
        raise explain(error, what, key_names(probe)) from None
