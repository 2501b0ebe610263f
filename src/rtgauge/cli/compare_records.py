# SPDX-License-Identifier: MIT
"""Compares records, prints the result, and writes the page."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.progress import Progress
from rich.text import Text

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions
from rtgauge.analysis.comparison import compare as compare_sides
from rtgauge.analysis.comparison_document import Comparison, ComparisonFinding, compared_document
from rtgauge.analysis.comparison_scope import scopes_of
from rtgauge.analysis.record_names import record_names
from rtgauge.analysis.sides import EVERYTHING, Scope, Side, sides_of
from rtgauge.cli.command_end import print_head
from rtgauge.cli.console import Console
from rtgauge.cli.extension_options import AddedValues, ComparesMore
from rtgauge.cli.record_argument import open_records
from rtgauge.cli.shared_options import ComparedSides, ComparisonStatistics, PrintedComparison, duration_option
from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, InputError
from rtgauge.explain.analysis.culprits import blame_of
from rtgauge.record.model import Verdict
from rtgauge.record.reader import Record
from rtgauge.report.compare.comparison_page import (
    ComparisonChapter,
    chapter_of,
    comparison_grids,
    operation_chapters,
    timing_chapter,
    write,
)
from rtgauge.report.compare.comparison_tables import SETTINGS, doubtful_sides, first_settings, folded_notes
from rtgauge.report.compare.extension_parts import Operations, PartMaker, operations_of, with_parts
from rtgauge.report.how_often import how_often
from rtgauge.report.labelled_lines import print_labelled
from rtgauge.report.record_conclusion import reason_text
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal_summary import STYLE
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import printable
from rtgauge.verdict.exit_status import exit_status
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge.verdict.run_verdict import judge_run

STYLES: dict[ComparisonFinding | None, str] = {
    ComparisonFinding.WORSE: "red",
    ComparisonFinding.MIXED: "red",
    ComparisonFinding.BETTER: "green",
    ComparisonFinding.SAME: "green",
}
"""The colours of the answers that tell."""


@dataclass(frozen=True)
class Compared:
    """A part of the records: its sides and the result of their comparison."""

    scope: Scope
    result: Comparison
    sides: list[Side]
    pairs: list[tuple[Side, Side]]


@contextmanager
def _progress() -> Generator[Callable[[str, int, int], None] | None]:
    """Show a bar in a terminal, and yield the function that moves it: (activity, done, total) -> None.
    Without a terminal, yield None.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda activity, done, total: bar.update(
            task, description=activity, completed=done, total=total
        )


def _print_operations(operations: Operations) -> None:
    """Print the cost of each operation on each system."""
    console = Console()
    if operations.conclusion is not None:
        console.print(Text(printable(operations.conclusion), style="bold"))
        console.print()
    print_tables(operations.terminal_tables(console.width), console)


def _operation_chapters(
    operations: Operations, records: Sequence[Record], parts: Sequence[Scope], selection: ComparedSides
) -> list[ComparisonChapter]:
    """Return the chapters with the operations' tables and figures."""
    sides = [
        (part, sides_of(records, part, force=selection.force)) for part in parts if part.operation is not None
    ]
    return operation_chapters(
        operations,
        [(part, group, pairs(group, selection.baseline) if len(group) > 1 else []) for part, group in sides],
    )


def _timing(records: Sequence[Record], added: AddedValues) -> list[ComparisonChapter]:
    """Return the chapter of frequencies; empty if the records have no step that is compared with a period."""
    chapter = timing_chapter(how_often(records, added.frequency()))
    return [chapter] if chapter.grids else []


def compare_records(
    selection: ComparedSides,
    statistics: ComparisonStatistics,
    shown: PrintedComparison,
    added: AddedValues,
    require: str | None,
    *,
    fail_if_worse: bool,
) -> int:
    """Compare the records, print and write the result, and return the exit status.

    Raises InputError if an option is wrong, nothing can be compared, or a file cannot be written; RecordError
    for a damaged record.
    """
    options = _options(statistics)
    makers = [group.part_maker() for group in added.of(ComparesMore)]
    added.frequency()  # raises InputError
    requirement = None if require is None else parse_requirement(require)
    if shown.page == "":
        raise InputError("--page: name the file to write, e.g. --page compare.html")
    page = None if shown.page is None else Path(shown.page)
    records = open_records(selection.records or [], selection.side or [])
    operations = operations_of(records)
    parts = scopes_of(records, selection.metric, tabulated=operations is not None)
    verdicts = {} if requirement is None else _verdicts(requirement, records)
    compared = [
        replace(part, result=part.result.model_copy(update={"verdicts": verdicts}))
        for part in _compared(selection, records, parts, options, makers, alone=operations is None)
    ]
    results = [part.result for part in compared]
    if shown.json:
        if operations is not None:  # a document of operations has no verdicts
            _print_verdicts(verdicts, as_json=True)
        document = compared_document(
            None if operations is None else operations.document, results, single=parts == [EVERYTHING]
        )
        typer.echo(document.model_dump_json(indent=1))
    else:
        _print_verdicts(verdicts, as_json=False)
        if operations is not None:
            _print_operations(operations)
        _print(compared, details=shown.details, after=operations is not None)
    if page is not None or shown.figures is not None:
        chapters = [
            *([] if operations is None else _operation_chapters(operations, records, parts, selection)),
            *(chapter_of(part.result, part.sides, part.scope.title) for part in compared),
            *_timing(records, added),
        ]
        write(
            chapters,
            records,
            verdicts,
            page=page,
            figures=shown.figures,
            notify=lambda line: typer.echo(line, err=shown.json),
        )
    return _status(verdicts, results if fail_if_worse else None)


def _options(statistics: ComparisonStatistics) -> ComparisonOptions:
    within_ns = duration_option("--within", statistics.within)
    if not 0 < statistics.alpha < 1:
        raise InputError(f"--alpha {statistics.alpha:g} is not between 0 and 1; try 0.05")
    return ComparisonOptions(statistics.alpha, within_ns, statistics.intervals)


def _verdicts(requirement: Requirement, records: Sequence[Record]) -> dict[str, Verdict]:
    return {
        name: judge_run(requirement, record, RecordView(record).labels, blame_of)[0]
        for name, record in zip(record_names(records), records, strict=True)
    }


def _compared(
    selection: ComparedSides,
    records: Sequence[Record],
    parts: Sequence[Scope],
    options: ComparisonOptions,
    makers: Sequence[PartMaker],
    *,
    alone: bool,
) -> list[Compared]:
    """Compare each part that has several sides.

    If no part has several sides and nothing else is shown (`alone`), raises InputError with advice.
    """
    groups = [
        (part, sides_of(records, part, force=selection.force)) for part in parts if part.operation is None
    ]
    comparable = [(part, sides) for part, sides in groups if len(sides) > 1]
    if comparable or not alone:
        left_out: list[str] = []
        for part, sides in groups:
            if len(sides) < 2:
                left_out.append(part.title)
        if left_out:
            remark = f"left out, because only one side measured this: {', '.join(left_out)}"
            print_labelled("", remark, Console(stderr=True), width=0)
    elif len(groups) > 1:
        sides_of(records, force=selection.force)  # raises the error that names the difference
    compared: list[Compared] = []
    with _progress() as progress:
        for part, sides in comparable if comparable or not alone else groups:
            compared_pairs = pairs(sides, selection.baseline)  # raises for a single side
            result = compare_sides(sides, compared_pairs, options, progress)
            result = result.model_copy(update={"task": part.task, "title": part.title})
            result = with_parts(
                result, [make(sides, compared_pairs, options.alpha, progress) for make in makers]
            )
            compared.append(Compared(part, result, sides, compared_pairs))
    return compared


def _print_verdicts(verdicts: Mapping[str, Verdict], *, as_json: bool) -> None:
    """Print each record's verdict, on standard error if standard output has a JSON document."""
    console = Console(stderr=as_json)
    for name, verdict in verdicts.items():
        console.print(
            Text.assemble(
                (verdict.word.value.upper(), STYLE[verdict.word]),
                f"  {printable(name)}: {printable(reason_text(verdict))}",
            )
        )


def _status(verdicts: Mapping[str, Verdict], comparisons: Sequence[Comparison] | None) -> int:
    """Return the exit status of the worst verdict; 0 if there was no requirement.

    `comparisons`: the comparisons that --fail-if-worse judges. The status also says if a side is worse.
    """
    required = exit_status(list(verdicts.values()), [])
    if comparisons is None or required == EXIT_FAILS:
        return required
    worse = sum(len(result.worse) for result in comparisons)
    undetermined = [side for result in comparisons for side in result.undetermined]
    if worse:
        return EXIT_FAILS
    if undetermined or not comparisons:
        whose = f" about {' and '.join(undetermined)}" if undetermined else ""
        typer.echo(
            f"--fail-if-worse cannot tell{whose}; measure each side at least twice, and for longer",
            err=True,
        )
        return EXIT_CANNOT_TELL
    return required


def _print(compared: Sequence[Compared], *, details: bool, after: bool) -> None:
    """Print each comparison with its title. `after`: whether something was printed before."""
    console = Console()
    for i, part in enumerate(compared):
        result = part.result
        if i or after:
            console.print()
        if part.scope.title:
            console.print(Text(printable(part.scope.title), style="bold reverse"))
        style = STYLES.get(result.outcome, "yellow")
        print_head(result, style, console, values=result.values, doubt=doubtful_sides(result))
        console.print()
        tables = comparison_grids(result, part.sides)
        shown = [
            first_settings(table) if table.title == SETTINGS else table
            for table in tables
            if details or not table.folded
        ]
        print_tables(shown, console)
        if not details:
            console.print()
            for note in folded_notes(result):
                print_labelled("", note, console, width=0)
    if compared and not details:
        console.print(Text("In full with --details.", style="dim"))
