# SPDX-License-Identifier: MIT
"""What the engine said at the end of its sessions, together: counts add up, states are the last ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from rtgauge.record.model import Result
from rtgauge_ext.recorder.entries import SeriesMark, SessionEnd

LAST_STATE = frozenset(
    {
        *("tid", "policy", "priority", "definitions", "kind", "call", "fd", "wall_clock", "sleep_ns"),
        *("period_ns", "interrupts_traced", "stuck", "stuck_in", "stuck_since_ns", "timer_slack_ns"),
        *("buffer_kb", "rttime_us", "signal", "signal_after_ns", "lock", "ended_ns"),
    }
)
"""Values of which the last session's counts."""
LARGEST = frozenset({"max_ns", "cut_latency_ns", "cut_response_ns", "copy_max_ns", "clock_set_ns"})
OF_LAST_SESSION = frozenset({"watch-cost", "change", "wait"})
"""Results that are not counts."""
RULE_STACK, MOST_PLACES = "rule-stack", 3
OF_ONE_SESSION = frozenset({"max_after_ns"})
"""Times that count from the beginning of a session."""
Value = bool | int | float | str | None


def _joined(name: str, before: Value, now: Value) -> Value:
    if isinstance(before, bool) and isinstance(now, bool) and name not in LAST_STATE:
        return before or now
    if not isinstance(before, (int, float)) or not isinstance(now, (int, float)) or name in LAST_STATE:
        return now
    return max(before, now) if name in LARGEST else before + now


def joined_results(results: Iterable[Result]) -> list[Result]:
    """Return the results of several sessions as one session would have given them."""
    joined: dict[tuple[str, str], Result] = {}
    for each in results:
        kept = {name: value for name, value in each.values.items() if name not in OF_ONE_SESSION}
        result = each.model_copy(update={"values": kept})
        key = (result.name, repr(sorted(result.labels.items())))
        known = joined.get(key)
        if known is None or result.name in OF_LAST_SESSION:
            joined[key] = result
            continue
        values = {
            name: _joined(name, known.values[name], value) if name in known.values else value
            for name, value in result.values.items()
        }
        joined[key] = result.model_copy(update={"values": known.values | values})
    return _most_frequent(joined.values())


def _most_frequent(results: Iterable[Result]) -> list[Result]:
    """Return the results with only the MOST_PLACES most frequent stacks of each rule."""
    kept: list[Result] = []
    stacks: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for result in results:
        if result.name == RULE_STACK:
            stacks[tuple(str(result.labels.get(name)) for name in ("task", "rule", "call"))].append(result)
        else:
            kept.append(result)
    for group in stacks.values():
        group.sort(key=lambda result: -int(result.values.get("count") or 0))
        kept += group[:MOST_PLACES]
    return kept


def joined_marks(marks: Iterable[SeriesMark]) -> list[SeriesMark]:
    """Return one mark of each name and series: the last."""
    return list({(each.mark.name, each.task, each.metric): each for each in marks}.values())


def folded_sessions(ends: Iterable[SessionEnd]) -> list[SessionEnd]:
    """Return one entry for each source."""
    by_source: dict[str, list[SessionEnd]] = {}
    for end in ends:
        by_source.setdefault(end.source, []).append(end)
    return [
        SessionEnd(
            source=source,
            results=joined_results(result for end in group for result in end.results),
            marks=joined_marks(mark for end in group for mark in end.marks),
            symbols={name: text for end in group for name, text in end.symbols.items()},
        )
        for source, group in by_source.items()
    ]
