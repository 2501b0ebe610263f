# SPDX-License-Identifier: MIT
"""Kinds of targets, which extensions add: what rtgauge does with targets whose names begin with `SCHEME:`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, cast

from rtgauge.errors import InputError, MeasureError
from rtgauge.extension import load, registered
from rtgauge.target.ssh_address import SshAddress


class NotUpError(MeasureError):
    """rtgauge booted a target, but the target does not answer."""

    target = ""
    """The target's name."""
    console: bytes | None = None
    """The end of the target's console, kept because another boot starts a new file."""

    def with_console(self, console: Path) -> str:
        """Return the message with the path of a copy of the console."""
        return f"{self}; its console output is in {console}"


class TargetKind:
    """Targets that ssh reaches; this class itself is for `ssh://`.

    `name` in the methods of a scheme is a target's name without the scheme.
    """

    form = ""
    """How to write such a target, such as `lab:NAME`."""

    def check(self, name: str, shown: str) -> None:
        """Raise InputError if no target can have this name. `shown`: the whole name, for the message."""

    def located(self, address: SshAddress) -> SshAddress:
        """Return where the target is now. Raises InputError if there is no such target, MeasureError if it
        cannot be reached.
        """
        return address

    def hold(self, names: Sequence[str], wait_s: float) -> None:
        """Acquire these targets until this process ends.

        Raises LockedError if one is still held after `wait_s`, otherwise as `located` does.
        """

    def console(self, name: str) -> bytes | None:  # noqa: ARG002 - for some kinds
        """Return the end of the target's console output; None if there is none, or if it is unreadable."""
        return None

    def disturbance(self) -> str | None:
        """Return what targets of this kind take from this machine while they run on it, and the way out; None
        if none runs.
        """
        return None

    def login(self, address: SshAddress) -> str:
        """Return the command with which a user logs in by hand."""
        port = f"-p {address.port} " if address.port is not None else ""
        return f"ssh {port}{address.user + '@' if address.user is not None else ''}{address.host}"

    def other_host_key(self, address: SshAddress) -> str | None:  # noqa: ARG002 - for some kinds
        """Return the error if the host key changed; None for the error of every machine."""
        return None

    def unreachable(self, stderr: str, address: SshAddress) -> str | None:  # noqa: ARG002 - for some kinds
        """Return the error if the output of ssh says that the target cannot be reached.

        None: the error of every machine, if this is the cause.
        """
        return None


BOOT_S = 12.0
"""About how long an emulated guest takes to reboot (s)."""


class Reboots(Protocol):
    """Reboots a running target with other kernel parameters, and at the end with the original parameters."""

    @property
    def append(self) -> str:
        """The original kernel parameters."""
        ...

    def boot(self, append: str) -> None:
        """Reboot with these kernel parameters. Raises MeasureError if the target does not come up."""
        ...

    def console(self) -> bytes:
        """Return the end of the console since the last boot; empty if it cannot be read."""
        ...

    def leave(self) -> None:
        """Reboot with the original parameters, unless the target already runs with them. Raises MeasureError
        if it does not come up.
        """
        ...


class GuestKind(TargetKind):
    """Virtual machines that rtgauge boots itself."""

    def reboots(self, name: str, engines: tuple[Path, ...], notify: Callable[[str], None]) -> Reboots:
        """Return what reboots a running guest. `engines`: files for the image of a guest without a network.

        Raises InputError if the guest does not run.
        """
        raise NotImplementedError

    def boot_deployments(self) -> Callable[..., object]:
        """Return the class that boots a guest for each deployment, a `runner.context.BootsDeployments`."""
        raise NotImplementedError

    def stopped_now_and_then(
        self, name: str, length_s: float
    ) -> AbstractContextManager[list[tuple[int, int]]]:
        """Stop the guest's CPUs from outside now and then, each time for `length_s`, until the block ends.

        The list gets each stop's (start, end), in ns of this machine's CLOCK_MONOTONIC.
        """
        raise NotImplementedError

    def clock_offset_ns(self, name: str) -> int:
        """Return how far (ns) the guest's CLOCK_MONOTONIC is ahead of this machine's; 0 if it does not run.

        Raises MeasureError if the guest does not answer.
        """
        raise NotImplementedError

    def build_modules(
        self, name: str, release: str, sources: Path, folder: Path, notify: Callable[[str], None]
    ) -> None:
        """Build the kernel modules in `sources` for the guest's kernel into `folder`.

        Raises NoModules if that is impossible.
        """
        raise NotImplementedError


SSH = TargetKind()
"""The kind of `ssh://`."""


def kind_of(scheme: str | None) -> TargetKind:
    """Return the kind of a scheme; None: ssh. Raises InputError if its package cannot be used."""
    return SSH if scheme is None else cast("TargetKind", load("targets", scheme, TargetKind))


def kinds() -> dict[str, TargetKind]:
    """Return the kinds of extensions by scheme, without any whose package cannot be used."""
    by_scheme: dict[str, TargetKind] = {}
    for scheme in registered("targets"):
        try:
            by_scheme[scheme] = kind_of(scheme)
        except InputError:
            continue  # `parse_address` says so if a target has this scheme
    return by_scheme


def forms() -> list[str]:
    """Return how to write the targets of each kind, such as `lab:NAME`."""
    return [kind.form for kind in kinds().values()]


def scheme_of(name: str) -> str | None:
    """Return the scheme of a target's name if an extension has it."""
    scheme, colon, _ = name.partition(":")
    return scheme if colon and scheme in registered("targets") else None


def name_in_scheme(name: str) -> str:
    """Return the name without its scheme: `lab:debian` -> `debian`. Other names stay."""
    scheme = scheme_of(name)
    return name if scheme is None else name.removeprefix(f"{scheme}:")


def guest_kind(name: str) -> GuestKind | None:
    """Return the kind of a target that rtgauge can boot; None for any other target."""
    kind = kind_of(scheme_of(name))
    return kind if isinstance(kind, GuestKind) else None
