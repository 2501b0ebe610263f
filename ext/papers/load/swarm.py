# SPDX-License-Identifier: MIT
"""The load `swarm` or `swarm:N`, which runs N copies of dd from /dev/zero to /dev/null at the lowest priority
(Brown & Martin 2010, sec. 3.8).
"""

from __future__ import annotations

from typing import ClassVar

from rtgauge.errors import InputError
from rtgauge.load.load import Load, LoadContext, PartSpec

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
