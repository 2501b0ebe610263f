# SPDX-License-Identifier: MIT
"""The table of what real-time threads did that a real-time thread should not do."""

from __future__ import annotations

from collections.abc import Iterable

from rtgauge.record.broken_rules import BrokenRule
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import us
from rtgauge.units import format_count, format_time

TITLE = "What real-time threads should not do"
WORDS = {
    "page-fault": "page fault ({call})",
    "memory": "needs memory of the kernel: {call}",
    "disk": "uses a disk: {call}",
    "thread": "starts a thread or program: {call}",
    "lock": "sleeps for a lock without priority inheritance",
    "lower-waker": "sleeps in {call} until a task of lower priority wakes it",
    "no-limit": "sleeps in {call} without a time-out",
}
"""Rule -> how a thread broke it."""


def rule_words(rule: str, call: str) -> str:
    """Return how a thread broke a rule, also one that this version does not know."""
    return WORDS.get(rule, f"{rule}: {{call}}").format(call=call)


def broken_rules_table(rules: Iterable[BrokenRule]) -> Table | None:
    """Return a row for each rule that a thread broke; None if no rule was broken."""
    rows = [
        [
            each.task,
            rule_words(each.rule, each.call),
            each.by,
            format_count(each.count),
            "" if each.longest_ns is None else us(each.longest_ns),
            "" if each.after_ns is None else format_time(each.after_ns),
        ]
        for each in rules
    ]
    columns = (
        *texts("thread", "what it did in its cycles", "woken by"),
        *numbers("times", "longest (us)", "after"),
    )
    return Table(TITLE, columns, rows).without_empty() if rows else None
