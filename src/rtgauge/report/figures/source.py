# SPDX-License-Identifier: MIT
"""What all figures of one record are drawn from, read once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.report.conditions import Condition, bound_ns, conditions, without_folded
from rtgauge.report.figure_data import ALL, Measured, by_cpu, cpu_order
from rtgauge.report.quantity import LATENCY, quantities, quantity_of

if TYPE_CHECKING:
    from rtgauge.record.reader import Record


@dataclass(frozen=True)
class Source:
    """The record, its conditions by label, what each CPU measured under each, and the required bound (us)."""

    record: Record
    conditions: dict[str, Condition]
    measured: dict[str, dict[str, Measured]]
    bound_us: float | None
    whole: Record
    """With the steps that chapters of their own draw."""

    @classmethod
    def of(cls, record: Record, bound: int | None = None) -> Source:
        """Read the windows of every step. `bound` (ns) replaces that of the verdicts. Raises RecordError."""
        required = bound if bound is not None else bound_ns(record)
        shown = without_folded(record)  # the others are drawn by chapters of their own
        by_label = {condition.label: condition for condition in conditions(shown)}
        numbers = {label: cpus for label, condition in by_label.items() if (cpus := by_cpu(shown, condition))}
        return cls(shown, by_label, numbers, None if required is None else required / 1_000, record)

    @property
    def quantities(self) -> list[str]:
        """What was measured: latency, gap, switch, ...; latency first."""
        return quantities(step for condition in self.conditions.values() for step in condition.steps)

    def only(self, quantity: str) -> Source:
        """What is of this quantity.

        The required bound is one on latency, where that was measured beside others.
        """
        kept = {
            label: condition
            for label, condition in self.conditions.items()
            if quantity_of(condition.steps[0]) == quantity
        }
        measured = {label: cpus for label, cpus in self.measured.items() if label in kept}
        return replace(
            self,
            conditions=kept,
            measured=measured,
            bound_us=self.bound_us if quantity == LATENCY or len(self.quantities) == 1 else None,
        )

    @property
    def cpus(self) -> list[str]:
        """Every CPU that was measured under any condition."""
        return cpu_order({cpu for cpus in self.measured.values() for cpu in cpus if cpu != ALL})

    @property
    def labels(self) -> list[str]:
        """The conditions that have something to draw."""
        return list(self.measured)
