# SPDX-License-Identifier: MIT
"""The extensions of rtgauge's own tree, so that an rtgauge without one can say which is missing.

`tools/known_extensions.py` writes the file with what each of them adds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

from rtgauge.extension import extensions

FILE = "known_extensions.toml"
AddedKind = Literal[
    "commands",
    "options",
    "plans",
    "probes",
    "loads",
    "exporters",
    "targets",
    "measurers",
    "askers",
    "resumers",
    "marks",
    "runtimes",
]
"""What the file lists. An option is `COMMAND --NAME`, a plan is a preset or a study."""


@cache
def known() -> Mapping[str, Mapping[AddedKind, Sequence[str]]]:
    """Return extension -> the names that it adds."""
    return tomllib.loads((resources.files("rtgauge") / FILE).read_text(encoding="utf-8"))


def missing(kind: AddedKind, name: str) -> str | None:
    """Return the extension that adds the name; None if no known one does, or if it is installed."""
    installed = {extension.name for extension in extensions()}
    return next(
        (
            extension
            for extension, added in known().items()
            if extension not in installed and name in added.get(kind, ())
        ),
        None,
    )


def from_where(kind: AddedKind, name: str) -> str:
    """Return the end of an error about an unknown name: which extension is missing, and the way out. It is
    empty if no known extension adds the name.
    """
    extension = missing(kind, name)
    if extension is None:
        return ""
    return (
        f": it needs the extension {extension}, which is not installed; install rtgauge from a source tree "
        f"that has the folder ext/{extension}"
    )
