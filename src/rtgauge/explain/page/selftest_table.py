# SPDX-License-Identifier: MIT
"""The confusion matrix of a self test: a row a kind of stall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.explain.analysis.selftest import NAMED_GOAL
from rtgauge.report.table import Column, Table, numbers, texts
from rtgauge.report.text import us
from rtgauge.units import format_share, plural

if TYPE_CHECKING:
    from rtgauge.explain.analysis.selftest import KindResult, SelfTest

COLUMNS = (
    *texts("stalls"),
    *numbers("injected", "found", "named", "size off, median (us)"),
    Column("95 % (us)", "number", spare=2),
    *(Column(title, "number", spare=1) for title in ("size right", "unattributed (us)")),
    *texts("named as"),
)
MOST_ANSWERS = 3


def verdict_words(result: SelfTest) -> str:
    """The answer in one sentence."""
    sized = result.sizes_right >= NAMED_GOAL * result.named
    word = (
        "The explanations are right"
        if result.passed and sized
        else "The explanations name the causes"
        if result.passed
        else "The explanations are not right"
    )
    share = format_share(result.named / result.injected) if result.injected else "none"
    latencies = "1 other latency" if result.others == 1 else f"{result.others} other latencies"
    others = f"; {latencies} of the machine's own" if result.others else ""
    named = f"{result.named} named rightly ({share}), {result.sizes_right} of them with the right size"
    return (
        f"{word}: of {plural(result.injected, 'injected stall')} {result.found} were found and "
        f"{named}{others}"
    )


def selftest_grid(result: SelfTest) -> Table:
    """The matrix; what was answered instead is in the last column."""
    notes = [
        (
            "Size off: difference between the explained and the injected size, for correctly named stalls; "
            "right:"
            " within the larger of 5 us and 1 %."
        ),
        "All should be found and 95 % named; the median unattributed time should be at most 5 us.",
        *(f"Not tried: {kind}: {reason}." for kind, reason in result.not_tried.items()),
    ]
    return Table("Injected stalls", COLUMNS, [_row(kind) for kind in result.kinds], notes)


def _row(kind: KindResult) -> list[str]:
    answers = list(kind.answers.items())
    named = ", ".join(f"{name} {count}" for name, count in answers[:MOST_ANSWERS])
    more = sum(count for _, count in answers[MOST_ANSWERS:])
    return [
        kind.kind,
        str(kind.injected),
        str(kind.found),
        str(kind.named),
        us(kind.size_error_median_ns),
        us(kind.size_error_p95_ns),
        str(kind.sizes_right),
        us(kind.unattributed_median_ns),
        f"{named}, others {more}" if more else named,
    ]
