# SPDX-License-Identifier: MIT
"""`rtgauge advise`: which way to implement a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def advise(
    require: Annotated[str, typer.Option(metavar="TEXT", help='What the task needs, e.g. "period=1ms response<=200us hardness=100%".')],
    records: Annotated[list[Path] | None, typer.Argument(metavar="[RECORD...]", help="Records as evidence; of several kernels, several records.")] = None,
    chart: Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="today, brown2010 (the paper's own), or a chart of yours.")] = "today",
    black: Annotated[float | None, typer.Option(metavar="X", help="Clearly in the black up to X times the bound; default 0.8.")] = None,
    marginal: Annotated[float | None, typer.Option(metavar="X", help="Marginal up to X times the bound; default 2.")] = None,
    trouble: Annotated[float | None, typer.Option(metavar="X", help="In trouble up to X times the bound, off the map beyond; default 20.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Which way to implement a real-time task: user space, PREEMPT_RT, a kernel module, Xenomai, or dedicated hardware.

    Walks the flowchart of Brown & Martin (2010) with what was measured: each step with its evidence, what was not measured and would change the
    answer, what the way costs, what has changed since, and the next measurement as a command. Not for anything that lives depend on.

    \b
    Examples:
      rtgauge advise --require "period=1ms hardness=95%"
          where to begin, before anything is measured
      rtgauge advise --require "latency<=200us" RECORD
      rtgauge advise --require "response<=500us hardness=95%" STOCK RT
          two kernels as evidence
      rtgauge advise --require "latency<=200us" RECORD --chart brown2010
          as the paper would have it
      rtgauge advise --require "latency<=200us" RECORD --marginal 1.5
          with a threshold of your own

    \b
    Exit status:
      0  the way was measured, under load, and is clearly in the black
      1  no software way is left
      2  wrong input
      4  it has to be measured first
    """
    from rtgauge.errors import InputError
    from rtgauge.record.reader import Record
    from rtgauge.verdict.flowchart import advise as walk
    from rtgauge.verdict.flowchart_file import load_flowchart, with_thresholds
    from rtgauge.verdict.requirement import parse_requirement

    requirement = parse_requirement(require)
    flowchart, chosen = load_flowchart(chart)
    thresholds = with_thresholds(flowchart.thresholds, black=black, marginal=marginal, trouble=trouble)
    paths = list(records or [])
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a record is named twice: it is evidence only once")
    found = walk(requirement, [Record.open(path) for path in paths], flowchart, chosen, thresholds)
    if json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        from rich.console import Console

        from rtgauge.report.advice import print_advice

        print_advice(found, Console())
    raise typer.Exit(found.status)
