# SPDX-License-Identifier: MIT
"""`rtgauge export`: statistics for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from rtgauge.exporters.record_export import Format


def export(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A record's folder.")],
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="csv, parquet or json.")] = "csv",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write; default: standard output (not for parquet).")] = None,
    windows: Annotated[bool, typer.Option("--windows", help="Export the one-second windows with their histograms (parquet only).")] = False,
) -> None:
    """Export the statistics of a record for other tools.

    One row per step and CPU: what was measured, how, and all statistics.

    \b
    Examples:
      rtgauge export RECORD > statistics.csv
      rtgauge export RECORD --format json
      rtgauge export RECORD --format parquet --windows -o windows.parquet
    """
    from rtgauge.cli.record_argument import open_record
    from rtgauge.errors import InputError
    from rtgauge.exporters.record_export import FORMATS
    from rtgauge.exporters.record_export import export as write
    from rtgauge.suggest import nearest

    if form not in FORMATS:
        raise InputError(f"unknown format '{form}'{nearest(form, FORMATS)}")
    text = write(open_record(record), cast("Format", form), out, windows=windows)
    if text is not None:
        typer.echo(text, nl=False)
