# SPDX-License-Identifier: MIT
"""`rtgauge instrument` manages the instrument at this machine's USB port."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtgauge.cli.lazy_group import ListedGroup
from rtgauge.cli.shared_options import Json
from rtgauge.errors import MeasureError

if TYPE_CHECKING:
    from rtgauge_ext.instrument.instrument_session import Loopback

HELP = """Manage the instrument, a Raspberry Pi Pico that measures from outside the machine.

ext/instrument/README.md describes how to wire it, its firmware, and what it can measure.

\b
Examples:
  rtgauge instrument list
  rtgauge instrument selftest
  rtgauge probe response --path gpio:gpiochip0:27,17 --instrument serial:
"""
NONE_HERE = (
    "Did not find an instrument; plug one in. ext/instrument/README.md describes how to put the firmware "
    "on a new board."
)

app = typer.Typer(help=HELP, cls=ListedGroup, no_args_is_help=True, rich_markup_mode=None)
Address = Annotated[
    str,
    typer.Argument(
        metavar="[ADDRESS]",
        help="The address of the instrument: serial:/dev/ttyACM0 or serial:ID. If only one is plugged in, "
        "leave it out.",
    ),
]


def _print_json(document: object) -> None:
    typer.echo(dumps(document, indent=1))


@app.command("list")
def list_instruments(json: Json = False) -> None:
    """List instruments.

    \b
    Examples:
      rtgauge instrument list
      rtgauge instrument list --json
    """
    from rtgauge_ext.instrument import link
    from rtgauge_ext.instrument.instrument_session import Session

    listed: list[dict[str, Any]] = []
    for port in link.list_instruments():
        known: dict[str, Any] = {
            "address": f"serial:{port.path}",
            "id": port.unique_id,
            "firmware": None,
            "problem": None,
        }
        try:
            with Session.open(known["address"]) as session:
                known |= {"id": session.identity.unique_id, "firmware": session.identity.text}
        except MeasureError as error:
            known["problem"] = str(error)
        listed.append(known)
    if json:
        _print_json({"instruments": listed})
        return
    for each in listed:
        typer.echo(f"{each['address']}  {each['id']}  {each['firmware'] or each['problem']}")
    if not listed:
        typer.echo(NONE_HERE)


@app.command("selftest")
def selftest(
    address: Address = "serial:",
    wire: Annotated[
        bool,
        typer.Option(
            "--wire",
            help="Measure over a wire from the stimulus pin (GP2) to the answer pin (GP3).",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Let the instrument measure its resolution and its own latency.

    This takes a second. With --wire, the instrument measures the latency of your wires instead: first connect
    GP2 to GP3 with them, and later give the result to --wire-offset.

    \b
    Examples:
      rtgauge instrument selftest
      rtgauge instrument selftest serial:E6605838831F2B27 --wire
    """
    from rtgauge_ext.instrument.instrument_session import Session, self_test

    with Session.open(address) as session:
        loopback = self_test(session, inside=not wire)
        identity = session.identity
    state = loopback.state
    if json:
        offset = None if loopback.offset_ns is None else list(loopback.offset_ns)
        counts = {
            "stimuli": state.stimuli,
            "answers": state.answers,
            "missed": state.missed,
            "glitches": state.glitches,
        }
        _print_json(
            {
                "id": identity.unique_id,
                "firmware": identity.text,
                "wire": wire,
                "resolution_ns": loopback.resolution_ns,
                "offset_ns": offset,
                **counts,
            }
        )
    elif loopback.offset_ns is not None and not state.missed:
        typer.echo(
            f"{'passed' if wire or loopback.offset_ns == (0, 0) else 'failed'}: {_offset(loopback)} "
            f"{'over the wire' if wire else 'internally'}"
        )
        typer.echo(
            f"{identity.text}, {identity.unique_id}: {state.answers} stimuli, resolution "
            f"{loopback.resolution_ns:g} ns, {state.glitches} glitches"
        )
    if state.missed and wire:
        raise MeasureError(
            f"{state.missed} of {state.stimuli} stimuli did not come back: check the wire between GP2 (pin "
            f"4) and GP3 (pin 5)"
        )
    again = "install its firmware again; if the test still fails, replace the board"
    if state.missed:
        raise MeasureError(
            f"the instrument missed {state.missed} of the {state.stimuli} edges that it made itself: {again}"
        )
    if loopback.offset_ns is None or (not wire and loopback.offset_ns != (0, 0)):
        raise MeasureError(f"the instrument measured a wrong latency of its own edges: {again}")


def _offset(loopback: Loopback) -> str:
    low, high = loopback.offset_ns or (0.0, 0.0)
    return f"{low:g} ns" if low == high else f"{low:g} to {high:g} ns"


@app.command("bootloader")
def bootloader(address: Address = "serial:") -> None:
    """Restart the instrument as the drive RPI-RP2, to install other firmware.

    A board without rtgauge's firmware is this drive if you hold BOOTSEL while you plug it in. The board
    restarts when you have copied a UF2 file to the drive.

    \b
    Examples:
      rtgauge instrument bootloader
      cp build-firmware/rtgauge-instrument.uf2 /media/$USER/RPI-RP2/
    """
    from rtgauge_ext.instrument.instrument_session import Session

    Session.open(address).bootloader()
    typer.echo("The instrument restarts as the drive RPI-RP2; copy the UF2 file to it.")
