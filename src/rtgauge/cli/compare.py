# SPDX-License-Identifier: MIT
"""`rtgauge compare`: records, loads, deployments or kernels side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.options import Fraction, Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtgauge.analysis.comparison import Comparison
    from rtgauge.analysis.comparison_scope import Scope
    from rtgauge.analysis.sides import Side
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.page import Chapter
    from rtgauge.report.frequency_tables import Timing

DEFAULT_RESAMPLES = 1_999


def _progress() -> tuple[Callable[[str, int, int], None] | None, Callable[[], None]]:
    """What shows progress on standard error where that is a terminal, and what takes it away."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        return None, lambda: None
    bar = Progress(console=console, transient=True)
    task = bar.add_task("reading", total=None)
    bar.start()
    return (lambda what, done, total: bar.update(task, description=what, completed=done, total=total)), bar.stop


def _operations(
    records: Sequence[Record], baseline: str | None, timing: Timing, *, force: bool, as_json: bool, page: Path | None, figures: Path | None
) -> None:
    """Records of several operations, which have no common scale: the table of what each costs on each system, and the figures of each."""
    from rtgauge.analysis.comparison_scope import scopes_of
    from rtgauge.analysis.microbenchmarks import microbenchmarks
    from rtgauge.analysis.sides import pairs, sides_of

    found = microbenchmarks(records)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        from rich.console import Console

        from rtgauge.report.compare.terminal import print_grids
        from rtgauge.report.microbenchmark_tables import terminal_grids

        console = Console()
        print_grids(terminal_grids(found, console.width), console)
    if page is None and figures is None:
        return
    from rtgauge.report.compare.chapters import operation_chapters
    from rtgauge.report.compare.files import write

    sides = [(part, sides_of(records, part, force=force)) for part in scopes_of(records, None)]
    drawn = [(part, there, pairs(there, baseline) if len(there) > 1 else []) for part, there in sides]
    chapters = [*operation_chapters(found, drawn), *_timing(records, timing)]
    write(chapters, records, page=page, figures=figures, say=lambda line: typer.echo(line, err=as_json))


def _timing(records: Sequence[Record], timing: Timing) -> list[Chapter]:
    """The chapter of frequencies, where the records hold something that is judged against a period."""
    from rtgauge.analysis.frequency import gather
    from rtgauge.report.compare.chapters import timing_chapter

    chapter = timing_chapter(records, gather(records, timing.options), timing.markers)
    return [chapter] if chapter.grids else []


def compare(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders of records; one is enough where it holds several loads or deployments.")],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RECORD|LABEL", help="What the others are compared with: a record, label, deployment, load or kernel; default: Single."),
    ] = None,
    within: Annotated[str, typer.Option(metavar="DURATION", help="Differences up to this are called the same.")] = "2us",
    alpha: Annotated[float, typer.Option(help="Level of every test; intervals have a confidence of 1 - alpha.")] = 0.05,
    scale: Annotated[str, typer.Option(metavar="percent|counts", help="What the paper's chi-square statistic is computed from.")] = "percent",
    resamples: Annotated[int, typer.Option(min=0, help="Resamples of the bootstrap; 0: no intervals.")] = DEFAULT_RESAMPLES,
    tails: Annotated[bool, typer.Option("--tails/--no-tails", help="Estimate the latency exceeded once in a million activations and rarer.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Also compare emulated machines with others.")] = False,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of task sets, task by task: response (default), latency, response-from-start, period, jitter or execution."),
    ] = None,
    fraction: Fraction = "0.5",
    marker: Marker = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Also write a page with the figures.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF into this folder.")] = None,
) -> None:
    """Compare what was measured: figures, settings that differ, the selection of the papers, differences of quantiles with intervals, and tails.

    Microbenchmarks are compared operation by operation, task sets task by task.

    \b
    Examples:
      rtgauge compare RECORD
          the loads or deployments of one record
      rtgauge compare BEFORE AFTER -o compare.html
          two records, with a page
      rtgauge compare STOCK RT --figures figures
          the papers' table of microbenchmarks, for two kernels, and the figures as files
      rtgauge compare TASKS --metric latency
          the release latency of each task of a task set, idle and loaded
    """
    from rtgauge.analysis.chi_square import Scale
    from rtgauge.analysis.comparison import Options
    from rtgauge.analysis.comparison import compare as compare_sides
    from rtgauge.analysis.comparison_scope import scopes_of
    from rtgauge.analysis.microbenchmarks import has_several_operations
    from rtgauge.analysis.sides import pairs, sides_of
    from rtgauge.cli.options import duration_option, timing
    from rtgauge.errors import InputError
    from rtgauge.record.reader import Record

    within_ns = duration_option("--within", within)
    if not 0 < alpha < 1:
        raise InputError(f"--alpha {alpha:g} is not between 0 and 1; 0.05 is usual")
    if scale not in set(Scale):
        raise InputError(f"--scale {scale} is neither percent nor counts")
    asked = timing(fraction, marker)
    opened = [Record.open(record) for record in records]
    parts = scopes_of(opened, metric)
    if has_several_operations(opened):
        _operations(opened, baseline, asked, force=force, as_json=json, page=out, figures=figures)
        return
    found: list[tuple[Scope, Comparison, list[Side], list[tuple[Side, Side]]]] = []
    progress, end = _progress()
    try:
        every = [(part, sides_of(opened, part, force=force)) for part in parts]
        several = [(part, sides) for part, sides in every if len(sides) > 1]
        for part, sides in every if several else []:
            if len(sides) < 2:
                typer.echo(f"left out: {part.title}: there is only one side of it", err=True)
        for part, sides in several or every:  # of one side alone `pairs` says what to do
            chosen = pairs(sides, baseline)
            result = compare_sides(sides, chosen, Options(alpha, within_ns, Scale(scale), resamples, tails), progress)
            found.append((part, result.model_copy(update={"task": part.task}), sides, chosen))
    finally:
        end()
    if json:
        documents = [result.model_dump_json(indent=1) for _, result, _, _ in found]
        typer.echo(documents[0] if parts[0].task is None else f"[{','.join(documents)}]")
    else:
        _print(found)
    if out is not None or figures is not None:
        from rtgauge.report.compare.chapters import chapter_of
        from rtgauge.report.compare.files import write

        chapters = [chapter_of(result, sides, chosen, part.title) for part, result, sides, chosen in found]
        write([*chapters, *_timing(opened, asked)], opened, page=out, figures=figures, say=lambda line: typer.echo(line, err=json))


def _print(found: Sequence[tuple[Scope, Comparison, list[Side], list[tuple[Side, Side]]]]) -> None:
    from rich.console import Console
    from rich.text import Text

    from rtgauge.report.compare.chapters import comparison_grids
    from rtgauge.report.compare.terminal import print_grids
    from rtgauge.report.text import printable

    console = Console()
    for i, (part, result, sides, _) in enumerate(found):
        if i:
            console.print()
        if part.title:
            console.print(Text(printable(part.title), style="bold reverse"))
        print_grids(comparison_grids(result, sides, console.width), console)
