# SPDX-License-Identifier: MIT
"""`rtgauge compare`: records, loads, deployments or kernels side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.text import Text

from rtgauge.analysis.chi_square import Scale
from rtgauge.analysis.comparison import Options
from rtgauge.analysis.comparison import compare as compare_sides
from rtgauge.analysis.comparison_document import Comparison, compared_document
from rtgauge.analysis.comparison_scope import EVERYTHING, Scope, scopes_of
from rtgauge.analysis.frequency import gather
from rtgauge.analysis.microbenchmarks import Microbenchmarks, has_several_operations, microbenchmarks
from rtgauge.analysis.record_names import record_names
from rtgauge.analysis.sides import Side, pairs, sides_of
from rtgauge.cli.console import Console
from rtgauge.cli.options import Fraction, Json, Marker, duration_option, timing
from rtgauge.cli.record_argument import open_records
from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, InputError
from rtgauge.explain.analysis.culprits import blame_of
from rtgauge.record.model import Verdict
from rtgauge.record.reader import Record
from rtgauge.report.compare.page import (
    Chapter,
    chapter_of,
    comparison_grids,
    operation_chapters,
    timing_chapter,
    write,
)
from rtgauge.report.compare.tables import SETTINGS, doubtful_sides, first_settings, folded_notes
from rtgauge.report.frequency_tables import Timing
from rtgauge.report.microbenchmark_tables import conclusion, terminal_grids
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal import STYLE
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import printable
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from rtgauge.verdict.worst import exit_status


def _progress() -> tuple[Callable[[str, int, int], None] | None, Callable[[], None]]:
    """(progress callback or None, function that removes the bar); only a terminal gets a bar."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return None, lambda: None
    bar = Progress(console=console, transient=True)
    task = bar.add_task("reading", total=None)
    bar.start()
    return (
        lambda activity, done, total: bar.update(task, description=activity, completed=done, total=total)
    ), bar.stop


def _print_operations(benchmarks: Microbenchmarks) -> None:
    """The tables of operations, which have no common scale: the cost of each on each system."""
    console = Console()
    if (sentence := conclusion(benchmarks)) is not None:
        console.print(Text(printable(sentence), style="bold"))
        console.print()
    print_tables(terminal_grids(benchmarks, console.width), console)


def _operation_chapters(
    benchmarks: Microbenchmarks,
    records: Sequence[Record],
    scopes: Sequence[Scope],
    baseline: str | None,
    *,
    force: bool,
) -> list[Chapter]:
    """The tables of the operations and the figures of each."""
    sides = [(scope, sides_of(records, scope, force=force)) for scope in scopes]
    return operation_chapters(
        benchmarks,
        [(scope, group, pairs(group, baseline) if len(group) > 1 else []) for scope, group in sides],
    )


def _timing(records: Sequence[Record], timing: Timing) -> list[Chapter]:
    """The chapter of frequencies, if the records have steps that can be judged against a period."""
    chapter = timing_chapter(records, gather(records, timing.options), timing.markers)
    return [chapter] if chapter.grids else []


def compare(
    records: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RECORD",
            help="Record folders, or latest; one is enough if it has several loads or deployments.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RECORD",
            help="A record, and what to call it. Records of one NAME are runs of one side.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RECORD|LABEL",
            help=(
                "What the others are compared with: a record, label, deployment, load or kernel; "
                "default: Single."
            ),
        ),
    ] = None,
    within: Annotated[
        str, typer.Option(metavar="DURATION", help="Differences up to this count as equal.")
    ] = "2us",
    alpha: Annotated[
        float, typer.Option(help="Significance level; confidence intervals are at 1 - alpha.")
    ] = 0.05,
    scale: Annotated[
        str, typer.Option(metavar="percent|counts", help="Input of the paper's chi-square statistic.")
    ] = "percent",
    intervals: Annotated[
        bool,
        typer.Option("--intervals/--no-intervals", help="Estimate confidence intervals of the differences."),
    ] = True,
    tails: Annotated[
        bool,
        typer.Option(
            "--tails/--no-tails", help="Estimate the latency exceeded once in a million activations or less."
        ),
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Allow comparing emulated with real machines.")
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=(
                "Metric of task sets: response (default), latency, response-from-start, period, "
                "absolute-jitter, execution."
            ),
        ),
    ] = None,
    fraction: Fraction = "0.5",
    marker: Marker = None,
    require: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help='Requirement to judge every record by, e.g. "period=1ms latency<=200us hardness=100%".',
        ),
    ] = None,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit status 1 if repeated runs show a side to be worse, 4 if they cannot tell; for CI.",
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also print the chi-square tests and every setting that differs."),
    ] = False,
    json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="Also write a page with the figures."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF to this folder."),
    ] = None,
) -> None:
    """Compare records, or the loads or deployments of one record.

    The first line is the conclusion. The run is the unit: a repeat of a step, or a record of one label.
    Single runs say nothing about other runs. The differences of quantiles with confidence intervals,
    statistics and tails follow; --details adds the papers' selection and the settings that differ. Probes,
    operations of microbenchmarks and tasks, which have no common scale, are compared separately.

    \b
    Examples:
      rtgauge compare RECORD
          the loads or deployments of one record
      rtgauge compare BEFORE AFTER -o compare.html
          two records, with a page
      rtgauge compare --label before=RECORD --label after=latest
          two records, and what to call them
      rtgauge compare --fail-if-worse --label old=R1 --label new=R2 \\
                      --label old=R3 --label new=R4
          two runs a side, by turns; exit status 1 if new is worse than old
      rtgauge compare STOCK RT --figures figures
          two kernels: the papers' table of microbenchmarks, and figure files
      rtgauge compare STOCK RT XENOMAI RTAI -o systems.html
          four systems that were measured by one plan, on one page
      rtgauge compare TASKS --metric latency
          release latency of each task of a task set, idle and loaded
    """
    within_ns = duration_option("--within", within)
    if not 0 < alpha < 1:
        raise InputError(f"--alpha {alpha:g} is not between 0 and 1; try 0.05")
    if scale not in set(Scale):
        raise InputError(f"--scale {scale} is neither percent nor counts")
    timing_options = timing(fraction, marker)
    requirement = None if require is None else parse_requirement(require)
    opened = open_records(records or [], label or [])
    parts = scopes_of(opened, metric)
    verdicts = (
        {}
        if requirement is None
        else {
            name: judge_run(requirement, record, RecordView(record).labels, blame_of)[0]
            for name, record in zip(record_names(opened), opened, strict=True)
        }
    )
    benchmarks = microbenchmarks(opened) if has_several_operations(opened) else None
    compared: list[tuple[Scope, Comparison, list[Side], list[tuple[Side, Side]]]] = []
    progress, end = _progress()
    try:
        groups = [(part, sides_of(opened, part, force=force)) for part in parts if part.operation is None]
        comparable = [(part, sides) for part, sides in groups if len(sides) > 1]
        if comparable or benchmarks is not None:
            for part, _ in (group for group in groups if group not in comparable):
                typer.echo(f"left out: {part.title}: nothing to compare it with", err=True)
        elif len(groups) > 1:
            sides_of(opened, force=force)  # raises the error that names what differs
        for part, sides in (
            comparable if comparable or benchmarks is not None else groups
        ):  # for a single side `pairs` raises the error that says what to do
            compared_pairs = pairs(sides, baseline)
            result = compare_sides(
                sides, compared_pairs, Options(alpha, within_ns, Scale(scale), intervals, tails), progress
            )
            compared.append(
                (
                    part,
                    result.model_copy(update={"task": part.task, "title": part.title, "verdicts": verdicts}),
                    sides,
                    compared_pairs,
                )
            )
    finally:
        end()
    if json:
        if benchmarks is not None:  # whose document has no place for them
            _print_verdicts(verdicts, as_json=True)
        typer.echo(
            compared_document(
                benchmarks, [result for _, result, _, _ in compared], one=parts == [EVERYTHING]
            ).model_dump_json(indent=1)
        )
    else:
        _print_verdicts(verdicts, as_json=False)
        if benchmarks is not None:
            _print_operations(benchmarks)
        _print(compared, details=details, after=benchmarks is not None)
    if out is not None or figures is not None:
        operations = [part for part in parts if part.operation is not None]
        chapters = [
            *(
                []
                if benchmarks is None
                else _operation_chapters(benchmarks, opened, operations, baseline, force=force)
            ),
            *(chapter_of(result, sides, chosen, part.title) for part, result, sides, chosen in compared),
            *_timing(opened, timing_options),
        ]
        write(
            chapters, opened, verdicts, page=out, figures=figures, say=lambda line: typer.echo(line, err=json)
        )
    raise typer.Exit(_status(verdicts, [result for _, result, _, _ in compared] if fail_if_worse else None))


def _print_verdicts(verdicts: Mapping[str, Verdict], *, as_json: bool) -> None:
    """What each record's verdict is; beside a JSON document on standard error."""
    console = Console(stderr=as_json)
    for name, verdict in verdicts.items():
        console.print(
            Text.assemble(
                (verdict.word.value.upper(), STYLE[verdict.word]),
                f"  {printable(name)}: {printable(verdict.reason)}",
            )
        )


def _status(verdicts: Mapping[str, Verdict], comparisons: Sequence[Comparison] | None) -> int:
    """The exit status: that of the worst verdict, 0 if nothing was required.

    `comparisons`: none of them may show a side that is worse.
    """
    required = exit_status(list(verdicts.values()), [])
    if comparisons is None or required == EXIT_FAILS:
        return required
    worse = sum(len(result.worse) for result in comparisons)
    not_told = [side for result in comparisons for side in result.not_told]
    if worse:
        return EXIT_FAILS
    if not_told or not comparisons:
        whose = f"{'; '.join(not_told)}: " if not_told else ""
        typer.echo(
            f"--fail-if-worse cannot tell: {whose}each side needs two runs with enough samples", err=True
        )
        return EXIT_CANNOT_TELL
    return required


def _print(
    compared: Sequence[tuple[Scope, Comparison, list[Side], list[tuple[Side, Side]]]],
    *,
    details: bool,
    after: bool,
) -> None:
    """Each comparison with its title; `after`: something else was printed before."""
    console = Console()
    for i, (part, result, sides, _) in enumerate(compared):
        if i or after:
            console.print()
        if part.title:
            console.print(Text(printable(part.title), style="bold reverse"))
        console.print(Text(printable(result.conclusion), style="bold"))
        if (doubt := doubtful_sides(result)) is not None:
            console.print(Text(doubt, style="yellow"))
        console.print()
        tables = comparison_grids(result, sides, console.width)
        shown = [
            first_settings(table) if table.title == SETTINGS else table
            for table in tables
            if details or not table.folded
        ]
        print_tables(shown, console)
        if not details:
            console.print()
            for note in folded_notes(result):
                console.print(Text(printable(note)))
    if compared and not details:
        console.print(Text("In full with --details.", style="dim"))
