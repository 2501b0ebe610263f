# SPDX-License-Identifier: MIT
"""What people call the quantity that a step's figures and tables show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.probe.registry import DEFAULT, PROBES, probe_of, requirement_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rtgauge.record.model import Step

LATENCY = "latency"
SEVERAL = "time"
"""Name of a mix of several quantities."""


def has_distribution(step: Step) -> bool:
    """Whether all series of its main quantity are one distribution: not those of a task set, nor waits for
    different locks.
    """
    return not step.tasks and probe_of(step).pooled


def has_releases(step: Step) -> bool:
    """Whether what is measured is released at times of its own, so that activations can be missed."""
    return probe_of(step).missed is not None


def quantity_of(step: Step) -> str:
    """The main quantity of a step: latency, gap, switch, preemption, hand-over, wait, ..."""
    return step.total.metric if step.total is not None else LATENCY


def quantities(steps: Iterable[Step]) -> list[str]:
    """Every main quantity of these steps, latency first; task sets have tables and figures of their own."""
    names = dict.fromkeys(quantity_of(step) for step in steps if not step.tasks and step.total is not None)
    return sorted(names, key=lambda name: name != LATENCY)


def example_requirement(steps: Sequence[Step]) -> str | None:
    """A requirement that bounds what these steps measured, or what the default probe measures; None where
    nothing of it can be bounded.
    """
    measured = [(probe_of(step), quantity_of(step)) for step in steps] or [(PROBES[DEFAULT], LATENCY)]
    examples = {
        metric.name: metric.bound.example
        for probe, name in measured
        if (metric := probe.metric(name)) is not None and metric.bound is not None
    }
    return next((examples[name] for name in requirement_metrics() if name in examples), None)


def common_quantity(steps: Iterable[Step]) -> str:
    """The one quantity of all these steps, "time" where they have several, "latency" where they have none."""
    names = quantities(steps)
    return names[0] if len(names) == 1 else SEVERAL if names else LATENCY


def capital(text: str) -> str:
    """ "gap" -> "Gap"; nothing else changes."""
    return text[:1].upper() + text[1:]
