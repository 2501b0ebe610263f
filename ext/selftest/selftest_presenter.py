# SPDX-License-Identifier: MIT
"""Shows the confusion matrix of a self test: as a table, and as a document."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict

from pydantic import Field
from rich.console import Console
from rich.text import Text

from rtgauge.extension import Document
from rtgauge.record.model import Model, Step, SystemText
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


class SelfTestDocument(Model):
    """The document that `rtgauge selftest --json` prints.

    `passed`: of each kind, stalls came and all were found, 95 % were named, 95 % of these have the right
    size, and the median unattributed time is at most 5 us. `too_busy`: the machine was too busy to tell.
    """

    record: SystemText
    passed: bool
    conclusion: str = Field(default="", description="first line of the output on the terminal")
    too_busy: bool = False
    kinds: list[KindResult] = Field(default_factory=list[KindResult])
    others: int = Field(default=0, description="number of explained latencies that a stall did not cause")
    not_tried: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why it was not tried"
    )
    invalid: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why its measurement does not count"
    )


def selftest_document(record: str, result: SelfTest | None) -> SelfTestDocument:
    """Return the judgement as a document. A `result` of None (nothing explained) has not passed."""
    if result is None:
        return SelfTestDocument(record=record, passed=False)
    outcome = {
        "passed": result.passed,
        "too_busy": result.too_busy,
        "conclusion": verdict_words(result),
    }
    return SelfTestDocument.model_validate({"record": record, **outcome, **asdict(result)})


DOCUMENT = Document("what rtgauge selftest --json prints", (SelfTestDocument,))
