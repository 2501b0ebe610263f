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
) -> None:
    """Make a record of an old cyclictest measurement.

    \b
    Example:
      cyclictest -m -p 98 -a -t -i 1000 -l 100000 -q -h 400 > old.txt
      rtgauge import cyclictest old.txt
    """
    from rtgauge.cli.finish import finish
    from rtgauge.record.import_cyclictest import import_cyclictest
    from rtgauge.record.reader import Record

    path = import_cyclictest(file, out)
    raise typer.Exit(finish(path, Record.open(path).run, as_json=False))
