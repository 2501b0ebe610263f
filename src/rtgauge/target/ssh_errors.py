# SPDX-License-Identifier: MIT
"""Turns the messages of a failed OpenSSH client into one line that says what to do."""

from __future__ import annotations

import re
from typing import Self

from rtgauge.errors import MeasureError
from rtgauge.target.kind import kind_of
from rtgauge.target.ssh_address import SshAddress

UNREACHABLE = r"No route to host|Network is unreachable|Connection refused|(?:Connection|Operation) timed out"
"""What ssh says if it cannot reach a machine."""


class ConnectionBroken(MeasureError):  # noqa: N818 - the name says what happened
    """The connection to a target ended too early."""

    target: str | None = None
    """The target's name, if known."""

    @classmethod
    def to(cls, target: str, message: str) -> Self:
        """Return the error for this target."""
        error = cls(message)
        error.target = error.on = target
        return error


def _known_as(address: SshAddress) -> str:
    return f"'[{address.host}]:{address.port}'" if address.port not in (None, 22) else address.host


def explain_ssh(stderr: str, address: SshAddress) -> ConnectionBroken:
    """Return the error for the output of an ssh that could not connect or lost its connection."""
    return ConnectionBroken.to(address.name, _explained(stderr, address))


def _explained(stderr: str, address: SshAddress) -> str:
    name, kind = address.name, kind_of(address.scheme)
    login = kind.login(address)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in stderr:
        return kind.other_host_key(address) or (
            f"{name} has a host key that differs from the known one, so another machine answers, or the "
            "machine was reinstalled; find out which, then remove the old key: ssh-keygen -R "
            f"{_known_as(address)}"
        )
    if "Host key verification failed" in stderr or "host key is known for" in stderr:
        return f"{name} has a host key that is not known yet; log in once by hand ({login}) and check the key"
    if "Permission denied" in stderr or "Too many authentication failures" in stderr:
        return f"{name} does not let this user in; check user and key by hand ({login})"
    if "Could not resolve hostname" in stderr:
        return (
            f"{name}: the host's name is unknown; check the spelling, or write a Host entry into "
            "~/.ssh/config"
        )
    unreachable = kind.unreachable(stderr, address)
    if unreachable is not None:
        return unreachable
    reason = re.search(UNREACHABLE, stderr)
    if reason is not None:
        hint = (
            "check that sshd is running on the machine, and that the port is right"
            if reason[0] == "Connection refused"
            else "check that the machine is switched on and connected to this network"
        )
        return f"{name} cannot be reached: {reason[0]}; {hint}"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = "".join(c if c.isprintable() else "?" for c in lines[-1])[:300] if lines else "ssh said nothing"
    return f"{name}: the connection failed ({last}); try it by hand: {login}"
