# SPDX-License-Identifier: MIT
"""Presenter of watch: of each thread who wakes it, who preempts it, where it sleeps, and its page faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.explain_report import paired_cost
from rtgauge.report.presenter import Presenter
from rtgauge.units import format_count, format_share, plural

if TYPE_CHECKING:
    from rtgauge.record.model import Result, Step

MOST_NAMES = 3
LEAST_SHARE = 0.01


def _counted(results: list[Result], name: str, task: str, label: str) -> list[tuple[str, int]]:
    """Who or what, and how often; the most first."""
    found = [(str(result.labels.get(label)), result.values.get("count")) for result in results if result.name == name and result.labels.get("task") == task]
    return sorted(((who, count) for who, count in found if isinstance(count, int)), key=lambda entry: -entry[1])


def _shares(counted: list[tuple[str, int]]) -> str:
    total = sum(count for _, count in counted)
    return ", ".join(f"{who} {format_share(count / total)}" for who, count in counted[:MOST_NAMES] if count >= LEAST_SHARE * total)


def _number(result: Result, name: str) -> int:
    value = result.values.get(name)
    return value if isinstance(value, int) else 0


def _cost_of_slice(result: Result) -> tuple[bool, float | None]:
    """With events or without, and the CPU time of one time that a thread ran."""
    slices = _number(result, "slices")
    return result.values.get("events") is True, _number(result, "cpu_ns") / slices if slices > 0 else None


class WatchedThreads(Presenter):
    """A line a thread."""

    def lines(self, step: Step) -> list[str]:
        """ "task control (fifo 80): 1,000 activations; woken by interrupt 99.9%; preempted 3 times (by irq/31-eth0 3); 0 page faults"."""
        lines: list[str] = []
        for result in step.results:
            if result.name != "thread":
                continue
            task = str(result.labels.get("task"))
            policy, priority = result.values.get("policy"), _number(result, "priority")
            parts = [plural(_number(result, "activations"), "activation")]
            for name, label, words in (("woken-by", "by", "woken by"), ("sleeps-in", "syscall", "sleeps in")):
                counted = _counted(step.results, name, task, label)
                parts += [f"{words} {_shares(counted)}"] if counted else []
            preempted = _counted(step.results, "preempted-by", task, "by")
            by = ", ".join(f"{who} {format_count(count)}" for who, count in preempted[:MOST_NAMES])
            parts.append(f"preempted {format_count(_number(result, 'preemptions'))} times{f' (by {by})' if by else ''}")
            major = _number(result, "major_faults")
            parts.append(f"{plural(_number(result, 'minor_faults') + major, 'page fault')}{f', {format_count(major)} of them from disk' if major else ''}")
            lines.append(f"task {task} ({policy}{f' {priority}' if priority else ''}): {'; '.join(parts)}")
        cost = paired_cost([_cost_of_slice(result) for result in step.results if result.name == "watch-cost"])
        if cost is not None:
            words = f"{cost.median_ns / 1000:.2f} us of CPU time each time that a thread runs ({cost.low_ns / 1000:.2f} to {cost.high_ns / 1000:.2f})"
            lines.append(f"watching costs {words}; explaining comes to that")
        return lines


WATCHED_THREADS = WatchedThreads()
