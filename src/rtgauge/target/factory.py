# SPDX-License-Identifier: MIT
"""Opens targets by their names: waits for held machines, and finds two names of one machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rtgauge.errors import InputError, LockedError, MeasureError
from rtgauge.target.address import LOCAL, SshAddress, parse_address
from rtgauge.target.answers import answer_of
from rtgauge.target.engine_path import installed_engines
from rtgauge.target.guard import LEASE_NS, held_text
from rtgauge.target.local import LocalTarget, engine_verb, read_local

if TYPE_CHECKING:
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import Installed
    from rtgauge.target.target import AtHeld, Target


def open_target(
    name: str,
    run_id: str,
    label: str,
    *,
    lease_ns: int = LEASE_NS,
    session: Any = None,
    wait_s: float = 0.0,
    at_held: AtHeld | None = None,
) -> Target:
    """Open and lock a target: `local`, `ssh://...`, `lab:NAME` (booted if it does not run), `labgrid:PLACE`.

    `lease_ns`: how long what runs on another machine outlives a broken connection. `session`: what
    `Target.session` of the process was that is gone on from. `wait_s`: how long to wait for a target that
    another run holds, after those who came before. `at_held`: its target can `read` and `try_engine`. Raises
    InputError for an invalid name, MeasureError where it cannot be opened.
    """
    address = parse_address(name)
    if address is None:
        return LocalTarget(run_id, label, wait_s=wait_s, at_held=at_held)
    from rtgauge.target.ssh import SshTarget, session_name

    return SshTarget(
        located(address),
        run_id,
        label,
        lease_ns=lease_ns,
        session=session_name(session),
        wait_s=wait_s,
        at_held=at_held,
    )


def hold_places(names: Iterable[str], wait_s: float) -> None:
    """Acquire the labgrid places among these targets, until this process ends.

    Raises LockedError, MeasureError, InputError.
    """
    addresses = [parse_address(name) for name in names]
    places = [address.place for address in addresses if address is not None and address.place is not None]
    if places:
        from rtgauge.target import labgrid

        labgrid.hold_places(places, wait_s)


def located(address: SshAddress) -> SshAddress:
    """Where the target is at the moment: a guest of the lab has another port each time that it is booted.

    A labgrid place is acquired first.

    Raises InputError or MeasureError.
    """
    if address.place is not None:
        from rtgauge.target.labgrid import board

        service = board(address.place)
        return replace(address, host=service.host, user=service.user, port=service.port)
    if address.guest is None:
        return address
    from rtgauge.lab.boot_guest import ready_guest
    from rtgauge.lab.ssh import ssh_options

    running = ready_guest(address.guest, installed_engines)
    return replace(
        address, host="127.0.0.1", user="root", port=running.port, options=tuple(ssh_options(running).items())
    )


def where_now(name: str) -> SshAddress:
    """Where a target other than `local` is at the moment. Raises InputError or MeasureError."""
    address = parse_address(name)
    if address is None:
        raise InputError("this machine has no address")
    return located(address)


def console(name: str) -> bytes | None:
    """The end of what a guest of the lab wrote on its console; None for another target, or if unreadable."""
    address = parse_address(name)
    if address is None or address.guest is None:
        return None
    from rtgauge.lab.running_guests import end_of_console

    return end_of_console(address.guest)


class Reader(NamedTuple):
    """`uname -m` of a target, and its engine's verb `read`."""

    machine: str
    read: Callable[[Iterable[str]], Mapping[str, Any]]


@contextmanager
def reader(name: str) -> Generator[Reader]:
    """The engine of a target reads its files, without holding it.

    Raises InputError or MeasureError.
    """
    address = parse_address(name)
    if address is None:
        import platform

        yield Reader(platform.machine(), read_local)
        return
    from rtgauge.target.ssh import read_files

    with _installed(address) as (connection, here):

        def read(paths: Iterable[str]) -> Mapping[str, Any]:
            return read_files(connection, here.engine, paths).files

        yield Reader(here.machine, read)


@contextmanager
def _installed(address: SshAddress) -> Generator[tuple[SshConnection, Installed]]:
    """A connection, and the engine on the target; it is removed again. Raises InputError or MeasureError."""
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import REMOVE, install

    connection = SshConnection(located(address))
    try:
        here = install(connection)
        try:
            yield connection, here
        finally:
            connection.run(REMOVE, [here.folder])
    finally:
        connection.close()


def release_target(name: str) -> str | None:
    """End the run that holds a target if its host is gone.

    Gives its name; None: no run holds the target. Raises InputError or MeasureError.
    """
    address = parse_address(name)
    if address is None:
        output = engine_verb("release").stdout
    else:
        with _installed(address) as (connection, here):
            output = connection.run('exec "$@"', [here.engine, "release"]).stdout
    line = answer_of(output) or {}
    if line.get("type") != "release":
        raise MeasureError(str(line.get("message", "the engine's verb release failed")))
    return None if line.get("run") is None else str(line["run"])


def _say_nothing(_reason: str) -> None:
    """For who need not know that it waits."""


@dataclass
class TargetOpener:
    """`wait_s`: how long to wait for each machine; `waits`: told why, and again when another run holds it.

    `check`: called once with a held machine before that, may raise."""

    wait_s: float = 0.0
    waits: Callable[[str], None] = _say_nothing
    check: Callable[[Target], None] | None = None
    _opened: list[str] = field(default_factory=list[str])

    def open(self, name: str, run_id: str, label: str, lease_ns: int, session: Any = None) -> Target:
        """As `open_target`.

        Raises LockedError if the machine is still held when the time is over, InputError where this run holds
        it by another name.
        """
        told = False

        def at_held(target: Target, holder: Mapping[str, Any]) -> None:
            nonlocal told
            if holder.get("run") == run_id and self._opened:
                raise InputError(f"{name} and {' or '.join(self._opened)} are the same machine: name it once")
            if not told and self.check is not None:
                self.check(target)
            told = True
            if self.wait_s:
                self.waits(held_text(holder, None if name == LOCAL else name))

        try:
            target = open_target(
                name, run_id, label, lease_ns=lease_ns, session=session, wait_s=self.wait_s, at_held=at_held
            )
        except LockedError as error:
            raise LockedError(str(error) if self.wait_s else f"{error} (--wait TIME waits for it)") from None
        self._opened.append(name)
        return target
