# SPDX-License-Identifier: MIT
"""`rtgauge tune`: which settings help on this machine?"""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli.options import Target


def tune(
    cpus: Annotated[
        str | None, typer.Option(metavar="LIST", help="The real-time CPUs, e.g. 1 or 2-3; default: all.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="SETTINGS", help="Try these settings only, e.g. thp,c-states.")
    ] = None,
    without: Annotated[
        str | None, typer.Option(metavar="SETTINGS", help="Do not try these settings.")
    ] = None,
    target: Target = "local",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be tried; change nothing.")
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also print the reason and the source of each setting, and the advice against it.",
        ),
    ] = False,
) -> None:
    """List the settings that may make this machine meet its deadlines, and what each costs.

    `rtgauge gate --candidate settings=NAME` measures whether one of them helps.

    \b
    Examples:
      rtgauge tune --dry-run
          what could be tried here
      rtgauge tune --dry-run --cpus 1 --details
          for real-time tasks on CPU 1, with reasons and sources
    """
    from rtgauge.cli.console import Console
    from rtgauge.errors import InputError
    from rtgauge.report.terminal_table import print_tables
    from rtgauge.tune.candidates import read_offer
    from rtgauge.tune.offer_tables import offer_tables

    if not dry_run:
        raise InputError("tune does not measure yet; --dry-run lists what could be tried")
    found = read_offer(target, cpus_option(cpus), names_option(only), names_option(without))
    print_tables(offer_tables(found, details=details), Console())


def cpus_option(text: str | None) -> str | None:
    """The CPUs of `--cpus` in their shortest form. Raises InputError."""
    from rtgauge.errors import InputError
    from rtgauge.units import format_cpu_list, parse_cpu_list

    try:
        return None if text is None else format_cpu_list(parse_cpu_list(text))
    except ValueError:
        raise InputError(f"--cpus {text}: give CPUs such as 1 or 2-3") from None


def names_option(text: str | None) -> list[str]:
    """`"thp, c-states"` -> the names."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]
