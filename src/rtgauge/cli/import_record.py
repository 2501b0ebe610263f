# SPDX-License-Identifier: MIT
"""`rtgauge import`: makes records of other tools' measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HELP = """Import another tool's measurement as a record.

\b
Example:
  rtgauge import cyclictest old.txt
"""

app = typer.Typer(help=HELP)


@app.callback()
def _imports() -> None:  # pyright: ignore[reportUnusedFunction]
    """Import another tool's measurement as a record."""


@app.command("cyclictest")
def cyclictest(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output of cyclictest: text of -h, -H or --histfile, or --json.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for records.")] = Path("rtgauge-runs"),
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="cyclictest's -i, if the file does not contain it, e.g. 200us.")] = None,
    nanoseconds: Annotated[bool, typer.Option("--ns", help="Latencies in the file are in ns (cyclictest -N), not us.")] = False,
) -> None:
    """Import a cyclictest measurement.

    \b
    Example:
      cyclictest -m -p 98 -a -t -i 1000 -l 100000 -q -h 400 > old.txt
      rtgauge import cyclictest old.txt --interval 1ms
    """
    from rtgauge.cli.conclusion import finish
    from rtgauge.cli.options import duration_option
    from rtgauge.errors import InputError
    from rtgauge.importers.import_cyclictest import import_cyclictest
    from rtgauge.record.reader import Record

    interval_ns = None if interval is None else duration_option("--interval", interval)
    if interval_ns == 0:
        raise InputError("--interval must be longer than 0, e.g. 1ms or 100us")
    path = import_cyclictest(file, out, interval_ns=interval_ns, unit_ns=1 if nanoseconds else None)
    raise typer.Exit(finish(path, Record.open(path).run, as_json=False))
