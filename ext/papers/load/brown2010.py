# SPDX-License-Identifier: MIT
"""The load `brown2010[:DEVICE]`: copy, read and swarm together (Brown & Martin 2010, sec. 3.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge_ext.papers.load.copy import Copy
from rtgauge_ext.papers.load.read_device import Read
from rtgauge_ext.papers.load.swarm import Swarm

NOT_READ = (
    "load brown2010 runs only copy and swarm; Brown and Martin also read from a memory card. To do so too, "
    "name a device or a large file, such as brown2010:/dev/mmcblk0"
)


class Brown2010(Load):
    """Runs all three loads at once. It reads only if a device or file is named."""

    name = "brown2010"
    programs: ClassVar[tuple[str, ...]] = (*Copy.programs, "nice")
    packages: ClassVar[dict[str, str]] = Copy.packages | Read.packages | Swarm.packages
    parameter = "DEVICE or FILE"

    def __init__(self, source: str | None = None) -> None:
        self._read = None if source is None else Read(source)

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return the parts of all loads. The copy comes first, because its preparation is slow while 500
        other programs run.
        """
        parts = [
            *Copy().parts(context),
            *(self._read.parts(context) if self._read is not None else []),
            *Swarm().parts(context),
        ]
        if self._read is None:
            parts[0] = replace(parts[0], notes=(*parts[0].notes, NOT_READ))
        return parts
