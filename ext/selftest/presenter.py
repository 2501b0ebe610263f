# SPDX-License-Identifier: MIT
"""Shows the confusion matrix of a self test."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console
from rich.text import Text

from rtgauge.record.model import Step
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Column, Table, numbers, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import us as short_us
from rtgauge_ext.selftest.judge import KindResult, SelfTest, self_test, verdict_words

COLUMNS = (
    *texts("stalls"),
    *numbers("injected", "found", "named", "size off, median (us)"),
    Column("95 % (us)", "number", drop_rank=2),
    *(Column(title, "number", drop_rank=1) for title in ("size right", "unattributed (us)")),
    *texts("named as"),
)
MOST_ANSWERS = 3


def selftest_grid(result: SelfTest) -> Table:
    """Return the confusion matrix with a row for each kind of stall. The last column has wrong answers."""
    notes = [
        (
            "size off: difference between the explained and the injected length of the correctly named "
            "stalls, less the uncertainty of the injector's clock. size right: this difference is at most "
            "5 us or 1 %, whichever is larger."
        ),
        (
            "The test passes if, of each kind, all stalls are found, 95 % are named correctly, and 95 % of "
            "the correctly named ones have the right size. The median unattributed time must be at most 5 "
            "us."
        ),
        *(
            f"{kind.kind}: the explanation found the end of {kind.ends_right} of {kind.ends} latencies and "
            "responses of the watched program."
            for kind in result.kinds
            if kind.ends
        ),
        *(f"{kind} was not tried: {reason}." for kind, reason in result.not_tried.items()),
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
        short_us(kind.size_error_median_ns),
        short_us(kind.size_error_p95_ns),
        str(kind.sizes_right),
        short_us(kind.unattributed_median_ns),
        f"{named}, others {more}" if more else named,
    ]


class InjectedPresenter(Presenter):
    """Presents the injected stalls of a self test."""

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return the confusion matrix; None if the record has no injected stall."""
        result = self_test(view.record)
        if result is None:
            return None
        grid = selftest_grid(result)
        words = f"{verdict_words(result)}."
        return Chapter(
            id="selftest",
            heading="Self test",
            content=[Table(grid.title, grid.columns, grid.rows, [words, *grid.notes])],
            place="after frequencies",
            measured="explained latencies of injected stalls",
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:  # noqa: ARG002 - of every presenter
        """Print the result and the confusion matrix."""
        result = self_test(view.record)
        if result is not None:
            print_self_test(result, console)


def print_self_test(result: SelfTest, console: Console) -> None:
    """Print the result of a self test, and its confusion matrix."""
    console.print(Text(verdict_words(result), style="bold"))
    print_tables([selftest_grid(result)], console)
    console.print()


INJECTED = InjectedPresenter()
