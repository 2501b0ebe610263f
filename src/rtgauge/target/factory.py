# SPDX-License-Identifier: MIT
"""A target by its name."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError
from rtgauge.target.address import parse_address
from rtgauge.target.engine_path import installed_engines
from rtgauge.target.lease import LEASE_NS
from rtgauge.target.local import LocalTarget, read_local

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from rtgauge.target.address import SshAddress
    from rtgauge.target.target import AtHeld, Target


def open_target(name: str, run_id: str, label: str, *, lease_ns: int = LEASE_NS, session: Any = None, at_held: AtHeld | None = None) -> Target:
    """Open and lock a target: `local`, `ssh://...`, `lab:NAME` (booted where it does not run).

    `lease_ns`: how long what runs on another machine outlives a broken connection. `session`: what `Target.session` of the process was that is gone on
    from. `at_held` is called with the target, which can `read` and `try_engine`, before one that
    another run holds is refused or waited for. Raises InputError for a name that is none, MeasureError where it cannot be opened.
    """
    address = parse_address(name)
    if address is None:
        return LocalTarget(run_id, label, at_held=at_held)
    from rtgauge.target.ssh import SshTarget, session_name

    return SshTarget(located(address), run_id, label, lease_ns=lease_ns, session=session_name(session), at_held=at_held)


def located(address: SshAddress) -> SshAddress:
    """Where the target is at the moment: a guest of the lab has another port each time that it is booted. Raises InputError or MeasureError."""
    if address.guest is None:
        return address
    from rtgauge.lab.boot_guest import ready_guest
    from rtgauge.lab.ssh import ssh_options

    running = ready_guest(address.guest, installed_engines)
    return replace(address, host="127.0.0.1", user="root", port=running.port, options=tuple(ssh_options(running).items()))


def where_now(name: str) -> SshAddress:
    """Where a target other than `local` is at the moment. Raises InputError or MeasureError."""
    address = parse_address(name)
    if address is None:
        raise InputError("this machine has no address")
    return located(address)


def console(name: str) -> bytes | None:
    """The end of what a guest of the lab wrote on its console; None for a target that is none, and where it cannot be read."""
    address = parse_address(name)
    if address is None or address.guest is None:
        return None
    from rtgauge.lab.running_guests import end_of_console

    return end_of_console(address.guest)


@contextmanager
def reader(name: str) -> Generator[tuple[str, Callable[[Iterable[str]], Mapping[str, Any]]]]:
    """`uname -m` of a target and its engine's verb `read`, without holding it. Raises InputError or MeasureError."""
    address = parse_address(name)
    if address is None:
        import platform

        yield platform.machine(), read_local
        return
    from rtgauge.target.ssh import read_files
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import REMOVE, install

    connection = SshConnection(located(address))
    try:
        here = install(connection)
        try:
            yield here.machine, lambda paths: read_files(connection, here.engine, paths)[1]
        finally:
            connection.run(REMOVE, [here.folder])
    finally:
        connection.close()
