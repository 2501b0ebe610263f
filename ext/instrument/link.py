# SPDX-License-Identifier: MIT
"""Finds an instrument by its path or unique id, and opens the serial line to it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import serial
from serial.tools import list_ports

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.signal.instrument_address import SERIAL, check_address

VENDOR, PRODUCT = 0x1209, 0x0001
PRODUCT_TEXT = "rtgauge instrument"


@dataclass(frozen=True)
class Port:
    """An instrument that is plugged in."""

    path: str
    unique_id: str


def list_instruments() -> list[Port]:
    """List the instruments that are plugged in, by their USB descriptors, without opening them."""
    return sorted(
        (
            Port(port.device, (port.serial_number or "").upper())
            for port in list_ports.comports()
            if (port.vid, port.pid) == (VENDOR, PRODUCT)
            and (port.product is None or PRODUCT_TEXT in port.product)
        ),
        key=lambda port: port.path,
    )


def resolve(address: str) -> str:
    """Return the path of `serial:/dev/ttyACM0`, `serial:E6605838831F2B27`, or `serial:` if only one
    instrument is plugged in.

    Otherwise raises InputError with a list of the instruments.
    """
    name = check_address(address).removeprefix(SERIAL)
    if name.startswith("/"):
        return name
    ports = list_instruments()
    there = ", ".join(f"{port.path} ({port.unique_id})" for port in ports)
    fitting = [port for port in ports if port.unique_id.startswith(name.upper())]
    if len(fitting) == 1:
        return fitting[0].path
    problem = (
        "several instruments match"
        if fitting
        else "this instrument is not plugged in"
        if name
        else "did not find an instrument"
    )
    remedy = (
        f"choose from {there}"
        if ports
        else "ext/instrument/README.md describes how to put the firmware on a new board"
    )
    raise InputError(f"{problem}; {remedy}")


class SerialLink:
    """A port or pseudo-terminal that no other process has open.

    Raises MeasureError if the port goes away.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not _is_port(path):
            raise MeasureError(
                f"{path} is not a serial port; list the instruments with: rtgauge instrument list"
            )
        try:
            # The speed has no effect over USB.
            self._port = serial.Serial(path, 115200, timeout=0, write_timeout=2, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise MeasureError(f"{path} cannot be opened: {_reason(error, path)}") from error

    def read(self, timeout_s: float) -> bytes:
        """Wait at most `timeout_s` for the first byte, and return all bytes that have come, or none."""
        try:
            self._port.timeout = max(0.0, timeout_s)
            data = self._port.read(1)
            if data:
                self._port.timeout = 0
                data += self._port.read(65536)
        except (serial.SerialException, OSError, TypeError) as error:
            raise MeasureError(
                f"the connection to the instrument at {self.path} broke; check its cable"
            ) from error
        return data

    def write(self, data: bytes) -> None:
        """Send all data."""
        try:
            self._port.write(data)
        except (serial.SerialException, OSError) as error:
            raise MeasureError(
                f"the connection to the instrument at {self.path} broke; check its cable"
            ) from error

    def close(self) -> None:
        """Close the port."""
        self._port.close()


def _is_port(path: str) -> bool:
    """Return whether the path is a serial port or pseudo-terminal, or is missing.

    A plan may name any device, and opening some has an effect: a watchdog starts its countdown to a reboot.
    """
    try:
        about = Path(path).stat()
        # Each line has the name, the default node, the major number, the minor numbers and the type.
        drivers = Path("/proc/tty/drivers").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return True  # opening it says why it cannot be used
    majors = {words[2] for line in drivers if len(words := line.split()) > 3}
    return stat.S_ISCHR(about.st_mode) and str(os.major(about.st_rdev)) in majors


def _reason(error: Exception, path: str) -> str:
    number = getattr(error, "errno", None)
    if not Path(path).exists():
        return (
            "this port does not exist; plug the instrument in, and list the ports with: rtgauge instrument "
            "list"
        )
    if number == errno.EACCES:
        return "this user may not open it; add the user to the group that owns the port, often dialout"
    if number in (errno.EAGAIN, errno.EBUSY):
        return (
            "another program has opened it; close that program (if it is ModemManager, wait for a few "
            "seconds)"
        )
    return str(error)
