# SPDX-License-Identifier: MIT
"""What the probes on a signal path counted, in a line of words: stimuli, answers, what was lost, what was noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.probe.signal_parameters import other_role

if TYPE_CHECKING:
    from rtgauge.record.model import Result, Step

ALWAYS = ("stimuli", "answers", "edges", "lost")
"""Told also where they are 0."""
WORDS = {
    "early-answer": "before their stimulus",
    "double-edge": "more than one edge at once",
    "late-answer": "after their timeout",
    "told_apart": "taken apart",
    "not_told_apart": "not taken apart",
}


def _counts(result: Result) -> str:
    told = [f"{value} {WORDS.get(name, name)}" for name, value in result.values.items() if isinstance(value, int) and (value or name in ALWAYS)]
    return ", ".join(told)


def signal_lines(step: Step) -> list[str]:
    """ "master: 200 stimuli, 199 answers, 1 lost"; nothing for a step of another probe."""
    lines: list[str] = []
    if step.peer is not None:
        own = other_role(step.peer.role)
        target = step.key.targets["self"]
        lines.append(f"{own} on {target}, with the load and the deployment; {step.peer.role} on {step.peer.target}; each by its own clock")
    for result in step.results:
        if result.name == "signal":
            lines.append(f"{result.labels.get('role')}: {_counts(result)}")
        elif result.name == "parts":
            lines.append(f"parts, interrupt: {result.values.get('interrupt')}: {_counts(result)}")
    return lines
