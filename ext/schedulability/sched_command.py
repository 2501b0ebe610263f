# SPDX-License-Identifier: MIT
"""`rtgauge sched` analyses whether a task set is schedulable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import Json
from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK

if TYPE_CHECKING:
    from rtgauge_ext.schedulability.analysis.analyse import SetResult


def sched(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Task set in TOML: a [[task]] with name, period and execution per task."
        ),
    ],
    json: Json = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the timeline to this .svg, .png, .pdf or .html file.",
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
) -> None:
    """Check whether a periodic task set meets its deadlines.

    It uses response-time analysis for fixed priorities, and gives each task's margin.

    \b
    Examples:
      rtgauge sched control.toml --figure timeline.svg
      rtgauge sched control.toml --jitter-from rtgauge-runs/RECORD

    Exit status: 0 schedulable, 1 not, 2 wrong input, 4 cannot tell.
    """
    from rtgauge.report.figures.figure_files import figure_form

    if figure is not None:
        figure_form(figure)
    raise typer.Exit(_analyse_file(file, jitter_from, execution_from, figure, as_json=json))


def _analyse_file(
    file: Path, jitter_from: Path | None, execution_from: Path | None, figure: Path | None, *, as_json: bool
) -> int:
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.figures.figure_files import write_figure
    from rtgauge_ext.schedulability.analysis.analyse import analyse
    from rtgauge_ext.schedulability.analysis.measured_set import execution_from_record, jitter_from_record
    from rtgauge_ext.schedulability.page.analysis_terminal import conclusion_words, print_set
    from rtgauge_ext.schedulability.page.schedule_figure import timeline_figure
    from rtgauge_ext.schedulability.task_set import read_task_set

    task_set, notes = read_task_set(file), list[str]()
    if jitter_from is not None:
        task_set, notes = jitter_from_record(task_set, open_record(jitter_from))
    if execution_from is not None:
        task_set, more = execution_from_record(task_set, open_record(execution_from))
        notes += more
    result = analyse(task_set)
    result.notes, result.conclusion = notes, conclusion_words(result)
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        print_set(result, Console())
    if figure is not None:
        write_figure(timeline_figure(result), figure, _subtitle(result))
    return _status(result)


def _subtitle(result: SetResult) -> str:
    return (
        f"{result.answer}; triangles are releases; in dashed red parts, a task is preempted; the figure "
        "leaves out jitter and blocking"
    )


def _status(result: SetResult) -> int:
    from rtgauge_ext.schedulability.analysis.analyse import Schedulability

    return {
        Schedulability.SCHEDULABLE: EXIT_OK,
        Schedulability.NOT_SCHEDULABLE: EXIT_FAILS,
        Schedulability.CANNOT_TELL: EXIT_CANNOT_TELL,
    }[result.answer]
