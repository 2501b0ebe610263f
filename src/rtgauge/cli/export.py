# SPDX-License-Identifier: MIT
"""`rtgauge export`: the numbers for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    record: Annotated[Path, typer.Argument(help="A record's folder.")],
    form: Annotated[str, typer.Option("--format", help="csv, parquet or json.")] = "csv",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; default standard output (not for parquet).")] = None,
) -> None:
    """Write one row a step and series: what was measured, how, and every figure."""
    from rtgauge.record.export import export as write
    from rtgauge.record.reader import Record

    write(Record.open(record), form, out)
