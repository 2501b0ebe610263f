# SPDX-License-Identifier: MIT
"""`rtgauge deploy` and `rtgauge restore`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rtgauge.system.deployment.machine import Machine

app = typer.Typer(
    no_args_is_help=True,
    help="""How the cores of this machine are used: C-states, hyper-threading, cores, isolation.

\b
Names (Delgado & Choi 2020, table 1): CHM HM HMI M MI Single.
In words: c-states=on|off  smt=on|off  cores=all|N  isolate=off|all|CPUS
          governor=NAME  throttling=on|off

\b
Examples:
  rtgauge deploy show
      which deployments this machine can take
  rtgauge deploy show MI
      what MI would change
  rtgauge deploy apply c-states=off,isolate=1
      until `rtgauge deploy restore`
  rtgauge deploy cmdline MI
      the same by boot parameters
  rtgauge run --deployment HM,MI,Single
      measure in each of them; all is put back
""",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="CHM, HM, HMI, M, MI, Single, or a set of words.")]


def _machine(*, threads: bool = False) -> tuple[Machine, Any]:
    """(what a deployment has to know, the deployment that is held or None) of this machine, without holding it."""
    from rtgauge.system.deployment.apply import read_files
    from rtgauge.system.deployment.held import BOOT_ID, JOURNAL, find_held
    from rtgauge.system.deployment.machine import Machine
    from rtgauge.target.local import read_local

    machine = Machine(read_files(read_local, threads=threads))
    files = read_local([JOURNAL, BOOT_ID])
    return machine, find_held(files, str(files[BOOT_ID].get("text", "")).strip() or None)


@app.command()
def show(name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What this one would change; without it all six.")] = None) -> None:
    """Say which deployments this machine can take, and what one would change. Changes nothing.

    \b
    Examples:
      rtgauge deploy show
      rtgauge deploy show MI
    """
    from rich.console import Console

    from rtgauge.report.deployment import print_deployments, print_settings
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.settings import preview
    from rtgauge.system.deployment.words import NAMED, parse_deployment

    deployment = parse_deployment(name) if name is not None else None
    machine, held = _machine(threads=deployment is not None)
    if deployment is None:
        print_deployments({one: why_not(one, machine) for one in NAMED.values()}, held, Console())
    else:
        cannot = why_not(deployment, machine)
        print_settings(deployment, cannot, [] if cannot is not None else preview(deployment, machine), Console())


@app.command()
def apply(name: Name) -> None:
    """Bring a deployment about and hold it until `rtgauge deploy restore`. A reboot undoes it too.

    \b
    Examples:
      rtgauge deploy apply MI
      rtgauge deploy apply c-states=off,isolate=1
    """
    from rich.console import Console

    from rtgauge.errors import InputError, MeasureError
    from rtgauge.report.deployment import print_applied
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.apply import Refused
    from rtgauge.system.deployment.apply import apply as bring_about
    from rtgauge.system.deployment.held import run_id
    from rtgauge.system.deployment.words import AS_IS, parse_deployment
    from rtgauge.target.local import LocalTarget

    deployment = parse_deployment(name)
    if deployment.name == AS_IS:
        raise InputError("as-is changes nothing; to take back what is held: rtgauge deploy restore")
    with LocalTarget(run_id(deployment.name), f"rtgauge deploy apply {deployment.name}") as target:
        machine, held = _machine()
        if held is not None:
            raise MeasureError(f"the deployment {held.name} is held already; take it back first: rtgauge deploy restore")
        cannot = why_not(deployment, machine)
        if cannot is not None:
            raise MeasureError(f"this machine cannot take {deployment.name}: {cannot.reason}; {cannot.remedy}")
        try:
            applied = bring_about(deployment, target, held=True)
        except Refused as error:
            raise MeasureError(f"this machine cannot take {deployment.name}: {error}; nothing is changed") from None
    print_applied(applied, Console())


def _put_back(*options: str) -> None:
    """Put back what is stale and what the options name; say what became of each."""
    from rich.console import Console

    from rtgauge.errors import EXIT_CANNOT_MEASURE
    from rtgauge.report.deployment import print_put_back
    from rtgauge.target.local import LocalTarget

    with LocalTarget("restore", "rtgauge restore") as target:
        # what dead runs left was put back when the machine was locked
        answers = [*target.restored_before, *(answer for answer in (target.hand("restore", *options) if options else []) if answer.get("type") == "restore")]
    if print_put_back(answers, Console()):
        raise typer.Exit(EXIT_CANNOT_MEASURE)


@app.command("restore")
def restore_held() -> None:
    """Take back the deployment that `rtgauge deploy apply` holds, and what dead runs left."""
    _put_back("--stale", "--held")


def restore() -> None:
    """Put back what a run left that was killed, or cut off by a power failure. What `deploy apply` holds stays.

    \b
    Examples:
      rtgauge restore
          the next run does the same by itself
      rtgauge deploy restore
          what is held as well

    \b
    Exit status 3: something could not be put back.
    """
    _put_back()


@app.command()
def cmdline(name: Name) -> None:
    """Print what to boot with to have a deployment from the beginning: one line on standard output, hints on standard error.

    \b
    Examples:
      rtgauge deploy cmdline MI
      rtgauge deploy cmdline c-states=off,isolate=2-3
    """
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.cmdline import command_line, not_by_boot
    from rtgauge.system.deployment.words import parse_deployment
    from rtgauge.system.whole import read_machine

    deployment = parse_deployment(name)
    machine, _ = _machine()
    facts, _ = read_machine("local")
    kernel = facts["kernel"]
    xenomai = kernel["extension"].get("name") == "Xenomai Cobalt"
    typer.echo(" ".join(command_line(deployment, machine, architecture=str(kernel["architecture"]), xenomai=xenomai)))
    cannot = why_not(deployment, machine)
    hints = [f"as it runs now this machine cannot take it: {cannot.reason}"] if cannot is not None else []
    for hint in [*hints, *not_by_boot(deployment)]:
        typer.echo(hint, file=sys.stderr)
