# SPDX-License-Identifier: MIT
"""`rtgauge audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rtgauge import __version__
from rtgauge.cli.console import Console
from rtgauge.cli.extension_options import AddedValues
from rtgauge.cli.shared_options import Json, Target, grouped
from rtgauge.errors import EXIT_FAILS, EXIT_OK, InputError
from rtgauge.nearest_name import nearest
from rtgauge.system.collect_facts import read_facts
from rtgauge_ext.audit.added_check import Audited
from rtgauge_ext.audit.audit import audit as check_rules
from rtgauge_ext.audit.audit_terminal import mend_script, print_audit, print_pairs
from rtgauge_ext.audit.fact_groups import groups
from rtgauge_ext.audit.rules import read_rules, rule_paths

LABEL_WIDTH = 22
"""The width of the names' column of the facts. It lets every name fit on two lines."""
PURPOSES = ("xenomai", "preempt-rt", "stock")


def _print_facts(target: str, interface: str | None, *, json: bool) -> None:
    """Print the machine's hardware, kernel and settings."""
    facts = read_facts(target, interface=interface).facts
    if json:
        typer.echo(facts.model_dump_json(indent=1))
        return

    console = Console()
    for number, (heading, rows) in enumerate(groups(facts)):
        if number:
            console.print()
        console.print(Text(heading, style="bold"))
        print_pairs(rows, console, LABEL_WIDTH)


@grouped
def audit(
    *,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="KERNEL", help="xenomai, preempt-rt or stock; default: the running kernel."
        ),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use your own rules instead of the built-in ones.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show each difference with its reasons and its remedy.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every rule, also if it passes or does not apply.")
    ] = False,
    script: Annotated[
        bool, typer.Option("--script", help="Print the remedies as a shell script that you can read and run.")
    ] = False,
    facts_only: Annotated[
        bool, typer.Option("--facts", help="Only show the machine's hardware, kernel and settings.")
    ] = False,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="IFACE|ADDRESS",
            help="Check this network interface too, or the one that leads to this IP address.",
        ),
    ] = None,
    target: Target = "local",
    json: Json = False,
    added: AddedValues,
) -> None:
    """Check the machine's settings for real-time use.

    This compares the settings of the kernel, of the boot and at run time with rules from papers and from
    the kernel's documentation. The exit status is 1 if a finding is serious.

    \b
    Examples:
      rtgauge audit
      rtgauge audit --for preempt-rt
      rtgauge audit --target ssh://root@board --script
      rtgauge audit --interface 192.168.1.10
      rtgauge audit --facts --target ssh://root@board
    """
    others = [check for group in added.of(Audited) if (check := group.check()) is not None]
    if facts_only:
        if for_ is not None or rules is not None or others or script or details or show_all:
            raise InputError(
                "--facts only shows the machine's facts and does not check rules; leave out --facts or the "
                "other options"
            )
        _print_facts(target, interface, json=json)
        return
    for check in others:
        raise typer.Exit(check(target))
    if script and (json or show_all or details):
        raise InputError("--script prints only commands; leave out --json, --all and --details")
    if for_ is not None and for_ not in PURPOSES:
        raise InputError(f"unknown kernel '{for_}' for --for{nearest(for_, PURPOSES)}")
    chosen = read_rules(rules)
    facts, files = read_facts(target, rule_paths(chosen), interface)
    document = check_rules(chosen, facts, files, for_, version=__version__)
    if json:
        typer.echo(document.model_dump_json(indent=1))
    elif script:
        typer.echo(mend_script(document), nl=False)
    else:
        print_audit(document, Console(), details=details, everything=show_all)
    raise typer.Exit(EXIT_FAILS if document.serious else EXIT_OK)
