# SPDX-License-Identifier: MIT
"""What all figures of one record are drawn from, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.report.conditions import Condition, bound_ns, conditions
from rtgauge.report.data import ALL, Measured, by_cpu, cpu_order

if TYPE_CHECKING:
    from rtgauge.record.reader import Record


@dataclass(frozen=True)
class Source:
    """The record, its conditions by label, what each CPU measured under each, and the bound that was asked for (us)."""

    record: Record
    conditions: dict[str, Condition]
    measured: dict[str, dict[str, Measured]]
    bound_us: float | None

    @classmethod
    def of(cls, record: Record, bound: int | None = None) -> Source:
        """Read the windows of every step. `bound` (ns) stands in for the one in the verdicts. Raises RecordError."""
        asked = bound if bound is not None else bound_ns(record)
        found = {condition.label: condition for condition in conditions(record)}
        numbers = {label: cpus for label, condition in found.items() if (cpus := by_cpu(record, condition))}
        return cls(record, found, numbers, None if asked is None else asked / 1_000)

    @property
    def cpus(self) -> list[str]:
        """Every CPU that was measured under any condition."""
        return cpu_order({cpu for cpus in self.measured.values() for cpu in cpus if cpu != ALL})

    @property
    def labels(self) -> list[str]:
        """The conditions that have something to draw."""
        return list(self.measured)
