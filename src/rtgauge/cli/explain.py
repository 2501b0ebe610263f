# SPDX-License-Identifier: MIT
"""`rtgauge show --why` shows every explained latency of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from rtgauge.errors import InputError

if TYPE_CHECKING:
    from rtgauge.record.reader import Record


def show_explained(record: Record, step: str | None, *, json: bool) -> None:
    """Print the answer, and where the time of each explained latency went. `step`: only this one.

    Raises InputError if the record has no such step, or none is explained.
    """

    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import with_one_step
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.explain.page.explained_document import explained_document
    from rtgauge.explain.page.presenter import print_latencies
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.terminal_summary import print_conclusion

    explained = explained_steps(record, with_one_step(record, step).steps)
    if not explained:
        raise InputError("this record does not explain any latency; measure again with --explain")
    if json:
        typer.echo(explained_document(str(record.path), explained).model_dump_json(indent=1))
        return
    console = Console()
    print_conclusion(record, console)
    console.print()
    print_latencies(RecordView(record), explained, console)
