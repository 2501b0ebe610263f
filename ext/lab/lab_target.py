# SPDX-License-Identifier: MIT
"""Guests of the lab as targets: `lab:NAME`."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.target.kind import GuestKind

if TYPE_CHECKING:
    from rtgauge.target.ssh_address import SshAddress
    from rtgauge_ext.lab.boot_guest import GuestReboots

GUEST = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)


class LabGuests(GuestKind):
    """Guests of the lab. ssh logs in to one through a port of this machine, which changes with each boot."""

    form = "lab:NAME"

    def check(self, name: str, shown: str) -> None:
        """Raise InputError if a guest cannot have this name."""
        if GUEST.fullmatch(name) is None:
            raise InputError(
                f"target '{shown}' is not a guest of the lab; list the guests with: rtgauge lab list"
            )

    def located(self, address: SshAddress) -> SshAddress:
        """Return the guest's present address, after booting it if it does not run."""
        from rtgauge.target.engine_path import installed_engines
        from rtgauge_ext.lab.boot_guest import ready_guest
        from rtgauge_ext.lab.ssh import ssh_options

        running = ready_guest(address.own_name, installed_engines)
        options = tuple(ssh_options(running).items())
        return replace(
            address, host="127.0.0.1", user="root", port=running.port, options=options, has_engines=True
        )

    def console(self, name: str) -> bytes | None:
        """Return the end of the guest's console output; None if it is unreadable."""
        from rtgauge_ext.lab.running_guests import end_of_console

        return end_of_console(name)

    def disturbance(self) -> str | None:
        """Return that running guests take CPU time, and how to stop them."""
        from rtgauge_ext.lab.running_guests import all_running

        guests = [running.name for running in all_running()]
        if not guests:
            return None
        return (
            f"lab guests ran on this machine and took CPU time from it: {', '.join(guests)}; for better "
            f"figures, stop them with: rtgauge lab stop NAME"
        )

    def login(self, address: SshAddress) -> str:
        """Return the command of the lab that logs in."""
        return f"rtgauge lab shell {address.own_name}"

    def other_host_key(self, address: SshAddress) -> str | None:
        """Return that its disk changed, or that something else listens on its port."""
        return (
            f"{address.name} has a different host key than at its boot, so its disk was changed or something "
            f"else listens on its port; stop it, then boot it again: rtgauge lab stop {address.own_name}"
        )

    def unreachable(self, stderr: str, address: SshAddress) -> str | None:
        """Return that it cannot be reached, also if QEMU listens but the guest does not."""
        from rtgauge.target.ssh_errors import UNREACHABLE

        reason = re.search(rf"{UNREACHABLE}|Connection (?:closed|reset) by", stderr)
        if reason is None:
            return None
        return (
            f"{address.name} cannot be reached: {reason[0].removesuffix(' by')}; if it is not still booting, "
            f"stop it with rtgauge lab stop {address.own_name}, then boot it again"
        )

    def reboots(self, name: str, engines: tuple[Path, ...], notify: Callable[[str], None]) -> GuestReboots:
        """Return what reboots a running guest. Raises InputError if it does not run."""
        from rtgauge_ext.lab.boot_guest import GuestReboots

        return GuestReboots(name, engines, notify)

    def boot_deployments(self) -> Callable[..., object]:
        """Return the class that boots a guest for each deployment."""
        from rtgauge_ext.lab.boot_deployments import BootDeployments

        return BootDeployments

    def stopped_now_and_then(
        self, name: str, length_s: float
    ) -> AbstractContextManager[list[tuple[int, int]]]:
        """Stop QEMU now and then until the block ends."""
        from rtgauge_ext.lab.stops import stopped_now_and_then

        return stopped_now_and_then(name, length_s)

    def clock_offset_ns(self, name: str) -> int:
        """Return how far (ns) the guest's clock is ahead of this machine's; 0 if the guest does not run."""
        from rtgauge_ext.lab.running_guests import find_running
        from rtgauge_ext.lab.stops import clock_offset_ns

        running = find_running(name)
        return 0 if running is None else clock_offset_ns(running)

    def build_modules(
        self, name: str, release: str, sources: Path, folder: Path, notify: Callable[[str], None]
    ) -> None:
        """Build kernel modules with Debian's headers. Raises NoModules if Debian has none for this kernel."""
        from rtgauge_ext.lab.headers import build_modules

        build_modules(name, release, sources, folder, notify)


LAB = LabGuests()
