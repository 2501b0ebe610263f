# SPDX-License-Identifier: MIT
"""`rtgauge advise` says how to implement a task."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.shared_options import Json
from rtgauge.errors import InputError
from rtgauge.input_file import real_path


def advise(
    require: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help='The task\'s requirement, e.g. "period=1ms response<=200us hardness=100%".'
        ),
    ],
    records: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RECORD...]", help="Records to use as evidence, e.g. one per kernel."),
    ] = None,
    chart: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.toml",
            help=("Flowchart: today, brown2010 (the paper's own), or a file of your own."),
        ),
    ] = "today",
    json: Json = False,
) -> None:
    """Recommend how to implement a real-time task.

    The answer is user space, PREEMPT_RT, a kernel module, Xenomai or hardware. It follows the flowchart of
    Brown & Martin (2010) with your measured values. It shows the evidence for each decision and the costs
    of the choice, and what has changed since 2010. It also names missing measurements that could change the
    answer, and the command for the next one. If the records are from several machines, each machine gets an
    answer. Do not use it for safety-critical systems.

    \b
    Examples:
      rtgauge advise --require "period=1ms hardness=95%"
          which solution to try first, before you measure
      rtgauge advise --require "latency<=200us" RECORD
      rtgauge advise --require "response<=500us hardness=95%" STOCK RT
          two kernels as evidence
      rtgauge advise --require "latency<=200us" RECORD --chart brown2010
          the paper's own flowchart

    \b
    Exit status:
      0  a solution clearly meets the requirement, as measured under load
      1  no software solution is left
      2  wrong input
      4  measurements are missing
    For several machines, the status is the largest.
    """
    from rich.text import Text

    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.explain.analysis.culprits import blame_of
    from rtgauge.report.text import printable
    from rtgauge.verdict.requirement import parse_requirement
    from rtgauge_ext.papers.advise.advice_report import print_advice
    from rtgauge_ext.papers.advise.flowchart import advise as follow_flowchart
    from rtgauge_ext.papers.advise.flowchart import machines_of
    from rtgauge_ext.papers.advise.flowchart_file import load_flowchart

    requirement = parse_requirement(require)
    flowchart, chosen = load_flowchart(chart)
    paths = list(records or [])
    if len({real_path(path) for path in paths}) < len(paths):
        raise InputError("a record is named twice; name each record once")
    opened = [open_record(path) for path in paths]
    machines = machines_of(opened) or {None: ""}
    advices = {
        host: follow_flowchart(requirement, opened, flowchart, chosen, blame_of, machine)
        for machine, host in machines.items()
    }
    if json:
        # One machine has one document, several have a list.
        documents = [advice.model_dump(mode="json") for advice in advices.values()]
        typer.echo(dumps(documents if len(documents) > 1 else documents[0], indent=1))
    else:
        console = Console()
        for host, advice in advices.items():
            if len(advices) > 1:
                console.rule(Text(printable(host)))
            print_advice(advice, console)
    raise typer.Exit(max(advice.status for advice in advices.values()))
