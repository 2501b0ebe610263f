# SPDX-License-Identifier: MIT
"""`rtgauge restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli.console import Console
from rtgauge.cli.kept_settings import keepers
from rtgauge.cli.shared_options import Target, target_option
from rtgauge.errors import EXIT_CANNOT_MEASURE
from rtgauge.report.restored import print_put_back
from rtgauge.system.deployment.current import read_held
from rtgauge.target.address import LOCAL
from rtgauge.target.open_target import open_target, release_target


def _put_back(target: str, *options: str) -> None:
    """Restore stale settings and the settings that `options` select, and print each outcome."""
    with open_target(target, "restore", "rtgauge restore") as opened:
        # locking the machine has already restored the settings that dead runs left
        answers = [
            *opened.restored_before,
            *(
                answer
                for answer in (opened.agent("restore", *options) if options else [])
                if answer.get("type") == "restore"
            ),
        ]
        held = read_held(opened.read)
    failed = print_put_back(answers, Console())
    if held is not None:
        typer.echo(
            f"{held.name} is still applied (by rtgauge deploy apply); undo it with: rtgauge restore "
            f"--applied{target_option(target)}"
        )
    if failed:
        raise typer.Exit(EXIT_CANNOT_MEASURE)


def restore(
    target: Target = "local",
    applied: Annotated[
        bool,
        typer.Option(
            "--applied",
            help="Also undo `rtgauge deploy apply`, and settings and services kept at each boot.",
        ),
    ] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="First end a run on the target whose host is gone, instead of waiting for its lease to end.",
        ),
    ] = False,
) -> None:
    """Put back everything that a killed run left changed: settings, deployments and locks.

    This also works after a power failure. Settings made by `rtgauge deploy apply`, and settings and services
    that are kept at each boot, stay unless you add --applied.

    \b
    Examples:
      rtgauge restore
          restore this machine; the next run would also do this
      rtgauge restore --target ssh://root@board
          on another machine
      rtgauge restore --release --target ssh://root@board
          end a run on that machine if its host is gone
      rtgauge restore --applied
          also undo `rtgauge deploy apply` and everything kept at each boot

    \b
    Exit status 3: something could not be restored, or the run could not be ended.
    """
    if release:
        run = release_target(target)
        typer.echo(f"ended    run {run}" if run is not None else "no run is using this machine")
    here = keepers() if target == LOCAL else []
    restored = [keeper.undo() for keeper in here] if applied else []
    if not any(restored):
        _put_back(target, *(("--stale", "--held") if applied else ()))
    for line in (line for keeper in here for line in keeper.kept()):
        typer.echo(line)
