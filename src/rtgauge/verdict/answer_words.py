# SPDX-License-Identifier: MIT
"""Words the answer to a requirement: who decides, the number against the allowed one, and the worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtgauge.record.model import Verdict, VerdictWord
from rtgauge.units import (
    NS_PER_S,
    format_bound,
    format_count,
    format_multiple,
    format_percentage,
    format_share,
    format_span,
    format_time,
    plural,
    round_up,
)
from rtgauge.verdict.decision import INDEPENDENT
from rtgauge.verdict.gaps import GAP

LATE = {"latency": "later than", "jitter": "off by more than"}
"""How a value of these metrics breaks the bound; of others, it is "longer than" the bound."""
LATE_CYCLE = {
    "latency": "started more than {} late",
    "response": "ended more than {} after their release",
    "jitter": "had a period that was off by more than {}",
}
"""The same of a watched thread's cycles."""


def missing_words(evidence: Mapping[str, Any], *, short: bool = False) -> str | None:
    """Return how many activations would decide: "needs 41,000 activations, has 20,062"; None if that is not
    what is missing. `short`: without the noun.
    """
    needed, activations = evidence.get("activations_needed"), evidence.get("activations")
    if not isinstance(needed, int) or not isinstance(activations, int) or needed <= activations:
        return None
    about = format_count(int(round_up(needed, 2)))
    return f"needs {about}{'' if short else ' activations'}, has {format_count(activations)}"


def late_share(evidence: Mapping[str, Any]) -> str | None:
    """Return the share that broke the bound: "1.8 %", "none", "1.01 % to 4.54 %" if some only may have, or
    "at least 1.01 %" if any may have; None if nothing was counted. The first line and its row give the same
    text.
    """
    every = int(evidence.get("activations") or 0)
    counts = [evidence.get(f"violations_{name}") for name in ("certain", "possible")]
    if not every or None in counts:
        return None
    least, most = (format_share(int(count) / every) if count else "none" for count in counts)
    if counts[0] != counts[1] == every:
        return "unknown" if least == "none" else f"at least {least}"
    return least if least == most else f"{least} to {most}" if least != "none" else f"at most {most}"


def _late(evidence: Mapping[str, Any]) -> str:
    """Return the number that decides: "1.8 % later than 200 us or missed"."""
    metric, bound = str(evidence.get("metric")), format_bound(evidence["bound_ns"])
    counted = int(evidence["activations"])
    certain, possible = int(evidence["violations_certain"]), int(evidence["violations_possible"])
    is_every = evidence["hardness"] == 1.0
    share = of = f"{format_count(certain) if certain else 'none'} of {format_count(counted)}"
    if 0 < certain < possible:
        share = of = f"at least {of}"
    if (not is_every and certain) or (possible > certain and not (is_every and certain)):
        share = str(late_share(evidence))
        of = f"{share} of {format_count(counted)}"
    if evidence.get("task") is not None:
        return f"{of} cycles {LATE_CYCLE.get(metric, f'took longer than {{}} ({metric})').format(bound)}"
    missed = " or missed" if evidence.get("missed") else ""
    return f"{share} {LATE.get(metric, 'longer than')} {bound}{missed}"


def _late_gaps(evidence: Mapping[str, Any]) -> str:
    certain, every, bound = int(evidence["violations_certain"]), evidence["gaps"], evidence["bound_ns"]
    counted = f"{format_count(certain)} of {plural(every, 'gap')}" if certain else "no gap"
    observed = evidence.get("observed_ns")
    during = f" in {format_span(observed / NS_PER_S)}" if isinstance(observed, int) else ""
    return f"{counted} longer than {format_bound(bound)}{during}"


def _at_most(evidence: Mapping[str, Any]) -> str:
    """Return which share or rate the measurement does not exclude."""
    confidence = format_percentage(float(evidence["confidence"]))
    if "per_hour_at_most" in evidence:
        most = format_multiple(round_up(float(evidence["per_hour_at_most"])))
        return (
            f"at most {most} longer gaps come per hour on each CPU ({confidence} confidence, if gaps are "
            "independent)"
        )
    independent = ", if violations are independent" if evidence["assumes"] == INDEPENDENT else ""
    share = format_share(float(evidence["violation_share_at_most"]), up=True)
    return f"at most {share} break the bound ({confidence} confidence{independent})"


def _allowed(evidence: Mapping[str, Any]) -> str:
    allowed = round(1 - float(evidence["hardness"]), 12)  # 1 - 0.999999 is not 0.000001
    return f"{format_percentage(allowed)} allowed" if allowed > 0 else "none allowed"


def answer_words(verdict: Verdict) -> str:
    """Return the answer without the name of what decides: "1.8 % later than 200 us or missed, 1 % allowed;
    worst 13.1 ms on CPU 1".

    If a verdict "cannot tell" is not about counts, this is its reason.
    """
    evidence, cannot = verdict.evidence, verdict.word is VerdictWord.CANNOT_TELL
    if cannot and "activations_needed" not in evidence:
        return verdict.reason
    number = _late_gaps(evidence) if evidence.get("metric") == GAP else _late(evidence)
    clauses = [f"{number}, {_allowed(evidence)}"]
    if verdict.word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        clauses.append(_at_most(evidence))
    if cannot:
        clauses.append(
            evidence.get("why")
            or missing_words(evidence)
            or "this share is too close to the allowed share to tell"
        )
    largest, cpu = evidence.get("max_ns"), evidence.get("max_cpu")
    if isinstance(largest, int):
        clauses.append(f"worst {format_time(largest)}" + (f" on CPU {cpu}" if isinstance(cpu, int) else ""))
    return "; ".join(clauses)
