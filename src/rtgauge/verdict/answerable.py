# SPDX-License-Identifier: MIT
"""Whether a plan can answer a requirement at all, before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.probe.registry import PROBES, get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import StepKey
    from rtgauge.verdict.requirement import Requirement


def check_answerable(requirement: Requirement, steps: Sequence[StepKey], plan: str) -> None:
    """Raises InputError, which names a command that can, if no step of the plan measures what the
    requirement bounds.

    `plan`: what the user called it, such as `quick` or `probe wakeup`.
    """
    from rtgauge.verdict.run_verdict import measuring_command

    measured = {
        metric.name for key in steps for metric in get(key.probe).metrics if metric.space in {None, key.space}
    }
    if requirement.metric in measured:
        return
    bounded = sorted(
        name
        for name in measured
        if any(
            known.bound is not None for probe in PROBES.values() if (known := probe.metric(name)) is not None
        )
    )
    what = " and ".join(bounded) or "nothing that a requirement bounds"
    raise InputError(
        f"{plan} cannot answer a requirement on {requirement.metric}: it measures {what}; this can: "
        f"{measuring_command(requirement)}"
    )
