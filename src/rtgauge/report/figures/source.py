# SPDX-License-Identifier: MIT
"""What all figures of one record are drawn from, read once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rtgauge.report.figure_data import ALL, Measured, by_cpu, cpu_order
from rtgauge.report.record_view import LATENCY, Condition, RecordView, quantities, quantity_of


@dataclass(frozen=True)
class Source:
    """The record without the steps that chapters of their own draw, its conditions by label, what each CPU
    measured under each, and the required bound (us).
    """

    view: RecordView
    conditions: dict[str, Condition]
    measured: dict[str, dict[str, Measured]]
    bound_us: float | None
    whole: RecordView
    """With all steps."""

    @classmethod
    def of(cls, whole: RecordView) -> Source:
        """Read the windows of every step. Raises RecordError."""
        view = whole.unfolded  # the others are drawn by chapters of their own
        by_label = {condition.label: condition for condition in view.conditions}
        numbers = {
            label: cpus for label, condition in by_label.items() if (cpus := by_cpu(view.record, condition))
        }
        bound_us = None if whole.bound_ns is None else whole.bound_ns / 1_000
        return cls(view, by_label, numbers, bound_us, whole)

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
