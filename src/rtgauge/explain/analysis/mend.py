# SPDX-License-Identifier: MIT
"""What to change against a culprit: the audit's rule that the machine does not keep, or else the likeliest one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.system.audit import audit_summary_of
from rtgauge.system.rules import Rule, read_rules

if TYPE_CHECKING:
    from rtgauge.explain.analysis.culprits import RankedCulprit


@dataclass(frozen=True)
class Mend:
    """What to change, and the id of the audit's rule that has the reason and the commands."""

    rule: str
    what: str


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in read_rules()}


def mend_of(ranked: RankedCulprit, facts: Mapping[str, Any]) -> Mend | None:
    """The mend for a culprit on the machine with these facts; None where no rule of the audit concerns it, or the machine keeps all that do."""
    known = [rule for name in ranked.rules if (rule := _rules().get(name)) is not None]
    summary = audit_summary_of(facts)
    if summary is not None:
        differs = {*summary.serious, *summary.moderate, *summary.minor}
        known = [rule for rule in known if rule.title in differs]
    if not known:
        return None
    number = ranked.culprit.number
    what = known[0].mend if number is None else known[0].mend.replace("/proc/irq/N/", f"/proc/irq/{number}/")
    return Mend(known[0].id, what)
