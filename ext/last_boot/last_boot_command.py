# SPDX-License-Identifier: MIT
"""`rtgauge last-boot`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import Details, Json, Out, Target, target_option
from rtgauge.errors import EXIT_CANNOT_TELL, InputError
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge_ext.last_boot.ending import BootEnd
    from rtgauge_ext.last_boot.kept_boot import KeptBoot


def last_boot(
    target: Target = "local",
    arm: Annotated[
        bool, typer.Option("--arm", help="Then record this boot, until the machine stops or reboots.")
    ] = False,
    disarm: Annotated[bool, typer.Option("--disarm", help="Stop recording this boot.")] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Make a record of it, which rtgauge show --why explains."),
    ] = False,
    out: Out = RECORDS,
    details: Details = False,
    json: Json = False,
) -> None:
    """Tell what ran before the machine crashed, hung or was reset.

    The kernel records its last seconds into memory that a reboot leaves alone. The machine needs Linux 6.12
    or newer, and these boot parameters:

    \b
      reserve_mem=20M:32M:trace trace_instance=boot_map@trace

    Arm the ring at each boot. What it has of the last boot is read first, and kept in
    /var/lib/rtgauge/last-boot.

    \b
    Examples:
      rtgauge last-boot --arm
          read the last boot, and record this one
      rtgauge last-boot --target ssh://root@board
          after a crash of the board
      rtgauge last-boot --record
      rtgauge show latest --why
          what held each thread up in the last 100 ms

    \b
    Exit status:
      0  the last boot is shown, or the ring is armed
      2  wrong input
      3  the machine has no such ring
      4  the ring has nothing of the last boot
    """
    from rtgauge.cli.console import Console
    from rtgauge.target.open_target import open_target
    from rtgauge_ext.last_boot.boot_report import print_boot_end
    from rtgauge_ext.last_boot.ending import LastBoot, boot_end
    from rtgauge_ext.last_boot.kept_boot import parse

    if arm and disarm:
        raise InputError("--arm and --disarm contradict each other; leave one out")
    options = ["--arm"] if arm else ["--disarm"] if disarm else []
    with open_target(target, "last-boot", "rtgauge last-boot") as opened:
        state, kept = parse(opened.try_engine("last-boot", *options))
    end = None if kept is None else boot_end(kept, state.boot_id)
    path = None if kept is None or end is None or not record else _recorded(kept, end, target, out)
    if json:
        document = LastBoot(
            instance=state.instance,
            armed=state.armed,
            kept=state.kept,
            end=end,
        )
        typer.echo(document.model_dump_json(indent=1))
    elif end is not None:
        print_boot_end(end, Console(), details=details)
        if path is not None:
            typer.echo(f"made the record {path}; see what held the threads up: rtgauge show {path} --why")
    if end is None and not json:
        typer.echo(_nothing(recorded=state.recorded_before, read=kept is not None))
    if state.armed and not json:
        typer.echo(f"the ring {state.instance} records this boot")
    elif not json:
        typer.echo(
            f"the ring {state.instance} does not record this boot; arm it with: rtgauge last-boot --arm"
            f"{target_option(target)}"
        )
    if end is None and not (arm or disarm):
        raise typer.Exit(EXIT_CANNOT_TELL)


def _recorded(kept: KeptBoot, end: BootEnd, target: str, out: Path) -> Path:
    """Make a record. Raises InputError and the errors of RecordWriter."""
    from rtgauge.system.collect_facts import facts_by
    from rtgauge.target.open_target import reader
    from rtgauge_ext.last_boot.boot_record import make_boot_record

    with reader(target) as (machine, read):
        facts = facts_by(read, machine).facts
    return make_boot_record(kept, end, facts, out, ["rtgauge", *sys.argv[1:]])


def _nothing(*, recorded: bool, read: bool) -> str:
    """Say why there is nothing of the last boot."""
    if recorded:
        return (
            "the ring already records events that the kernel's command line names, so the events of the "
            "last boot are mixed with them; remove these events from trace_instance="
        )
    if read:
        return (
            "the ring was armed, but is empty: its memory did not survive. The power was off, the firmware "
            "cleared it, or the kernel put the ring elsewhere (try nokaslr)"
        )
    return "the ring does not contain events of the last boot, because it was not armed then"
