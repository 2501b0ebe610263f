# SPDX-License-Identifier: MIT
"""The load `swarm[:N]`, many copies of dd, and the load `brown2010[:DEVICE]`: copy, read and swarm together
(Brown & Martin 2010, sec. 3.8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rtgauge.errors import InputError
from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge_ext.papers.load.copy import Copy
from rtgauge_ext.papers.load.read_device import Read

COUNT = 500
MOST = 5000
NICE = 19
"""The paper says 20, but Linux's range ends at 19."""
START = """
set -eu
i=0
while [ "$i" -lt "$1" ]; do
  nice -n "$2" dd if=/dev/zero of=/dev/null 2>/dev/null &
  i=$((i + 1))
done
wait
"""


class Swarm(Load):
    """Runs many copies of dd."""

    name = "swarm"
    programs: ClassVar[tuple[str, ...]] = ("dd", "nice")
    packages: ClassVar[dict[str, str]] = {"dd": "coreutils", "nice": "coreutils"}
    parameter = "N"

    def __init__(self, count: str | None = None) -> None:
        if count is not None and not (
            count.isascii() and count.isdigit() and len(count) <= 5 and 1 <= int(count) <= MOST
        ):
            raise InputError(
                f"load swarm:{count[:100]}: give the number of programs, 1 to {MOST}, such as swarm:500"
            )
        self._count = COUNT if count is None else int(count)

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one shell, which starts all copies of dd."""
        argv = ["timeout", str(context.bound_s), "sh", "-c", START, "sh", str(self._count), str(NICE)]
        return [PartSpec("dd", argv, {"processes": self._count, "nice": NICE}, ready=("dd", self._count))]


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
