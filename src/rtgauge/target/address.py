# SPDX-License-Identifier: MIT
"""Parses the names of targets: `local`, `ssh://[user@]host[:port]`, or one with an extension's scheme."""

from __future__ import annotations

import re

from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.target.kind import forms, kind_of, scheme_of
from rtgauge.target.ssh_address import SCHEME, SshAddress

LOCAL = "local"
USER = r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}"
HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})"
ADDRESS = r"[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9_.-]{1,32})?"
WHOLE = re.compile(
    rf"ssh://(?:(?P<user>{USER})@)?(?:(?P<host>{HOST})|\[(?P<six>{ADDRESS})\])(?::(?P<port>[0-9]{{1,5}}))?/?",
    re.ASCII,
)
HOW = "give ssh://[user@]host[:port], such as ssh://root@board or ssh://[fd00::2]:2222"


def parse_address(text: str) -> SshAddress | None:
    """Parse the name of a target; None for `local`.

    Raises InputError for any other text, so that no name reaches a shell or ssh that could misread it.
    """
    if text == LOCAL:
        return None
    shown = "".join(c if c.isprintable() else "?" for c in text[:100])
    scheme = scheme_of(text)
    if scheme is not None:
        own_name = text.removeprefix(f"{scheme}:")
        kind_of(scheme).check(own_name, shown)
        return SshAddress("", scheme=scheme, own_name=own_name)
    if not text.startswith(SCHEME):
        others = ", ".join(["local", *forms()])
        instead = f"; give {others}, or {HOW.removeprefix('give ')}"
        raise InputError(
            f"unknown target '{shown}'{from_where('targets', text.partition(':')[0]) or instead}"
        )
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


def is_target(text: str) -> bool:
    """Return whether a word names a target, rightly or wrongly spelled, and nothing else."""
    return text == LOCAL or text.startswith(SCHEME) or scheme_of(text) is not None


def target_name(text: str) -> str:
    """Return the canonical spelling of a target's name: `ssh://box/` -> `ssh://box`. Raises InputError if
    invalid.
    """
    address = parse_address(text)
    return LOCAL if address is None else address.name
