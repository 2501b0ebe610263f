# SPDX-License-Identifier: MIT
"""`rtgauge fleet` runs the same jobs on many boards, and `rtgauge resume` continues it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.extension_resumer import ResumeOptions, Resumer
from rtgauge.errors import EXIT_INTERRUPTED, InputError
from rtgauge.escape import one_line
from rtgauge.units import plural
from rtgauge_ext.store.cli.history_command import store_site


def fleet(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A TOML file: boards and jobs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of this fleet; default: PLAN without .toml."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also try boards that were put aside.")] = False,
) -> None:
    """Run the same jobs on many boards, several at once, and put the records into a store.

    After an interruption, the same command continues and does not repeat finished jobs. A board that keeps
    failing is put aside with the reason, and the others continue.

    \b
    Examples:
      rtgauge fleet nightly.toml
      rtgauge fleet nightly.toml --out /srv/fleet/2026-11-24
      rtgauge fleet nightly.toml --again

    \b
    Exit status:
      0    every requirement holds; every gate says not worse
      1    a requirement fails, or a gate says worse
      2    wrong input
      3    a board was put aside, a record is not in the store, or another
           fleet is running in the folder
      4    a job cannot tell
      130  interrupted; the same command continues
    """
    from rtgauge.record.files import clear_errors
    from rtgauge_ext.fleet.fleet import Fleet
    from rtgauge_ext.fleet.fleet_plan import FleetPlan
    from rtgauge_ext.store.queries import RecordFilter
    from rtgauge_ext.store.store import Store

    read = FleetPlan.read(plan)
    folder = plan.with_suffix("") if out is None else out
    if folder == plan:
        raise InputError(f"the name of {plan} does not end in .toml; give the fleet's folder with --out")
    running = Fleet(read, folder, notify=lambda line: typer.echo(one_line(line)), again=again)
    with clear_errors(folder, option="--out"):
        try:
            status = running.run()
        except KeyboardInterrupt:
            status = EXIT_INTERRUPTED
    summary = f"{len(running.statuses)} of {plural(len(running.tasks), 'job')} done"
    typer.echo(f"{summary} on {plural(len(read.boards), 'board')}; records in {folder}")
    if read.site is not None and read.store is not None and status != EXIT_INTERRUPTED:
        page = store_site(
            Path(read.site), Store.open(read.store, make=True), RecordFilter(), "*", "p99", "kernel"
        )
        typer.echo(f"page    {page}")
    for name, reason in running.aside.items():
        typer.echo(
            one_line(
                f"the fleet skips board {name} ({reason}); once it is repaired, try it again with --again"
            )
        )
    if status == EXIT_INTERRUPTED:
        typer.echo("interrupted; run the same command again to continue")
    raise typer.Exit(status)


def _resume(plan: Path, options: ResumeOptions) -> None:  # noqa: ARG001 - a fleet takes none
    fleet(plan)


def _question(plan: Path) -> str:
    from rtgauge_ext.fleet.fleet_plan import FleetPlan

    read = FleetPlan.read(plan)
    jobs = ", ".join(job.name for job in read.jobs)
    return f"the jobs {jobs} on {plural(len(read.boards), 'board')}"


FLEET = Resumer("a fleet", _question, frozenset(), _resume)
