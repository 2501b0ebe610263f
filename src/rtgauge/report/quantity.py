# SPDX-License-Identifier: MIT
"""What people call the quantity that a step's figures and tables show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rtgauge.record.model import Step

LATENCY = "latency"
SEVERAL = "time"
"""Stands for more than one quantity."""
SAMPLED = {"noise", "switch", "preempt", "semaphore", "inversion"}
"""Probes that do something again and again without a release time: none of it can be missed."""
EXAMPLES = {LATENCY: "period=1ms latency<=200us hardness=100%", "response": "response<=500us hardness=99.9%", "jitter": "jitter<=200us hardness=99.9%"}
"""Quantities that a requirement can bound."""
PLURALS = {"latency": "latencies", "switch": "switches"}


def has_distribution(step: Step) -> bool:
    """Whether all series of its main quantity say something together: not those of a task set, nor waits for different locks."""
    return not step.tasks and step.key.probe != "inversion"


def has_releases(step: Step) -> bool:
    """Whether what is measured is released at times of its own, so that activations can be missed."""
    return step.key.probe not in SAMPLED


def quantity_of(step: Step) -> str:
    """The main quantity of a step: latency, gap, switch, preemption, hand-over, wait, ..."""
    return step.total.metric if step.total is not None else LATENCY


def quantities(steps: Iterable[Step]) -> list[str]:
    """Every main quantity of these steps, latency first; task sets have tables and figures of their own."""
    found = dict.fromkeys(quantity_of(step) for step in steps if not step.tasks and step.total is not None)
    return sorted(found, key=lambda name: name != LATENCY)


def example_requirement(steps: Sequence[Step]) -> str | None:
    """A requirement that could be asked of these steps; None where they measured nothing that one bounds."""
    found = {quantity_of(step) for step in steps} or {LATENCY}
    return next((EXAMPLES[quantity] for quantity in EXAMPLES if quantity in found), None)


def common_quantity(steps: Iterable[Step]) -> str:
    """The one quantity of all these steps, "time" where they have several, "latency" where they have none."""
    found = quantities(steps)
    return found[0] if len(found) == 1 else SEVERAL if found else LATENCY


def plural_of(quantity: str) -> str:
    """ "latency" -> "latencies"."""
    return PLURALS.get(quantity, f"{quantity}s")


def capital(text: str) -> str:
    """ "gap" -> "Gap"; nothing else changes."""
    return text[:1].upper() + text[1:]
