# SPDX-License-Identifier: MIT
"""Says whose the late cycles are: this machine's, or the card's, the wire's or the device's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rtgauge.explain.analysis.explanation import CARD, NOT_SELF, SELF, WIRE_OR_DEVICE
from rtgauge.record.model import SEGMENT, Result, SeriesSummary, Step
from rtgauge.record.windows import Windows
from rtgauge.report.text import whole
from rtgauge.units import format_bound
from rtgauge.verdict.next_step import MOST, Blame
from rtgauge.verdict.requirement import Requirement
from rtgauge.verdict.violations import count_violations

PARTS = {
    "wake-up": "wake-up",
    "send": "send",
    "wire-and-device": "wire and device",
    "card": "card",
    "receive": "receive",
}
"""The parts of a response in their order."""
SIDE_WORDS = {SELF: "this machine itself (self)"}
TOGETHER = "several parts together"


def part_side(name: str, *, by_card: bool) -> str:
    """Return where a part of a response is spent (SIDES). `by_card`: whether the card has its own part."""
    if name == "wire-and-device":
        return WIRE_OR_DEVICE if by_card else NOT_SELF
    return CARD if name == CARD else SELF


def counts_of(step: Step) -> Result | None:
    """Return the counts of a step's cycles; None if it has none."""
    return next((result for result in step.results if result.name == "path"), None)


def count_of(result: Result, name: str) -> int:
    """Return one of the counts in a result; 0 if it has none of this name."""
    value = result.values.get(name)
    return value if isinstance(value, int) else 0


def parts_of(step: Step) -> dict[str, SeriesSummary]:
    """Return the parts of a step's responses that were measured, in their order."""
    known = {series.labels.get(SEGMENT): series for series in step.series if series.metric == "response"}
    return {name: known[name] for name in PARTS if name in known and known[name].count}


@dataclass(frozen=True)
class LateCycles:
    """The late cycles of a step, and how many of them each side made late: side -> reason -> cycles.

    Only the distributions of the parts are known. So a cycle counts for a side if one of its parts is longer
    than the bound by itself, or if it was lost or not sent there. The rest is late only by the sum. A cycle
    counts for each such reason, so all reasons together may count more cycles than are late.
    """

    cycles: int
    by_side: Mapping[str, Mapping[str, int]]

    @property
    def repeated(self) -> int:
        """How often, at least, a cycle counts for one more reason."""
        return max(0, sum(sum(reasons.values()) for reasons in self.by_side.values()) - self.cycles)

    @property
    def sides(self) -> dict[str, int]:
        """How many cycles each side made late, the most first; at most so many if cycles are `repeated`."""
        counted = {side: sum(reasons.values()) for side, reasons in self.by_side.items()}
        sums = {side: min(count, self.cycles) for side, count in counted.items()}
        sums[TOGETHER] = self.cycles - sum(counted.values())
        return dict(
            sorted(((side, sums[side]) for side in sums if sums[side] > 0), key=lambda pair: -pair[1])
        )

    @property
    def words(self) -> str:
        """The sides: "card, wire or device: 37 of 49 late cycles (25 with wire and device alone above 1 ms,
        12 lost); this machine itself (self): 12 (12 not sent)".
        """
        limit = "at most " if self.repeated else ""
        clauses: list[str] = []
        for side, cycles in self.sides.items():
            reasons = sorted(self.by_side.get(side, {}).items(), key=lambda reason: -reason[1])
            details = ", ".join(f"{whole(count)} {words}" for words, count in reasons if count > 0)
            among = "" if clauses else f" of {whole(self.cycles)} late cycles"
            clauses.append(
                f"{SIDE_WORDS.get(side, side)}: {limit}{whole(cycles)}{among}"
                f"{f' ({details})' if details else ''}"
            )
        return "; ".join(clauses)


def late_cycles(step: Step, windows: Windows, bound_ns: int) -> LateCycles | None:
    """Return the cycles whose response is longer than the bound or missed, by side; None if there are none,
    or if the step has no counts.
    """
    counts = counts_of(step)
    whole_series = [
        series.series
        for series in step.series
        if series.metric == "response" and SEGMENT not in series.labels and series.series is not None
    ]
    if counts is None:
        return None
    late = count_violations(windows, bound_ns, series=whole_series)
    if not late.possible:
        return None
    parts = parts_of(step)
    lost, not_sent = count_of(counts, "lost"), count_of(counts, "not-sent")
    outside = WIRE_OR_DEVICE if CARD in parts else NOT_SELF
    by_side: dict[str, dict[str, int]] = {
        outside: {"lost": lost},
        SELF: {"not sent": not_sent, "sent late and not answered": max(0, late.missed - lost - not_sent)},
    }
    for name, part in parts.items():
        side = by_side.setdefault(part_side(name, by_card=CARD in parts), {})
        words = f"with {PARTS[name]} alone above {format_bound(bound_ns)}"
        numbers = [] if part.series is None else [part.series]
        side[words] = count_violations(windows, bound_ns, series=numbers).possible
    return LateCycles(late.possible, by_side)


def blame(step: Step, windows: Windows, requirement: Requirement) -> Blame | None:
    """Return the side that made most of the late cycles late, by the requirement's bound on the response;
    None if there is no such bound, or no cycle is late.
    """
    bound_ns = next((each.bound_ns for each in requirement.each if each.metric == "response"), None)
    late = None if bound_ns is None else late_cycles(step, windows, bound_ns)
    if late is None:
        return None
    first, cycles = next(iter(late.sides.items()))
    share = cycles / late.cycles
    worst_ns = max(
        (part.max_ns or 0 for name, part in parts_of(step).items() if name == "wire-and-device"), default=0
    )
    interface = (counts_of(step) or step.results[0]).values.get("interface")
    audit = f"rtgauge audit --interface {interface}" if interface else "rtgauge audit --interface NAME"
    remedy = f"rule out the card ({audit}), then the wire with another device"
    alone = (cycles - late.repeated) / late.cycles
    outside = first not in {SELF, TOGETHER} and alone >= MOST
    return Blame(
        first, share, worst_ns, is_own_work=False, remedy=remedy if outside else None, cause=late.words
    )
