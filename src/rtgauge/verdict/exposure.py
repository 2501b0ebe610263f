# SPDX-License-Identifier: MIT
"""The exposure of a verdict: how much was measured, which rate of breaking the bound that excludes, and what
the next power of ten takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rtgauge.analysis.confidence import activations_needed, upper_bound
from rtgauge.record.alternation import alternation_of
from rtgauge.record.model import Exposure
from rtgauge.units import NS_PER_S
from rtgauge.verdict.coverage import condition_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import Run, Step, StepKey, Verdict
    from rtgauge.verdict.requirement import Requirement

RAREST = 1e-15
"""No rarer share is aimed at."""


def exposure_of(
    requirement: Requirement, judged: Sequence[tuple[Step, Verdict]], run: Run
) -> Exposure | None:
    """The exposure of all steps together that were judged; None if nothing was counted.

    Violations that come in bursts count less, by each step's design effect. The excluded rate is of this mix
    of loads.
    """
    counted = [(step, verdict.evidence) for step, verdict in judged if verdict.evidence.get("activations")]
    if not counted:
        return None
    confidence = float(requirement.confidence)
    activations = sum(int(evidence["activations"]) for _, evidence in counted)
    violations = sum(int(evidence["violations_possible"]) for _, evidence in counted)
    effects = [float(evidence["design_effect"]) for _, evidence in counted]
    effective = sum(
        int(evidence["activations"]) / effect for (_, evidence), effect in zip(counted, effects, strict=True)
    )
    broken = sum(
        int(evidence["violations_possible"]) / effect
        for (_, evidence), effect in zip(counted, effects, strict=True)
    )
    share = upper_bound(broken, effective, confidence)
    seconds = sum(_measured_s(step) for step, _ in counted)
    target = 10.0 ** (math.ceil(math.log10(share)) - 1)
    needed = (
        activations_needed(
            target,
            confidence,
            violations=violations,
            count=activations,
            design_effect=activations / effective,
        )
        if target >= RAREST
        else None
    )
    keys = [step.key for step, _ in counted]
    return Exposure(
        activations=activations,
        violations=violations,
        runs=len({(key.repeat, key.targets.get("self")) for key in keys}),
        boots=_boots(keys, run),
        conditions=len({condition_of(key) for key in keys}),
        measured_s=seconds,
        confidence=confidence,
        share_excluded=share,
        per_hour_excluded=share * activations / seconds * 3600 if seconds else None,
        next_share=target,
        next_s=None if needed is None or not seconds else seconds * needed / activations,
        next_boards=None if needed is None else math.ceil(needed / activations),
    )


def _measured_s(step: Step) -> float:
    duration = step.parameters.get("duration_ns")
    if isinstance(duration, int) and duration > 0:
        return duration / NS_PER_S
    if step.start_ns is None or step.end_ns is None:
        return 0.0
    return (step.end_ns - step.start_ns) / NS_PER_S


def _boots(keys: Sequence[StepKey], run: Run) -> int:
    """How many boots they were measured in, as far as the run made them; a boot of each target at least."""
    alternation = alternation_of(run)
    if alternation is not None and alternation.boot_between:
        return len({(key.repeat, key.targets.get("self")) for key in keys})
    boots = 0
    last: dict[str, str] = {}
    by_boot = run.plan.get("deployments-by") == "boot"
    for key in keys:
        target = key.targets.get("self", "")
        boots += target not in last or (by_boot and last[target] != key.deployment)
        last[target] = key.deployment
    return boots
