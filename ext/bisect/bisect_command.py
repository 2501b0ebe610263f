# SPDX-License-Identifier: MIT
"""`rtgauge bisect` finds the commit that made a machine slower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.shared_options import Deciding, Json, MeasuringOptions, WaitForLock, grouped, wait_s
from rtgauge.errors import InputError


@grouped
def bisect(
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="Builds and boots the commit that is checked out."),
    ] = None,
    good: Annotated[str | None, typer.Option(metavar="COMMIT", help="A commit that is fast enough.")] = None,
    bad: Annotated[str | None, typer.Option(metavar="COMMIT", help="A later, slower commit.")] = None,
    repository: Annotated[
        Path, typer.Option(metavar="DIR", help="The clone whose commits are checked out.")
    ] = Path(),
    plan: Annotated[
        str, typer.Option(metavar="PLAN", help="What to measure: a preset or a TOML file.")
    ] = "quick",
    measured: MeasuringOptions,
    deciding: Deciding,
    larger_than: Annotated[
        str, typer.Option(metavar="PERCENT", help="How much worse the bad end must be.")
    ] = "10%",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the search and its records.")
    ] = Path("rtgauge-bisect"),
    wait: WaitForLock = "0",
    json: Json = False,
) -> None:
    """Find the commit that made something slower.

    `git bisect` chooses the commits, and a few runs decide on each. COMMAND builds and boots the commit that
    is checked out, in the repository's folder. If it fails, the commit is skipped. Both ends are measured
    first and must differ. Each commit is then measured alternately with both ends until it matches one of
    them. At most one search in 50 ends at a wrong commit.

    \b
    Examples:
      rtgauge bisect --good v6.12 --bad v6.13 --target lab:mine -- ./boot.sh
          a kernel, on a guest of the lab; ./boot.sh builds and boots it
      rtgauge bisect --good HEAD~20 --bad HEAD --load idle -- make install
          a program on this machine
      rtgauge resume rtgauge-bisect
          continue after Ctrl-C or a crash

    \b
    Exit status:
      0    found: one commit, or several if some were skipped
      2    wrong input
      3    could not measure
      4    cannot tell: the ends do not differ, or a commit matches neither
      130  interrupted; rtgauge resume continues
    """
    from rtgauge_ext.bisect.bisect_search import new_search, run_search

    waits_s = wait_s(wait)
    if good is None or bad is None or not command:
        raise InputError("give both ends and a command: --good COMMIT --bad COMMIT -- COMMAND")
    state = new_search(
        out, repository, (good, bad), command, (plan, measured), deciding.gate_options(larger_than)
    )
    run_search(out, state, waits_s, fresh=True, json=json)
