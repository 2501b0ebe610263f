# SPDX-License-Identifier: MIT
"""Opens targets by name, waits for machines that others hold, and detects if two names mean one machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rtgauge.errors import InputError, LockedError, MeasureError
from rtgauge.input_file import json_object
from rtgauge.target.address import LOCAL, parse_address
from rtgauge.target.guard import LEASE_NS, held_text
from rtgauge.target.kind import kind_of, name_in_scheme, scheme_of
from rtgauge.target.local import LocalTarget, engine_verb, read_local

if TYPE_CHECKING:
    from rtgauge.target.file_batch import Files, Read
    from rtgauge.target.ssh_address import SshAddress
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import InstalledEngine
    from rtgauge.target.target_protocol import AtHeld, Target


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
    """Open and lock a target: `local`, `ssh://...`, or a name with the scheme of an extension.

    `lease_ns`: how long programs on another machine outlive a broken connection. `session`: `Target.session`
    of an earlier process, to continue it. `wait_s`: how long to wait for a target that another run holds;
    earlier requests come first. `at_held`: called with a held target, on which only `read` and `try_engine`
    work. Raises InputError for an invalid name, MeasureError if the target cannot be opened.
    """
    address = parse_address(name)
    if address is None:
        return LocalTarget(run_id, label, wait_s=wait_s, at_held=at_held)
    from rtgauge.target.ssh_target import SshTarget, session_name

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
    """Acquire the targets that must be acquired, such as the places of labgrid, until this process ends.

    Raises LockedError if one is still held after `wait_s`, otherwise as `open_target` does.
    """
    own_names: dict[str, list[str]] = {}
    for address in map(parse_address, names):
        if address is not None and address.scheme is not None:
            own_names.setdefault(address.scheme, []).append(address.own_name)
    for scheme, own in own_names.items():
        kind_of(scheme).hold(own, wait_s)


def located(address: SshAddress) -> SshAddress:
    """Return the target's present address. A guest gets another port at each boot.

    The target is booted or acquired first if its kind says so. Raises InputError if there is no such target,
    MeasureError if it cannot be reached or booted.
    """
    return kind_of(address.scheme).located(address)


def where_now(name: str) -> SshAddress:
    """Return the present address of a target other than `local`. Raises as `located` does."""
    address = parse_address(name)
    if address is None:
        raise InputError("this machine has no address")
    return located(address)


def console(name: str) -> bytes | None:
    """Return the end of a target's console output; None if there is none, or if it is unreadable."""
    return kind_of(scheme_of(name)).console(name_in_scheme(name))


class Reader(NamedTuple):
    """A target's `uname -m`, and its engine's verb `read`."""

    machine: str
    read: Read


@contextmanager
def reader(name: str) -> Generator[Reader]:
    """Yield a reader for a target, which need not be locked. Raises as `located` does."""
    address = parse_address(name)
    if address is None:
        import platform

        yield Reader(platform.machine(), read_local)
        return
    from rtgauge.target.ssh_target import read_files

    with installed_on(address) as (connection, installed):

        def read(paths: Iterable[str]) -> Files:
            return read_files(connection, installed.engine, paths).files

        yield Reader(installed.machine, read)


@contextmanager
def installed_on(address: SshAddress) -> Generator[tuple[SshConnection, InstalledEngine]]:
    """Yield a connection and the engine, which is on the target until the end. Raises as `located` does."""
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import REMOVE, install

    connection = SshConnection(located(address))
    try:
        installed = install(connection)
        try:
            yield connection, installed
        finally:
            connection.run(REMOVE, [installed.folder])
    finally:
        connection.close()


def release_target(name: str) -> str | None:
    """End the run that holds a target and whose host is gone; return its id, or None if there is no such run.

    Raises InputError for an unknown target, MeasureError if the engine cannot run or refuses.
    """
    address = parse_address(name)
    if address is None:
        output = engine_verb("release").stdout
    else:
        with installed_on(address) as (connection, installed):
            output = connection.run('exec "$@"', [installed.engine, "release"]).stdout
    line = json_object(output) or {}
    if line.get("type") != "release":
        raise MeasureError(str(line.get("message", "the engine's command release failed")))
    return None if line.get("run") is None else str(line["run"])


def _ignore_reason(_reason: str) -> None:
    """Ignore the reason for waiting."""


@dataclass
class TargetOpener:
    """Opens a run's targets. `wait_s`: how long to wait for each machine. `waits`: called with the reason for
    waiting, and again if another run takes over. `check`: called with each machine that is held, once, before
    the run waits or is refused; it may raise an error.
    """

    wait_s: float = 0.0
    waits: Callable[[str], None] = _ignore_reason
    check: Callable[[Target], None] | None = None
    _opened: list[str] = field(default_factory=list[str])

    def open(self, name: str, run_id: str, label: str, lease_ns: int, session: Any = None) -> Target:
        """Open a target as `open_target` does.

        Raises LockedError if the machine is still held when the time is over, InputError if this run already
        holds it under another name.
        """
        checked = False

        def at_held(target: Target, holder: Mapping[str, Any]) -> None:
            nonlocal checked
            if holder.get("run") == run_id and self._opened:
                raise InputError(
                    f"{name} and {' or '.join(self._opened)} are the same machine; name it only once"
                )
            if not checked and self.check is not None:
                self.check(target)
            checked = True
            if self.wait_s:
                self.waits(held_text(holder, None if name == LOCAL else name, waits=True))

        try:
            target = open_target(
                name, run_id, label, lease_ns=lease_ns, session=session, wait_s=self.wait_s, at_held=at_held
            )
        except LockedError as error:
            raise LockedError(
                str(error) if self.wait_s else f"{error} (give --wait TIME to wait for it)"
            ) from None
        self._opened.append(name)
        return target
