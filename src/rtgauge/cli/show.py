# SPDX-License-Identifier: MIT
"""`rtgauge show` and `rtgauge list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import AllowLeftOut, Details, Json, RecordArgument, Require
from rtgauge.errors import InputError, RecordError


def show(
    record: RecordArgument,
    require: Require = None,
    allow_left_out: AllowLeftOut = False,
    details: Details = False,
    json: Json = False,
) -> None:
    """Print the summary of a record, or check it against a requirement.

    \b
    Examples:
      rtgauge show latest
      rtgauge show latest --details
      rtgauge show 2026-11-21T10-03-22Z-pc-quick-7f3a
      rtgauge show latest --require "latency<=200us"

    Exit status: 0; with --require or --allow-left-out as for rtgauge run.
    """
    from rtgauge.cli.conclusion import judged
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.terminal import print_summary
    from rtgauge.verdict.worst import exit_status

    opened = judged(open_record(record), require, allow_left_out=allow_left_out)
    if json:
        typer.echo(opened.document().model_dump_json(indent=1))
    else:
        print_summary(opened, Console(), details=details)
    if require is not None or allow_left_out:
        raise typer.Exit(exit_status(opened.run.verdicts, opened.steps))


def list_records(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of records.")] = Path("rtgauge-runs"),
    json: Json = False,
) -> None:
    """List the records in a folder, the oldest first.

    \b
    Examples:
      rtgauge list
      rtgauge show NAME
          commands accept the first column as RECORD; latest is the last one
    """
    from json import dumps

    from rtgauge.cli.console import Console
    from rtgauge.record.reader import Record, record_folders
    from rtgauge.report.terminal import print_list

    if not out.is_dir():
        raise InputError(f"there is no folder {out}; rtgauge run creates it")
    records: list[Record] = []
    for folder in record_folders(out):
        try:
            records.append(Record.open(folder))
            records[-1].folder.close()
        except RecordError as error:
            typer.echo(f"rtgauge: left out: {error}", err=True)
    if json:
        typer.echo(
            dumps(
                [
                    {
                        "record": str(record.path),
                        **record.run.model_dump(mode="json", exclude={"planned", "plan"}),
                    }
                    for record in records
                ],
                indent=1,
            )
        )
    elif not records:
        typer.echo(f"no records in {out}")
    else:
        print_list(records, Console())
