# SPDX-License-Identifier: MIT
"""What one benchmark found: a figure with its target, or what could not be measured and why."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
REST_S = 1.0


class CannotMeasure(Exception):  # noqa: N818
    """One figure could not be measured; the text says what is missing and what to do."""


@dataclass(frozen=True)
class Figure:
    """One number of the benchmark: the median of `values` (one a round, or one in all), in `unit`.

    `at_most` or `at_least` is the target that the project set itself; None where the number is there for
    scale only. `note` says how to read it.
    """

    name: str
    values: list[float]
    unit: str = ""
    at_most: float | None = None
    note: str = ""
    at_least: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        interval = middle_95(self.values) or (self.median, self.median)
        if self.at_least is not None:
            met, nearly = self.median >= self.at_least, interval[1] >= self.at_least
        elif self.at_most is not None:
            met, nearly = self.median <= self.at_most, interval[0] <= self.at_most
        else:
            return ""
        return "ok" if met else "short of it, within the noise" if nearly else "short of it"

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "min": min(self.values),
            "max": max(self.values),
            "rounds": len(self.values),
            "middle_95": middle_95(self.values),
            "target_at_most": self.at_most,
            "target_at_least": self.at_least,
            "verdict": self.verdict or None,
            "note": self.note,
            "values": self.values,
        }


@dataclass
class Findings:
    """What one part of the benchmark gives back."""

    figures: list[Figure] = field(default_factory=list[Figure])
    missing: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


class Repeated:
    """Repeats what failed, `most` times in all, and keeps count: on a machine that others use too, a CPU may
    be gone for a second.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.reasons: list[str] = []

    def __call__(self, measure: Callable[[], T]) -> T:
        """What `measure` gives. Raises CannotMeasure where it failed too often."""
        while True:
            try:
                return measure()
            except CannotMeasure as error:
                self.reasons.append(str(error))
                if len(self.reasons) > self.most:
                    raise
                time.sleep(REST_S)

    def note(self, what: str) -> list[str]:
        """A line that tells of the failures, or none."""
        return (
            [f"{what}: failed {len(self.reasons)} times and was repeated: {self.reasons[-1]}"]
            if self.reasons
            else []
        )


def middle_95(values: list[float]) -> tuple[float, float] | None:
    """A confidence interval of at least 95 % for the median, from order statistics (the sign test); None
    below 6 values.
    """
    n = len(values)
    ranked = sorted(values)
    probability, below = 0.5**n, 0.0
    for k in range(n // 2 + 1):
        below += probability
        if below > 0.025:
            return (ranked[k - 1], ranked[n - k]) if k else None
        probability *= (n - k) / (k + 1)
    return None


def number(value: float, unit: str) -> str:
    """As the field writes it: ratios with three digits after the point, times with what their size
    deserves.
    """
    if unit == "":
        return f"{value:.3f}"
    if unit == "ns" or abs(value - round(value)) < 1e-9:
        return f"{value:.0f} {unit}".rstrip()
    return f"{value:.3g} {unit}"


def line(figure: Figure) -> str:
    """One line for people."""
    text = f"  {figure.name:<66} {number(figure.median, figure.unit):>12}"
    if len(figure.values) > 1:
        text += (
            f"  ({number(min(figure.values), figure.unit)} .. "
            f"{number(max(figure.values), figure.unit)}, {len(figure.values)} rounds"
        )
        interval = middle_95(figure.values)
        text += (
            f"; 95 %: {number(interval[0], figure.unit)} .. {number(interval[1], figure.unit)})"
            if interval
            else ")"
        )
    if figure.at_most is not None:
        text += f"  target <= {number(figure.at_most, figure.unit)}: {figure.verdict}"
    if figure.at_least is not None:
        text += f"  target >= {number(figure.at_least, figure.unit)}: {figure.verdict}"
    return text + (f"  [{figure.note}]" if figure.note else "")
