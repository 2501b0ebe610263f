# SPDX-License-Identifier: MIT
"""Which settings are tried first against a cause of lateness."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from rtgauge.explain.analysis.explanation import Culprit, Kind
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.suspects import suspects

if TYPE_CHECKING:
    from rtgauge.explain.analysis.ranking import RankedCulprit


@pytest.mark.parametrize(
    ("culprit", "first"),
    [
        (Culprit(Kind.SOFTIRQ, "NET_RX"), ["rps", "rfs", "irqs-on-isolated"]),
        (Culprit(Kind.TASK, "rcuc", priority=98), ["rcu-callback-threads", "isolated-cpus"]),
        (Culprit(Kind.TASK, "rcuc/1", priority=98), ["rcu-callback-threads", "isolated-cpus"]),
        (Culprit(Kind.TASK, "rcuctl", priority=98), ["rt-tasks-elsewhere", "isolated-cpus"]),
    ],
)
def test_each_cause_has_its_remedies(culprit: Culprit, first: list[str]) -> None:
    mends = ("irqs-on-isolated",) if culprit.kind is Kind.SOFTIRQ else ("isolated-cpus",)
    known = cast("RankedCulprit", SimpleNamespace(culprit=culprit, rules=mends))
    assert suspects([known], set(tried_rules()))[: len(first)] == first
