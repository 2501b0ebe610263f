# SPDX-License-Identifier: MIT
"""The address at which to log in to a target."""

from __future__ import annotations

from dataclasses import dataclass

SCHEME = "ssh://"


@dataclass(frozen=True)
class SshAddress:
    """The address at which to log in.

    If `user` or `port` is None, the user's ssh configuration decides it. `host` may be a name that only this
    configuration knows.
    """

    host: str
    user: str | None = None
    port: int | None = None
    scheme: str | None = None
    """The scheme of a target that an extension finds. Its host is unknown until `located` asks there."""
    own_name: str = ""
    """The name of such a target, without the scheme."""
    jump: str | None = None
    """The ssh jump host through which the target is reached."""
    options: tuple[tuple[str, str], ...] = ()
    """ssh options (name, value). If there are any, ssh ignores the user's configuration."""
    has_engines: bool = False
    """Whether the target may already have engines, in the folder ENGINES (ssh_folder.py)."""

    @property
    def name(self) -> str:
        """The target's name in plans and records."""
        if self.scheme is not None:
            return f"{self.scheme}:{self.own_name}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            SCHEME
            + (f"{self.user}@" if self.user is not None else "")
            + host
            + (f":{self.port}" if self.port is not None else "")
        )
