# SPDX-License-Identifier: MIT
"""`rtgauge sched` analyses whether a task set is schedulable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.options import Json
from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK, InputError

if TYPE_CHECKING:
    from rtgauge.schedulability.analysis.analyse import SetResult


def sched(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Task set in TOML: a [[task]] with name, period and execution per task."
        ),
    ] = None,
    json: Json = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=("Write the timeline, or the curve of --random, to this .svg, .png, .pdf or .html file."),
        ),
    ] = None,
    jitter_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD", help="Take the release jitter from a record: the CPU's largest latency."
        ),
    ] = None,
    execution_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD",
            help="Take execution times from a record of the taskset probe: each task's largest.",
        ),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            metavar="N",
            help="Instead of a file: N random task sets at each utilisation.",
        ),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, max=99, metavar="N", help="Tasks in each random set.")] = 20,
    utilisation: Annotated[
        str, typer.Option(metavar="LOW:HIGH[:STEP]", help="Utilisations of the random sets.")
    ] = "0.5:1.0",
    periods: Annotated[
        str,
        typer.Option(
            metavar="LOW:HIGH", help=("Periods of the tasks in the random sets, drawn log-uniformly.")
        ),
    ] = "10ms:1s",
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the random sets, to reproduce them.")
    ] = 1,
    growth: Annotated[
        bool,
        typer.Option(
            "--growth", help="Also compute by how much the execution times of the random sets could grow."
        ),
    ] = False,
) -> None:
    """Check whether a periodic task set meets its deadlines.

    It uses response-time analysis for fixed priorities, and gives each task's margin.

    \b
    Examples:
      rtgauge sched control.toml --figure timeline.svg
      rtgauge sched control.toml --jitter-from rtgauge-runs/RECORD
      rtgauge sched --random 1000 --tasks 20 --figure ratio.svg

    Exit status: 0 schedulable, 1 not, 2 wrong input, 4 cannot tell.
    """
    from rtgauge.report.figures.files import figure_form

    if (file is None) == (random is None):
        raise InputError("give the file of a task set, or --random N (see rtgauge sched --help)")
    if figure is not None:
        figure_form(figure)
    if file is not None:
        raise typer.Exit(_analyse_file(file, jitter_from, execution_from, figure, as_json=json))
    if jitter_from is not None or execution_from is not None:
        raise InputError(
            "--jitter-from and --execution-from work only with the file of a task set, not with --random"
        )
    assert random is not None  # noqa: S101 - one of the two, see above
    _analyse_random(random, tasks, utilisation, periods, seed, figure, growth=growth, as_json=json)


def _analyse_file(
    file: Path, jitter_from: Path | None, execution_from: Path | None, figure: Path | None, *, as_json: bool
) -> int:
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.figures.files import write_figure
    from rtgauge.schedulability.analysis.analyse import analyse
    from rtgauge.schedulability.analysis.measured_set import execution_from_record, jitter_from_record
    from rtgauge.schedulability.page.analysis_terminal import print_set
    from rtgauge.schedulability.page.schedule_figure import timeline_figure
    from rtgauge.schedulability.task_set import read_task_set

    task_set, notes = read_task_set(file), list[str]()
    if jitter_from is not None:
        task_set, notes = jitter_from_record(task_set, open_record(jitter_from))
    if execution_from is not None:
        task_set, more = execution_from_record(task_set, open_record(execution_from))
        notes += more
    result = analyse(task_set)
    result.notes = notes
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        print_set(result, Console())
    if figure is not None:
        write_figure(timeline_figure(result), figure, _subtitle(result))
    return _status(result)


def _subtitle(result: SetResult) -> str:
    return (
        f"{result.answer}; triangles are releases, dashed red parts are preempted; jitter and blocking are "
        f"not shown"
    )


def _status(result: SetResult) -> int:
    from rtgauge.schedulability.analysis.analyse import Answer

    return {
        Answer.SCHEDULABLE: EXIT_OK,
        Answer.NOT_SCHEDULABLE: EXIT_FAILS,
        Answer.CANNOT_TELL: EXIT_CANNOT_TELL,
    }[result.answer]


def _analyse_random(
    sets: int,
    tasks: int,
    utilisation: str,
    periods: str,
    seed: int,
    figure: Path | None,
    *,
    growth: bool,
    as_json: bool,
) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from rtgauge.cli.console import Console
    from rtgauge.report.figures.files import write_figure
    from rtgauge.schedulability.analysis.random_sets import (
        parse_periods,
        parse_utilisations,
        schedulability_ratio,
    )
    from rtgauge.schedulability.page.analysis_terminal import print_ratio
    from rtgauge.schedulability.page.schedule_figure import ratio_figure

    shares, periods_ns = parse_utilisations(utilisation), parse_periods(periods, tasks)
    terminal = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:.0f}/{task.total:.0f} sets"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        bar = progress.add_task("random sets", total=sets * len(shares))
        result = schedulability_ratio(
            sets,
            tasks,
            shares,
            periods_ns=periods_ns,
            seed=seed,
            growth=growth,
            progress=lambda done: progress.advance(bar, done),
        )
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        print_ratio(result, Console())
    if figure is not None:
        write_figure(
            ratio_figure(result),
            figure,
            f"UUniFast, periods {periods}, rate-monotonic, seed {seed}; vertical lines: 95 % "
            "confidence interval",
        )
