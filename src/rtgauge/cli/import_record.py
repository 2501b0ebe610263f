# SPDX-License-Identifier: MIT
"""`rtgauge import`: measurements of other tools become records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HELP = """Make a record of what another tool has measured.

\b
Example:
  rtgauge import cyclictest old.txt
"""

app = typer.Typer(help=HELP)


@app.callback()
def _imports() -> None:  # pyright: ignore[reportUnusedFunction]
    """Make a record of what another tool has measured."""


@app.command("cyclictest")
def cyclictest(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What cyclictest wrote: text of -h, -H or --histfile, or --json.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder that holds records.")] = Path("rtgauge-runs"),
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="cyclictest's -i where the file does not say it, e.g. 200us.")] = None,
    nanoseconds: Annotated[bool, typer.Option("--ns", help="The file's latencies are ns (cyclictest -N), not us.")] = False,
) -> None:
    """Make a record of an old cyclictest measurement.

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
        raise InputError("--interval: the interval must be longer than 0; give one such as 1ms or 100us")
    path = import_cyclictest(file, out, interval_ns=interval_ns, unit_ns=1 if nanoseconds else None)
    raise typer.Exit(finish(path, Record.open(path).run, as_json=False))
