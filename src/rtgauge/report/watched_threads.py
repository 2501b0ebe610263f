# SPDX-License-Identifier: MIT
"""Presents watch: what wakes and preempts each thread, what it waits for, and its page faults."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from rtgauge.record.broken_rules import broken_rules, judged_cycles
from rtgauge.record.explain_report import paired_cost
from rtgauge.record.model import Result, Step
from rtgauge.record.watched_loop import loops_of
from rtgauge.report.broken_rules_table import broken_rules_table
from rtgauge.report.figure_data import measured
from rtgauge.report.figures import vega
from rtgauge.report.figures.course import named_course
from rtgauge.report.figures.exceedance import corner_note, named_chart
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.step_tables import series_table
from rtgauge.report.table import Table
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import capital, us
from rtgauge.units import format_count, format_share, format_time, plural

MOST_NAMES = 3
MOST_IDLE = 6
"""The most threads that are named as never having run."""
SHARES = (
    ("woken-by", "by", "woken by", 0.01),
    ("sleeps-in", "syscall", "sleeps in", 0.0),
    ("blocked-in", "syscall", "blocked within its cycle in", 0.0),
)
"""What a thread waits for: (result, its label, words, smallest share that is named)."""
LOCKS = {
    "inversion": "the lock has no priority inheritance (PTHREAD_PRIO_INHERIT)",
    "inversion-lent": "the lock has priority inheritance",
}
"""Words by result name, for whether a lock lends its owner the waiter's priority."""


DRAWN = ("latency", "response", "period")
FIGURES = ("threads-distribution", "threads-course")
MOST_DRAWN = 8
"""The most threads in a chart: the ones with the largest values."""
BUSY = (
    "If a thread did not wait for a release, the release does not have a latency, so the curves leave it out."
)
EACH_POINT = "Each point is the largest value in a window."


def _tasks(step: Step, quantity: str) -> dict[int, str]:
    """Return series number -> thread for the threads with the largest values of a quantity."""
    own = [each for each in step.series if each.metric == quantity and each.series is not None]
    largest = sorted(own, key=lambda each: -(each.max_ns or 0))[:MOST_DRAWN]
    return {each.series: str(each.labels.get("task")) for each in largest if each.series is not None}


@dataclass(frozen=True)
class _Counted:
    """A task or cause: how often it occurred, and the longest sleep because of it (0 if unknown)."""

    who: str
    count: int
    longest_ns: int


def _counted(results: list[Result], name: str, task: str, label: str) -> list[_Counted]:
    """Return a thread's results with this name, the most frequent first."""
    of_thread = [result for result in results if result.name == name and result.labels.get("task") == task]
    counted = [
        _Counted(str(result.labels.get(label)), _number(result, "count"), _number(result, "max_ns"))
        for result in of_thread
    ]
    return sorted((entry for entry in counted if entry.count > 0), key=lambda entry: -entry.count)


def _shares(counted: list[_Counted], least: float = 0.0) -> str:
    """Return text like "clock_nanosleep 99.9% (at most 998.2 us)", without times if no system calls are
    traced.

    `least`: the smallest share to name.
    """
    total = sum(entry.count for entry in counted)
    named = [entry for entry in counted[:MOST_NAMES] if entry.count >= least * total]
    return ", ".join(
        f"{entry.who} {format_share(entry.count / total)}"
        + (f" (at most {us(entry.longest_ns)} us)" if entry.longest_ns else "")
        for entry in named
    )


def _stops(counted: list[_Counted]) -> str:
    """Return text like "stopped 250 times (by timer interrupt 250, at most 8.1 us)", the longest first."""
    longest = sorted(counted, key=lambda entry: -entry.longest_ns)[:MOST_NAMES]
    by = "; ".join(
        f"{entry.who} {format_count(entry.count)}, at most {us(entry.longest_ns)} us" for entry in longest
    )
    return f"stopped {plural(sum(entry.count for entry in counted), 'time')} (by {by})"


def _inversions(results: list[Result], task: str) -> list[str]:
    """Return lines like "task control, priority inversion: blocked 12 times on a lock of logger, ..."."""
    lines: list[str] = []
    for name, lends in LOCKS.items():
        for entry in _counted(results, name, task, "by"):
            blocked = f"blocked {plural(entry.count, 'time')} on a lock of {entry.who}"
            longest = f"which has a lower priority, at most {us(entry.longest_ns)} us at a time; {lends}"
            lines.append(f"task {task}, priority inversion: {blocked}, {longest}")
    return lines


def _number(result: Result, name: str) -> int:
    value = result.values.get(name)
    return value if isinstance(value, int) else 0


def _cost_of_slice(result: Result) -> tuple[bool, float | None]:
    """Return (whether events were on, CPU time per run of a thread)."""
    slices = _number(result, "slices")
    return result.values.get("events") is True, _number(result, "cpu_ns") / slices if slices > 0 else None


def _points(results: Sequence[Result]) -> list[str]:
    """Return a line on what a point of the program costs."""
    return [
        f"a point costs {us(_number(result, 'cost_ns'), digits=2)} us on this machine, and each part "
        f"includes this cost once; the budget of a point is {us(_number(result, 'budget_ns'), digits=2)} us"
        for result in results
        if result.name == "point-cost"
    ]


def _broken_rules(view: RecordView, steps: Sequence[Step]) -> list[Table]:
    """Return a table for each step whose threads did what real-time threads should not do."""
    rule_tables = [(step, broken_rules_table(broken_rules(step.results))) for step in steps]
    return [
        replace(table, title=f"{table.title}, {view.labels[step.id]}" if len(steps) > 1 else table.title)
        for step, table in rule_tables
        if table is not None
    ]


def _kept_rules(step: Step, task: str) -> list[str]:
    """Return a part of a thread's line, if the thread did nothing in its cycles that it should not."""
    cycles = judged_cycles(step).get(task, 0)
    broken = any(each.task == task for each in broken_rules(step.results))
    kept = (
        f"no page fault, no call that needs memory or a disk and no unsafe sleep in {plural(cycles, 'cycle')}"
    )
    return [kept] if cycles and not broken else []


def _never_ran(result: Result) -> bool:
    """Return whether a thread slept or was stopped the whole time."""
    return result.values.get("kind") != "poller" and not any(
        _number(result, name) for name in ("activations", "preemptions", "minor_faults", "major_faults")
    )


class WatchedThreads(Presenter):
    """Presents a line per thread, and a table of its quantities on the page."""

    def lines(self, step: Step) -> list[str]:
        """Return lines like "task control (fifo 80): 1,000 activations; woken by interrupt 99.9%; ..."."""
        lines: list[str] = []
        threads = [result for result in step.results if result.name == "thread"]
        idle = [result for result in threads if _never_ran(result)] if len(threads) > 1 else []
        loops = {loop.task: loop for loop in loops_of(step)}
        for result in threads:
            if result in idle:
                continue
            task = str(result.labels.get("task"))
            policy, priority = result.values.get("policy"), _number(result, "priority")
            loop = loops.get(task)
            parts = [plural(_number(result, "activations"), "activation")]
            if loop is not None:
                parts = [loop.waits, *parts, *loop.trouble]
            for name, label, words, least in SHARES:
                if counted := _counted(step.results, name, task, label):
                    parts.append(f"{words} {_shares(counted, least)}")
            if stops := _counted(step.results, "stopped-by", task, "by"):
                parts.append(_stops(stops))
            preempted = _counted(step.results, "preempted-by", task, "by")
            by = ", ".join(f"{entry.who} {format_count(entry.count)}" for entry in preempted[:MOST_NAMES])
            parts.append(
                f"preempted {format_count(_number(result, 'preemptions'))} times{f' (by {by})' if by else ''}"
            )
            if throttled := _number(result, "throttled"):
                times = format_time(_number(result, "throttled_ns"))
                parts.append(
                    f"throttled {format_count(throttled)} times for {times} in all (by the limit on "
                    "real-time threads, its group's runtime, or its deadline budget)"
                )
            major = _number(result, "major_faults")
            faults = plural(_number(result, "minor_faults") + major, "page fault")
            parts.append(faults + (f", {format_count(major)} of them from disk" if major else ""))
            parts += _kept_rules(step, task)
            lines.append(f"task {task} ({policy}{f' {priority}' if priority else ''}): {'; '.join(parts)}")
            lines += _inversions(step.results, task)
        if idle:
            names = list(dict.fromkeys(str(result.labels.get("task")) for result in idle))
            more = f" and {len(names) - MOST_IDLE} more" if len(names) > MOST_IDLE else ""
            lines.append(f"{plural(len(idle), 'thread')} never ran: {', '.join(names[:MOST_IDLE])}{more}")
        lines += _points(step.results)
        cost = paired_cost([_cost_of_slice(result) for result in step.results if result.name == "watch-cost"])
        if cost is not None:
            between = f"{cost.low_ns / 1000:.2f} to {cost.high_ns / 1000:.2f}"
            if cost.low_ns > 0:
                cost_us = f"{cost.median_ns / 1000:.2f} us of CPU time each time that a thread runs"
                lines.append(f"watching costs {cost_us} ({between}); explaining latencies costs more")
            else:  # the program's own times vary by more
                lines.append(
                    f"what watching costs is uncertain: {between} us of CPU time each time that a thread runs"
                )
        return lines

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print what real-time threads should not have done."""
        print_tables(_broken_rules(view, steps), console)

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return a table per step with each thread's quantities. Its notes say what wakes, preempts and
        blocks each thread.
        """
        tables = [
            replace(
                series_table(step),
                title=view.labels.get(step.id, step.id),
                notes=["Times are in us.", *self.lines(step)],
            )
            for step in steps
        ]
        tables = [*_broken_rules(view, steps), *tables]
        return Chapter("threads", "Threads", tables, "the threads of a program", figures=FIGURES)

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:
        """Return the distribution and the course in time of each quantity in DRAWN, with a colour for each
        thread.
        """
        curves: dict[str, vega.Part] = {}
        courses: dict[str, vega.Part] = {}
        for step in steps:
            windows = view.record.windows(step)
            for quantity in DRAWN:
                tasks = _tasks(step, quantity)
                title = (
                    capital(quantity) if len(steps) == 1 else f"{capital(quantity)}, {view.labels[step.id]}"
                )
                bound = view.bounds.get(quantity)
                parts = measured(windows, tasks)
                if (chart := named_chart(parts, quantity, bound)) is not None:
                    curves[title] = chart
                if (chart := named_course(windows, tasks, quantity, bound)) is not None:
                    courses[title] = chart
        notes = [
            note
            for name, bound in view.bounds.items()
            if name in DRAWN and (note := corner_note(bound, name))
        ]
        drawn = (
            Figure.described(FIGURES[0], "Distribution", curves, [*notes, BUSY]),
            Figure.described(FIGURES[1], "Course of maxima", courses, [EACH_POINT]),
        )
        return [figure for figure in drawn if figure is not None]


WATCHED_THREADS = WatchedThreads()
