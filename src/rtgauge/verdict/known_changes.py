# SPDX-License-Identifier: MIT
"""Applies the changes for the worse that the user knows: accepted changes, and series muted until a date.

They are in a TOML file, so that they can be reviewed, and kept with the change that caused them:

    [[accept]]
    series = "wakeup/latency/cpu"
    up-to = "15%"
    reason = "the new driver polls"

    [[mute]]
    series = "wakeup/latency/network"
    until = 2027-01-31
    reason = "the switch is replaced in January"
"""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rtgauge.errors import EXIT_OK
from rtgauge.input_file import read_toml
from rtgauge.units import format_change, parse_percent
from rtgauge.validation import explain
from rtgauge.verdict.gate_result import GateOutcome, GateResult


def _percent(written: object) -> float:
    return parse_percent(str(written))


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)

    series: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class Accepted(_Entry):
    """A series (`*` stands for any text) that may grow by a limited amount."""

    up_to: Annotated[float, BeforeValidator(_percent)] = Field(alias="up-to")


class Muted(_Entry):
    """A series that cannot fail the gate up to and including a date."""

    until: date


class KnownChanges(BaseModel):
    """The complete file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    accept: list[Accepted] = Field(default_factory=list[Accepted])
    mute: list[Muted] = Field(default_factory=list[Muted])

    @classmethod
    def read(cls, path: Path) -> KnownChanges:
        """Read the file. Raises InputError, which names the place if it is invalid."""
        try:
            changes = cls.model_validate(read_toml(path, str(path)))
        except ValidationError as error:
            raise explain(
                error, str(path), ["accept", "mute", "series", "reason", "up-to", "until"]
            ) from None
        return changes

    def applied(self, result: GateResult, today: date) -> GateResult:
        """Return the result. If its change for the worse is known, set status 0 and add the reason."""
        if result.outcome not in {GateOutcome.WORSE, GateOutcome.FAILS} or result.primary is None:
            return result
        change = result.primary.change
        for accepted in self.accept if result.outcome is GateOutcome.WORSE else ():
            matches = fnmatchcase(result.primary.series, accepted.series)
            if matches and change is not None and change <= accepted.up_to:
                return _with_reason(
                    result, f"accepted up to {format_change(accepted.up_to)}: {accepted.reason}"
                )
        for muted in self.mute:
            if fnmatchcase(result.primary.series, muted.series) and today <= muted.until:
                return _with_reason(result, f"muted until {muted.until}: {muted.reason}")
        return result


def _with_reason(result: GateResult, reason: str) -> GateResult:
    return result.model_copy(update={"accepted": reason, "status": EXIT_OK})
