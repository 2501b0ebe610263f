# SPDX-License-Identifier: MIT
"""`rtgauge explain` shows every explained latency of a record."""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli.options import Json, RecordArgument
from rtgauge.errors import InputError


def explain(
    record: RecordArgument,
    step: Annotated[
        str | None, typer.Option("--step", metavar="ID", help="Only this step, e.g. 01-wakeup-idle.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain the largest latencies: show where the time of each went, in a sentence and a sum.

    The record must have been measured with --explain. rtgauge show prints only the culprits and the worst
    latency.

    \b
    Examples:
      rtgauge explain latest
      rtgauge explain latest --step 01-wakeup-idle
      rtgauge explain latest --json
    """
    from rich.text import Text

    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record, with_one_step
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.explain.page.document import explained_document
    from rtgauge.explain.page.presenter import print_latencies
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.text import printable

    opened = open_record(record)
    explained = explained_steps(opened, with_one_step(opened, step).steps)
    if not explained:
        raise InputError("no step of this record is explained; measure with --explain")
    if json:
        typer.echo(explained_document(str(opened.path), explained).model_dump_json(indent=1))
    else:
        console = Console()
        print_latencies(RecordView(opened), explained, console)
        overall = next((verdict for verdict in opened.run.verdicts if verdict.step is None), None)
        if overall is not None:
            console.print(Text(f"next  {printable(overall.next)}"), soft_wrap=True)
