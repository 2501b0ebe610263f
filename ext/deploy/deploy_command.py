# SPDX-License-Identifier: MIT
"""`rtgauge deploy` shows, applies and explains deployments."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rtgauge.cli.console import Console
from rtgauge.cli.lazy_group import ListedGroup
from rtgauge.cli.shared_options import Target, target_option
from rtgauge.errors import InputError, MeasureError
from rtgauge.record.facts import UNKNOWN
from rtgauge.system.collect_facts import facts_by
from rtgauge.system.deployment.apply import Refused, read_machine
from rtgauge.system.deployment.apply import apply as apply_deployment
from rtgauge.system.deployment.current import read_held, run_id
from rtgauge.system.deployment.definition import AS_IS, NAMED, parse_deployment, why_not
from rtgauge.system.deployment.stages import preview
from rtgauge.target.open_target import open_target, reader
from rtgauge_ext.deploy.boot_parameters import command_line, knows_nohz_full, not_by_boot
from rtgauge_ext.deploy.deployment_terminal import print_applied, print_deployments, print_settings

app = typer.Typer(
    cls=ListedGroup,
    no_args_is_help=True,
    help="""Show or change the deployment of the cores.

A deployment is a set of settings: C-states, hyper-threading, the number of cores, and CPU isolation.

\b
Names (Delgado & Choi 2020, table 1): CHM HM HMI M MI Single.
Settings: c-states=on|off  smt=on|off  cores=all|N  isolate=off|all|CPUS
          governor=NAME  throttling=on|off
          settings=RULES  rt-cpus=CPUS  (rules of the audit; see
          `rtgauge tune --dry-run`)

\b
Examples:
  rtgauge deploy show
      show which deployments this machine supports
  rtgauge deploy show MI
      show what MI would change
  rtgauge deploy apply c-states=off,isolate=1
      keep these settings until `rtgauge restore --applied`
  rtgauge deploy cmdline MI
      print its boot parameters
  rtgauge deploy apply MI --target ssh://root@board
      on another machine
  rtgauge run --deployment HM,MI,Single
      measure in each of them, and restore the settings afterwards
""",
)
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the deployment: CHM, HM, HMI, M, MI or Single, or its settings (see `rtgauge "
        "deploy --help`).",
    ),
]


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Show what this deployment would change; default: list all six."
        ),
    ] = None,
    target: Target = "local",
) -> None:
    """Show the supported deployments, or what one of them would change. This changes nothing.

    \b
    Examples:
      rtgauge deploy show
      rtgauge deploy show MI
    """
    deployment = parse_deployment(name) if name is not None else None
    with reader(target) as (_, read):
        rules = [] if deployment is None else deployment.rules
        machine, held = read_machine(read, threads=deployment is not None, rules=rules), read_held(read)
    if deployment is None:
        print_deployments({named: why_not(named, machine) for named in NAMED.values()}, held, Console())
    else:
        cannot = why_not(deployment, machine)
        print_settings(
            deployment, cannot, [] if cannot is not None else preview(deployment, machine), Console()
        )


@app.command()
def apply(name: Name, target: Target = "local") -> None:
    """Apply a deployment until `rtgauge restore --applied` or a reboot.

    \b
    Examples:
      rtgauge deploy apply MI
      rtgauge deploy apply c-states=off,isolate=1
      rtgauge deploy apply MI --target ssh://root@board
    """
    deployment = parse_deployment(name)
    if deployment.name == AS_IS:
        raise InputError(
            "as-is means that nothing is changed; to undo a deployment, use: rtgauge restore "
            f"--applied{target_option(target)}"
        )
    with open_target(target, run_id(deployment.name), f"rtgauge deploy apply {deployment.name}") as opened:
        machine, held = read_machine(opened.read), read_held(opened.read)
        if held is not None:
            raise MeasureError(
                f"deployment {held.name} is already applied; undo it first: rtgauge restore "
                f"--applied{target_option(target)}"
            )
        cannot = why_not(deployment, machine)
        if cannot is not None:
            raise MeasureError(
                f"this machine does not support {deployment.name}: {cannot.reason}; {cannot.remedy}"
            )
        try:
            applied = apply_deployment(deployment, opened, held=True)
        except Refused as error:
            raise MeasureError(
                f"this machine does not support {deployment.name}: {error}; nothing was changed"
            ) from None
    print_applied(applied, Console(), target_option(target))


@app.command()
def cmdline(name: Name, target: Target = "local") -> None:
    """Print the boot parameters of a deployment.

    They are printed as one line on standard output. Hints go to standard error.

    \b
    Examples:
      rtgauge deploy cmdline MI
      rtgauge deploy cmdline c-states=off,isolate=2-3
    """
    deployment = parse_deployment(name)
    with reader(target) as (architecture, read):
        machine = read_machine(read)
        facts, files = facts_by(read, architecture)
    xenomai = facts.kernel.extension.name == "Xenomai Cobalt"
    tickless = knows_nohz_full(files)
    typer.echo(
        " ".join(
            command_line(
                deployment,
                machine,
                architecture=facts.kernel.architecture or UNKNOWN,
                xenomai=xenomai,
                tickless=tickless,
            )
        )
    )
    cannot = why_not(deployment, machine)
    no_tickless = (
        "the parameters leave out nohz_full=, because this kernel was built without CONFIG_NO_HZ_FULL"
    )
    hints = [no_tickless] if deployment.isolates and not tickless else []
    hints += (
        [f"without these parameters, this machine does not support the deployment: {cannot.reason}"]
        if cannot is not None
        else []
    )
    for hint in [*hints, *not_by_boot(deployment)]:
        typer.echo(hint, file=sys.stderr)
