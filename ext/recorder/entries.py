# SPDX-License-Identifier: MIT
"""What the logs of a recorder's folder hold, and how entries fold: figures of short times into longer ones,
and what the engine said at the end of its sessions: counts add up, states are the last ones.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from rtgauge.record.histogram import encode_bins
from rtgauge.record.merged_windows import merge
from rtgauge.record.model import Mark, Result
from rtgauge.record.stream import Window
from rtgauge.record.strict_model import Model
from rtgauge.record.windows import Windows

Time = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A clock in ns."""
Counts = dict[str, int]
"""Name -> number or ns, of everything that is counted: what was seen, what was not, and what was removed."""
LAST_STATE = frozenset(
    {
        *("tid", "policy", "priority", "definitions", "kind", "call", "fd", "wall_clock", "sleep_ns"),
        *("period_ns", "interrupts_traced", "stuck", "stuck_in", "stuck_since_ns", "timer_slack_ns"),
        *("buffer_kb", "rttime_us", "signal", "signal_after_ns", "lock", "ended_ns"),
    }
)
"""Values of which the last session's counts."""
LARGEST = frozenset(
    {"max_ns", "cut_latency_ns", "cut_response_ns", "copy_max_ns", "clock_set_ns", "max_millicelsius"}
)
OF_LAST_SESSION = frozenset({"watch-cost", "change", "wait"})
"""Results that are not counts."""
RULE_STACK, MOST_PLACES = "rule-stack", 3
OF_ONE_SESSION = frozenset({"max_after_ns"})
"""Times that count from the beginning of a session."""
Value = bool | int | float | str | None


class Figures(Model):
    """The figures of one series over a time, with the meanings of the stream's `window`."""

    task: str
    metric: str
    start_ns: int
    end_ns: int
    count: int = Field(ge=0)
    missed: int = Field(ge=0)
    min_ns: int | None
    max_ns: int | None
    sum_ns: int
    m2_ns2: float
    bins: str
    missed_bins: str

    @classmethod
    def of(cls, task: str, metric: str, window: Window) -> Figures:
        """Return the figures of one window."""
        return cls(
            task=task, metric=metric, **window.model_dump(exclude={"type", "series", "phase", "index"})
        )

    def window(self, series: int, index: int) -> Window:
        """Return them as a window of a series."""
        values = self.model_dump(exclude={"task", "metric"})
        return Window(type="window", series=series, phase="measure", index=index, **values)


def folded_figures(figures: Iterable[Figures]) -> list[Figures]:
    """Return one entry for each series. Raises RecordError if a histogram is damaged."""
    groups: dict[tuple[str, str], list[Figures]] = defaultdict(list)
    for each in figures:
        groups[each.task, each.metric].append(each)
    return [_together(group) for group in groups.values()]


def _together(group: list[Figures]) -> Figures:
    if len(group) == 1:
        return group[0]
    merged = merge(Windows.of([each.window(0, number) for number, each in enumerate(group)]))
    return Figures(
        task=group[0].task,
        metric=group[0].metric,
        start_ns=min(each.start_ns for each in group),
        end_ns=max(each.end_ns for each in group),
        count=merged.count,
        missed=merged.missed,
        min_ns=merged.min_ns,
        max_ns=merged.max_ns,
        sum_ns=sum(each.sum_ns for each in group),
        m2_ns2=merged.m2_ns2 or 0.0,
        bins=encode_bins(merged.bins, merged.counts),
        missed_bins=encode_bins(merged.missed_bins, merged.missed_counts),
    )


class PeriodSummary(Model):
    """A minute, an hour or a longer time of one source: its figures, and what was counted meanwhile.

    `fold`: the number of the hour's entry that has it; a minute belongs to the hour with the same number.
    """

    kind: Literal["stretch"] = "stretch"
    source: str
    fold: int
    start_ns: Time = Field(description="CLOCK_MONOTONIC")
    end_ns: Time
    wall_ns: Time = Field(description="the wall clock at its start")
    counts: Counts = Field(default_factory=Counts)
    figures: list[Figures] = Field(default_factory=list[Figures])


def folded(stretches: Iterable[PeriodSummary]) -> PeriodSummary:
    """Return one stretch for several of one source, the earliest first. Raises RecordError."""
    all_of = list(stretches)
    counts: Counter[str] = Counter()
    for each in all_of:
        counts.update(each.counts)
    return PeriodSummary(
        source=all_of[0].source,
        fold=max(each.fold for each in all_of),
        start_ns=min(each.start_ns for each in all_of),
        end_ns=max(each.end_ns for each in all_of),
        wall_ns=min(each.wall_ns for each in all_of),
        counts=dict(counts),
        figures=folded_figures(figure for each in all_of for figure in each.figures),
    )


class SeriesMark(Model):
    """A mark of the engine, and the series that it concerns; None: all."""

    mark: Mark
    task: str | None
    metric: str | None


class SessionEnd(Model):
    """What the engine said at the end of one session."""

    kind: Literal["session"] = "session"
    source: str
    results: list[Result] = Field(default_factory=list[Result])
    marks: list[SeriesMark] = Field(default_factory=list[SeriesMark])
    symbols: dict[str, str] = Field(default_factory=dict[str, str])


class RecorderEvent(Model):
    """Something that happened once: the recorder or the program began or ended, a trigger, a suspend, ..."""

    kind: Literal["event"] = "event"
    what: str
    detail: str
    wall_ns: Time


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


Entry = Annotated[PeriodSummary | SessionEnd | RecorderEvent, Field(discriminator="kind")]
ENTRY: TypeAdapter[PeriodSummary | SessionEnd | RecorderEvent] = TypeAdapter(Entry)


def packed(entry: PeriodSummary | SessionEnd | RecorderEvent) -> bytes:
    """Return the entry as the log holds it: compressed JSON."""
    return zlib.compress(entry.model_dump_json().encode(), 6)


def unpacked(data: bytes) -> PeriodSummary | SessionEnd | RecorderEvent:
    """Read an entry. Raises ValueError or zlib.error if it is damaged."""
    return ENTRY.validate_json(zlib.decompress(data))
