# SPDX-License-Identifier: MIT
"""Parses the names of targets: `local`, `ssh://[user@]host[:port]`, `lab:NAME`, or `labgrid:PLACE`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rtgauge.errors import InputError

LOCAL = "local"
SCHEME = "ssh://"
LAB = "lab:"
LABGRID = "labgrid:"
GUEST = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
TAG = r"[A-Za-z][A-Za-z0-9_]{0,63}=[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
PLACE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_./-]{{0,127}}|{TAG}(?:,{TAG}){{0,7}}", re.ASCII)
USER = r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}"
HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})"
ADDRESS = r"[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9_.-]{1,32})?"
WHOLE = re.compile(
    rf"ssh://(?:(?P<user>{USER})@)?(?:(?P<host>{HOST})|\[(?P<six>{ADDRESS})\])(?::(?P<port>[0-9]{{1,5}}))?/?",
    re.ASCII,
)
HOW = "give ssh://[user@]host[:port], such as ssh://root@board or ssh://[fd00::2]:2222"


@dataclass(frozen=True)
class SshAddress:
    """The address at which to log in.

    If `user` or `port` is None, the user's ssh configuration decides it. `host` may be a name that only this
    configuration knows.
    """

    host: str
    user: str | None = None
    port: int | None = None
    guest: str | None = None
    """The lab guest at this address. Its host is unknown until `located` asks the lab."""
    place: str | None = None
    """A labgrid place, or `TAG=VALUE[,TAG=VALUE]`. Its host is unknown until `located` acquires the place."""
    jump: str | None = None
    """The ssh jump host through which the target is reached."""
    options: tuple[tuple[str, str], ...] = ()
    """ssh options (name, value). If there are any, ssh ignores the user's configuration."""

    @property
    def name(self) -> str:
        """The target's name in plans and records."""
        if self.guest is not None:
            return LAB + self.guest
        if self.place is not None:
            return LABGRID + self.place
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            SCHEME
            + (f"{self.user}@" if self.user is not None else "")
            + host
            + (f":{self.port}" if self.port is not None else "")
        )


def parse_address(text: str) -> SshAddress | None:
    """Parse the name of a target; None for `local`.

    Raises InputError for any other text, so that no name reaches a shell or ssh that could misread it.
    """
    if text == LOCAL:
        return None
    shown = "".join(c if c.isprintable() else "?" for c in text[:100])
    if text.startswith(LAB):
        if GUEST.fullmatch(text.removeprefix(LAB)) is None:
            raise InputError(
                f"target '{shown}' is not a guest of the lab; list the guests with: rtgauge lab list"
            )
        return SshAddress("", guest=text.removeprefix(LAB))
    if text.startswith(LABGRID):
        if PLACE.fullmatch(text.removeprefix(LABGRID)) is None:
            raise InputError(
                f"target '{shown}' is not a place of labgrid; give labgrid:PLACE or labgrid:TAG=VALUE (list "
                f"the places with: labgrid-client places)"
            )
        return SshAddress("", place=text.removeprefix(LABGRID))
    if not text.startswith(SCHEME):
        others = "local, lab:NAME, labgrid:PLACE"
        raise InputError(f"unknown target '{shown}'; give {others}, or {HOW.removeprefix('give ')}")
    match = WHOLE.fullmatch(text)
    if match is None:
        if re.match(r"ssh://[^@/]*:[^@/]*@", text):
            raise InputError(
                "a target cannot contain a password, because other users could read it; use a key, or let "
                "ssh ask for the password"
            )
        raise InputError(
            f"target '{shown}' is not an address; {HOW}, or write a Host entry into ~/.ssh/config"
        )
    port = int(match["port"]) if match["port"] is not None else None
    if port is not None and not 0 < port < 65536:
        raise InputError(f"the port of target '{shown}' must be a number from 1 to 65535")
    return SshAddress(match["host"] or match["six"], match["user"], port)


def target_name(text: str) -> str:
    """Return the canonical spelling of a target's name: `ssh://box/` -> `ssh://box`. Raises InputError if
    invalid.
    """
    address = parse_address(text)
    return LOCAL if address is None else address.name
