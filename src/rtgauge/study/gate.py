# SPDX-License-Identifier: MIT
"""Plans a gate, which adds pairs of runs until it can decide whether the candidate is worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from rtgauge.analysis.gate import looks
from rtgauge.analysis.gate_wish import KEY, GateWish
from rtgauge.errors import InputError
from rtgauge.plan.alternation import alternating_plan, further_pairs
from rtgauge.plan.plan import Overrides, Plan
from rtgauge.record.alternation import Alternation, pair_of
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.suggest import nearest
from rtgauge.verdict.gate_pairs import series_names
from rtgauge.verdict.gate_result import GateResult


def gate_plan(source: str, overrides: Overrides, alternation: Alternation, wish: GateWish) -> Plan:
    """Plan the first pair, which shows whether a gate can decide anything here.

    Raises InputError if the number of pairs is impossible, or if not exactly one series of the plan matches.
    """
    looks(wish.max_pairs)
    plan = alternating_plan(source, overrides, alternation, 1)
    names = series_names([key for key in plan.steps if key.repeat == 1])
    if wish.series is not None:
        matching = [name for name in names if fnmatchcase(name, wish.series)]
        if len(matching) != 1:
            what = (
                f" matches several series; give one of {', '.join(matching)}"
                if matching
                else f" is not in the plan{nearest(wish.series, names)}"
            )
            raise InputError(f"--series {wish.series}{what}")
        wish = wish.model_copy(update={"series": matching[0]})
    return replace(
        plan, name="gate", written={**plan.written, "name": "gate", KEY: wish.model_dump(mode="json")}
    )


def next_pairs(record: Record) -> Sequence[StepKey]:
    """Return the steps of the next pairs; empty if the gate has decided, or cannot decide."""
    result = GateResult.of(record)
    planned = max(pair_of(key.repeat) for key in record.run.planned)
    return further_pairs(record.run, range(planned + 1, planned + result.next_pairs + 1))
