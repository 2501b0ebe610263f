# SPDX-License-Identifier: MIT
"""Shows a recorder's folder: for how long it watched, what it did not see, the worst of each culprit, and the
last hours.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rtgauge.errors import RecordError, RtgaugeError
from rtgauge.escape import one_line
from rtgauge.record.broken_rules import broken_rules
from rtgauge.record.merged_windows import merge
from rtgauge.record.stream import Window
from rtgauge.record.summary import distribution
from rtgauge.record.windows import Windows
from rtgauge.report.broken_rules_table import broken_rules_table
from rtgauge.report.table import Column, Table, numbers, texts
from rtgauge.report.text import us
from rtgauge.units import NS_PER_S, format_count, format_share, format_span, format_time, plural
from rtgauge_ext.recorder.entries import folded, joined_results
from rtgauge_ext.recorder.keeping import UNNAMED
from rtgauge_ext.recorder.user_stack import stacks_table

if TYPE_CHECKING:
    from rtgauge_ext.recorder.entries import Figures
    from rtgauge_ext.recorder.folder import RecorderFolder
    from rtgauge_ext.recorder.keeping import Kept

HOURS_SHOWN, CULPRITS_SHOWN, EVENTS_SHOWN, TRIGGERS_SHOWN, LATEST_SHOWN = 24, 20, 10, 10, 5
NOT_YET = "not explained yet"
TIMES = {
    "watched_ns": "watched",
    "absent_ns": "the program did not run",
    "unseen_ns": "the program ran, but was not watched",
    "spared_ns": "the recorder saved CPU time (moments that came close together got lost)",
    "suspended_ns": "the machine was suspended",
    "between_ns": "no recorder ran",
}
"""Counts of times, and what they were."""
NUMBERS = {
    "program_ends": "end of the watched program",
    "kills": "kill of the recorder",
    "clock_sets": "setting of the wall clock",
    "engine_failures": "failure of the engine",
    "moments": "moment seen",
    "overwritten": "latency without a moment, because the kernel had overwritten its events",
    "over_budget": "latency without a moment, because the session had enough of them",
    "too_many_at_once": "latency without a moment, because too many came at once",
    "no_room": "latency without a moment, because it had too many events",
    "events_off": "latency without a moment, because the kernel did not record all events yet",
    "moments_removed": "moment removed for lack of room",
    "moments_not_written": "moment that could not be written",
    "full_disk": "minute with a full disk",
    "minutes_not_written": "minute whose figures could not be read",
    "lines_not_written": "line that could not be written",
    "sessions_not_written": "end of a session that could not be written",
    "events_not_written": "event that could not be written",
    "damaged": "damaged entry, line or file",
    "messages_refused": "message that came neither from the program nor from root",
    "markers_refused": "line in trace_marker that came neither from the program nor from root",
    "triggers_without_events": "trigger without events",
    "triggers_without_action": "trigger without action, because another one had just acted",
    "commands_done": "command done",
    "commands_failed": "command failed",
    "signals_sent": "signal sent",
    "signals_failed": "signal that could not be sent",
}
"""Counts of numbers, and what one of them is."""


def lines(folder: RecorderFolder) -> list[str]:
    """Return lines on what was seen and what was not, and on the folder: with a requirement, first whether it
    holds.
    """
    counts = folder.counts
    share = counts["cpu_ns"] / counts["watched_ns"] if counts["watched_ns"] else 0
    limit = folder.settings.keep_bytes / (1 << 20)
    kept = plural(len(folder.keeping.moments), "moment")
    took = f"recording took {format_share(share)} of a CPU"
    return [
        *_verdict(folder),
        *count_lines(folder),
        *_different(folder),
        f"folder: {folder.bytes / (1 << 20):.1f} of {limit:g} MiB, with {kept}; {took}",
    ]


def _verdict(folder: RecorderFolder) -> list[str]:
    """Return the answer to the requirement in a line; none without a requirement or figures."""
    from rtgauge.report.labelled_lines import LABEL
    from rtgauge_ext.recorder.record import verdict_on

    with suppress(RtgaugeError, OSError):  # no source is whole, or there is no room for temporary files
        verdict = verdict_on(folder)
        if verdict is None:
            return []
        loops_known = verdict.evidence.get("task") is not None or verdict.word in {"fails", "cannot tell"}
        rest = "" if loops_known else "; releases that it missed count once a session is over"
        return [f"{verdict.word.upper():{LABEL - 2}}  {verdict.reason}{rest}"]
    return []


def count_lines(folder: RecorderFolder) -> list[str]:
    """Return lines on what was seen and what was not, the answer first."""
    counts = folder.counts
    times = [
        f"{words} for {format_span(counts[name] / NS_PER_S)}" for name, words in TIMES.items() if counts[name]
    ]
    counted = [f"{format_count(counts[name])} x {words}" for name, words in NUMBERS.items() if counts[name]]
    triggers = [
        f"{format_count(number)} x trigger {name.removeprefix('trigger_')}"
        for name, number in sorted(counts.items())
        if name.startswith("trigger_")
    ]
    program = [one_line(each.detail) for each in folder.events if each.what == "program"][-1:]
    return [
        _headline(folder),
        *[f"frozen: {why}" for why in [folder.frozen] if why is not None],
        f"program: {(program or ['not seen yet'])[0]}",
        f"times: {'; '.join(times) or 'nothing yet'}",
        *[f"late: {each.words}" for each in late_activations(folder)],
        f"counts: {'; '.join([*counted, *triggers]) or 'nothing yet'}",
    ]


class LateActivations(NamedTuple):
    """Of the activations of a thread, how many are certainly beyond the bound of the requirement, and how
    many at most: the bound can be inside a bin of the histograms.
    """

    task: str
    metric: str
    bound_ns: int
    activations: int
    certain: int
    possible: int

    @property
    def words(self) -> str:
        """Say it in a line."""
        number = format_count(self.certain)
        if self.possible > self.certain:
            number += f" to {format_count(self.possible)}"
        of = f"of {format_count(self.activations)} activations of {one_line(self.task)}"
        return f"{number} {of}: {self.metric} more than {format_time(self.bound_ns)}"


def late_activations(folder: RecorderFolder) -> list[LateActivations]:
    """Return each thread and quantity that the requirement bounds, with all its activations, also those that
    have no moment. A requirement on other quantities, such as jitter, has none.
    """
    from rtgauge.verdict.violations import count_violations

    limits = folder.settings.bounds
    groups: dict[tuple[str, str], list[Window]] = defaultdict(list)
    for stretch in (*folder.stretches, *folder.minutes):
        for figures in stretch.figures:
            if figures.metric in limits:
                group = groups[figures.task, figures.metric]
                group.append(figures.window(0, len(group)))
    late: list[LateActivations] = []
    for (task, metric), group in groups.items():
        counted = count_violations(Windows.of(group), limits[metric])
        late.append(
            LateActivations(
                task, metric, limits[metric], counted.activations, counted.certain, counted.possible
            )
        )
    return late


def _different(folder: RecorderFolder) -> list[str]:
    """Return a line on what was unusual when the worst kept latency came; none if nothing was."""
    worst = max((kept for kept in folder.keeping.moments.values() if not kept.trigger), default=None)
    with suppress(RecordError):  # the recorder has just removed it
        around = "" if worst is None else one_line(folder.moment(worst.number).head.around)
        return [f"unusual when the worst latency came: {around}"] if around else []
    return []


def _headline(folder: RecorderFolder) -> str:
    """Return the answer: the worst latency of all activations."""
    latencies = [
        figures
        for stretch in (*folder.stretches, *folder.minutes)
        for figures in stretch.figures
        if figures.metric == "latency"
    ]
    worst = max(latencies, key=lambda figures: figures.max_ns or 0, default=None)
    if worst is None or worst.max_ns is None:
        return "No activations are counted yet; the counts come once a minute"
    count = format_count(sum(figures.count for figures in latencies))
    return f"Worst latency {format_time(worst.max_ns)} of {one_line(worst.task)}, of {count} activations"


class RankedMoments(NamedTuple):
    """The kept moments of a thread and a culprit: the worst latency, and how many there are."""

    task: str
    culprit: str
    worst_ns: int
    kept: int


def ranking(folder: RecorderFolder) -> list[RankedMoments]:
    """Return each culprit with its worst latency, the worst first."""
    groups: dict[tuple[str, str], list[Kept]] = defaultdict(list)
    for kept in folder.keeping.moments.values():
        if not kept.trigger:
            groups[kept.key].append(kept)
    ranked = [RankedMoments(*key, max(group).latency_ns, len(group)) for key, group in groups.items()]
    return sorted(ranked, key=lambda each: -each.worst_ns)


def culprits_table(folder: RecorderFolder) -> Table:
    """Return a row for each culprit with its worst latency, the worst first."""
    rows = [
        [each.task, each.culprit if each.culprit != UNNAMED else NOT_YET, us(each.worst_ns), str(each.kept)]
        for each in ranking(folder)
    ]
    columns = (*texts("thread", "culprit"), *numbers("worst (us)", "kept"))
    return Table("The worst of each culprit", columns, rows[:CULPRITS_SHOWN])


def triggers_table(folder: RecorderFolder) -> Table:
    """Return a row for each of the last triggers whose events are kept."""
    from rtgauge.record.writer import wall_time

    rows: list[list[str]] = []
    for number in sorted(number for number, kept in folder.keeping.moments.items() if kept.trigger):
        with suppress(RecordError):  # the recorder has just removed it
            head = folder.moment(number).head
            cause = head.culprit or NOT_YET
            rows += [
                [wall_time(head.wall_ns), head.task, name, one_line(detail), cause]
                for name, detail in zip(head.triggers, head.details, strict=True)
            ]
    columns = texts("at (UTC)", "thread", "trigger", "line", "longest cause in the 100 ms before")
    return Table("The last triggers", columns, rows[-TRIGGERS_SHOWN:])


def rules_table(folder: RecorderFolder) -> Table | None:
    """Return what the real-time threads should not have done in the sessions that are over; None: nothing."""
    return broken_rules_table(
        broken_rules(joined_results(result for end in folder.ends for result in end.results))
    )


def places_table(folder: RecorderFolder) -> Table | None:
    """Return where in the program they did it; None: no stack is known."""
    return stacks_table(joined_results(result for end in folder.ends for result in end.results))


def latest_table(folder: RecorderFolder) -> Table:
    """Return a row for each of the last kept latencies, the last one first."""
    from rtgauge.record.writer import wall_time

    rows: list[list[str]] = []
    for number in sorted(
        (number for number, kept in folder.keeping.moments.items() if not kept.trigger), reverse=True
    )[:LATEST_SHOWN]:
        with suppress(RecordError):  # the recorder has just removed it
            head = folder.moment(number).head
            culprit = head.culprit or NOT_YET
            rows.append(
                [wall_time(head.wall_ns), head.task, us(head.latency_ns), culprit, one_line(head.around)]
            )
    columns = (*texts("at (UTC)", "thread"), *numbers("latency (us)"), *texts("culprit", "unusual then"))
    return Table("The last kept latencies", columns, rows).without_empty()


def hours_table(folder: RecorderFolder) -> Table:
    """Return a row for each thread and quantity of the last hours, the last one first."""
    from rtgauge.record.writer import wall_time

    present = [folded(folder.minutes)] if folder.minutes else []
    stretches = [stretch for stretch in (*folder.stretches, *present) if stretch.figures]
    rows = [
        [wall_time(stretch.wall_ns), figures.task, figures.metric, *_figures(figures)]
        for stretch in stretches[: -HOURS_SHOWN - 1 : -1]
        for figures in stretch.figures
        if figures.metric in {"latency", "response"}
    ]
    columns: tuple[Column, ...] = (
        *texts("from (UTC)", "thread", "quantity"),
        *numbers("count", "median (us)", "99.9 % (us)", "max (us)"),
    )
    return Table("The last hours", columns, rows)


def hours_document(folder: RecorderFolder) -> list[dict[str, object]]:
    """Return the figures of each thread and quantity by hour, for `show --json`."""
    return [
        {
            "wall_ns": stretch.wall_ns,
            "start_ns": stretch.start_ns,
            "end_ns": stretch.end_ns,
            "task": figures.task,
            "metric": figures.metric,
            **distribution(merge(Windows.of([figures.window(0, 0)]))).model_dump(
                include={"count", "p50_ns", "p99_9_ns", "max_ns"}
            ),
        }
        for stretch in (*folder.stretches, *folder.minutes)
        for figures in stretch.figures
    ]


def _figures(figures: Figures) -> list[str]:
    window: Window = figures.window(0, 0)
    shown = distribution(merge(Windows.of([window])))
    return [format_count(shown.count), *(us(value) for value in (shown.p50_ns, shown.p99_9_ns, shown.max_ns))]
