# SPDX-License-Identifier: MIT
"""`rtgauge show` and `rtgauge list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import Json


def show(record: Annotated[Path, typer.Argument(metavar="RECORD", help="Folder of a record, or latest.")], json: Json = False) -> None:
    """Print the summary of a record.

    \b
    Example:
      rtgauge show rtgauge-runs/2026-11-21T10-03-22Z-pc-quick-7f3a
    """
    from rich.console import Console

    from rtgauge.cli.record_argument import open_record
    from rtgauge.record.model import RunDocument
    from rtgauge.report.terminal import print_summary

    opened = open_record(record)
    if json:
        typer.echo(RunDocument(run=opened.run, steps=opened.steps, systems=opened.systems, record=str(record)).model_dump_json(indent=1))
    else:
        print_summary(opened, Console())


def list_records(out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of records.")] = Path("rtgauge-runs"), json: Json = False) -> None:
    """List the records in a folder.

    \b
    Example:
      rtgauge list rtgauge-runs
    """
    from json import dumps

    from rich.console import Console

    from rtgauge.errors import InputError, RecordError
    from rtgauge.record.reader import Record
    from rtgauge.report.terminal import print_list

    if not out.is_dir():
        raise InputError(f"there is no folder {out}; rtgauge run creates it")
    records: list[Record] = []
    for folder in sorted(path.parent for path in out.glob("*/run.json")):
        try:
            records.append(Record.open(folder))
        except RecordError as error:
            typer.echo(f"rtgauge: left out: {error}", err=True)
    if json:
        typer.echo(dumps([{"record": str(record.path), **record.run.model_dump(mode="json", exclude={"planned", "plan"})} for record in records], indent=1))
    elif not records:
        typer.echo(f"no records in {out}")
    else:
        print_list(records, Console())
