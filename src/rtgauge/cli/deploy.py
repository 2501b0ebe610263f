# SPDX-License-Identifier: MIT
"""`rtgauge deploy` and `rtgauge restore`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rtgauge.system.deployment.current import Held
    from rtgauge.system.deployment.machine_state import Machine

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
  rtgauge deploy apply MI --target ssh://root@board
      on another machine
  rtgauge run --deployment HM,MI,Single
      measure in each of them; all is put back
""",
)
Target = Annotated[str, typer.Option(metavar="NAME", help="The machine: local, ssh://[user@]host[:port] or lab:NAME.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="CHM, HM, HMI, M, MI, Single, or a set of words.")]


def _machine(read: Callable[[Iterable[str]], Mapping[str, Any]], *, threads: bool = False) -> tuple[Machine, Held | None]:
    """(what a deployment has to know, the deployment that is held or None) of the machine whose engine's verb `read` this is."""
    from rtgauge.system.deployment.apply import read_files
    from rtgauge.system.deployment.current import BOOT_ID, JOURNAL, find_held
    from rtgauge.system.deployment.machine_state import Machine

    machine = Machine(read_files(read, threads=threads))
    files = read([JOURNAL, BOOT_ID])
    return machine, find_held(files, str(files[BOOT_ID].get("text", "")).strip() or None)


def _on(target: str) -> str:
    """What a command to be given next has to say of the target."""
    from shlex import quote

    return "" if target == "local" else f" --target {quote(target)}"


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What this one would change; without it all six.")] = None,
    target: Target = "local",
) -> None:
    """Say which deployments this machine can take, and what one would change. Changes nothing.

    \b
    Examples:
      rtgauge deploy show
      rtgauge deploy show MI
    """
    from rich.console import Console

    from rtgauge.report.deployment import print_deployments, print_settings
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.definition import NAMED, parse_deployment
    from rtgauge.system.deployment.stages import preview
    from rtgauge.target.factory import reader

    deployment = parse_deployment(name) if name is not None else None
    with reader(target) as (_, read):
        machine, held = _machine(read, threads=deployment is not None)
    if deployment is None:
        print_deployments({one: why_not(one, machine) for one in NAMED.values()}, held, Console())
    else:
        cannot = why_not(deployment, machine)
        print_settings(deployment, cannot, [] if cannot is not None else preview(deployment, machine), Console())


@app.command()
def apply(name: Name, target: Target = "local") -> None:
    """Bring a deployment about and hold it until `rtgauge deploy restore`. A reboot undoes it too.

    \b
    Examples:
      rtgauge deploy apply MI
      rtgauge deploy apply c-states=off,isolate=1
      rtgauge deploy apply MI --target ssh://root@board
    """
    from rich.console import Console

    from rtgauge.errors import InputError, MeasureError
    from rtgauge.report.deployment import print_applied
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.apply import Refused
    from rtgauge.system.deployment.apply import apply as bring_about
    from rtgauge.system.deployment.current import run_id
    from rtgauge.system.deployment.definition import AS_IS, parse_deployment
    from rtgauge.target.factory import open_target

    deployment = parse_deployment(name)
    if deployment.name == AS_IS:
        raise InputError(f"as-is changes nothing; to take back what is held: rtgauge deploy restore{_on(target)}")
    with open_target(target, run_id(deployment.name), f"rtgauge deploy apply {deployment.name}") as opened:
        machine, held = _machine(opened.read)
        if held is not None:
            raise MeasureError(f"the deployment {held.name} is held already; take it back first: rtgauge deploy restore{_on(target)}")
        cannot = why_not(deployment, machine)
        if cannot is not None:
            raise MeasureError(f"this machine cannot take {deployment.name}: {cannot.reason}; {cannot.remedy}")
        try:
            applied = bring_about(deployment, opened, held=True)
        except Refused as error:
            raise MeasureError(f"this machine cannot take {deployment.name}: {error}; nothing is changed") from None
    print_applied(applied, Console(), _on(target))


def _put_back(target: str, *options: str) -> None:
    """Put back what is stale and what the options name; say what became of each."""
    from rich.console import Console

    from rtgauge.errors import EXIT_CANNOT_MEASURE
    from rtgauge.report.deployment import print_put_back
    from rtgauge.target.factory import open_target

    with open_target(target, "restore", "rtgauge restore") as opened:
        # what dead runs left was put back when the machine was locked
        answers = [*opened.restored_before, *(answer for answer in (opened.agent("restore", *options) if options else []) if answer.get("type") == "restore")]
    if print_put_back(answers, Console()):
        raise typer.Exit(EXIT_CANNOT_MEASURE)


@app.command("restore")
def restore_held(target: Target = "local") -> None:
    """Take back the deployment that `rtgauge deploy apply` holds, and what dead runs left."""
    _put_back(target, "--stale", "--held")


def restore(target: Target = "local") -> None:
    """Put back what a run left that was killed, or cut off by a power failure. What `deploy apply` holds stays.

    \b
    Examples:
      rtgauge restore
          the next run does the same by itself
      rtgauge restore --target ssh://root@board
          on another machine
      rtgauge deploy restore
          what is held as well

    \b
    Exit status 3: something could not be put back.
    """
    _put_back(target)


@app.command()
def cmdline(name: Name, target: Target = "local") -> None:
    """Print what to boot with to have a deployment from the beginning: one line on standard output, hints on standard error.

    \b
    Examples:
      rtgauge deploy cmdline MI
      rtgauge deploy cmdline c-states=off,isolate=2-3
    """
    from rtgauge.system.deployment.ability import why_not
    from rtgauge.system.deployment.boot_parameters import command_line, not_by_boot
    from rtgauge.system.deployment.definition import parse_deployment
    from rtgauge.system.facts import facts_by
    from rtgauge.target.factory import reader

    deployment = parse_deployment(name)
    with reader(target) as (architecture, read):
        machine, _ = _machine(read)
        facts, _ = facts_by(read, architecture)
    kernel = facts["kernel"]
    xenomai = kernel["extension"].get("name") == "Xenomai Cobalt"
    typer.echo(" ".join(command_line(deployment, machine, architecture=str(kernel["architecture"]), xenomai=xenomai)))
    cannot = why_not(deployment, machine)
    hints = [f"as it runs now this machine cannot take it: {cannot.reason}"] if cannot is not None else []
    for hint in [*hints, *not_by_boot(deployment)]:
        typer.echo(hint, file=sys.stderr)
