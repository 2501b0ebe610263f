# SPDX-License-Identifier: MIT
"""Explanations name the rules of the audit that concern a culprit."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.explain.made_events import HIGHER, MEASURED, Story

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of
from rtgauge.explain.analysis.explanation import Explanation
from rtgauge.explain.analysis.ranking import MENDS, ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.record.facts import Facts
from rtgauge_ext.audit.rules import read_rules


def explained(story: Story, latency_us: float) -> Explanation:
    return explain(story.moment(latency_us), Symbols((), ()))


def test_every_mend_is_a_rule_of_the_audit() -> None:
    assert {rule for rules in MENDS.values() for rule in rules} <= {rule.id for rule in read_rules()}


def test_a_kernel_thread_gets_the_rule_of_isolated_cpus() -> None:
    thread = ("irq/31-eth0", 31, 10)
    story = (
        Story()
        .switch(-500, 1, MEASURED, thread, state=1)
        .timer(0, 1)
        .switch(300, 1, thread, MEASURED, state=1)
    )
    (first, *_) = ranked_culprits([explained(story, 300)])
    for threads in (set[str](), {"logger"}):
        remedy = remedy_of(first, Facts(), threads)
        assert remedy is not None
        assert remedy.rule == "isolated-cpus"


def test_a_timer_of_somebody_else_is_the_tick() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .timer(0, 1)
        .at(50, 1, "local_timer_entry", vector=236)
        .at(250, 1, "local_timer_exit", vector=236)
        .switch(300, 1, HIGHER, MEASURED, state=1)
    )
    explanation = explained(story, 300)
    (part,) = [part for part in explanation.parts if part.culprit.name == "local timer"]
    tick = replace(part, spans=[span for span in part.spans if span[1] - span[0] > 100_000])
    (ranked,) = ranked_culprits([replace(explanation, parts=[tick])])
    remedy = remedy_of(ranked, Facts())
    assert remedy is not None
    assert remedy.rule == "nohz-full"
