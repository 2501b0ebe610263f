# SPDX-License-Identifier: MIT
"""The load `read:DEVICE` or `read:FILE`: dd reads the device or file from its medium again and again (Brown &
Martin 2010, sec. 3.8).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rtgauge.errors import InputError, MeasureError
from rtgauge.load.load import Load, LoadContext, PartSpec

# iflag=nocache drops the data from the page cache, so that the next round reads the medium again. If dd does
# not know this flag, iflag=direct bypasses the cache.
READING = """
set -eu
for flags in iflag=nocache iflag=direct; do
  if dd if="$1" of=/dev/null bs=1M count=1 $flags 2>/dev/null; then
    dd if="$1" iflag=nocache count=0 2>/dev/null || :
    while dd if="$1" of=/dev/null bs=1M $flags; do :; done
    exit 1
  fi
done
dd if="$1" of=/dev/null bs=1M count=1
"""


# Opening a character device may do something: /dev/watchdog starts a countdown to a reboot.
TRYING = """
! [ -e "$1" ] || [ -f "$1" ] || [ -b "$1" ] || exit 3
exec dd if="$1" of=/dev/null bs=512 count=1
"""
NOT_A_DISK = 3
"""The exit status of `TRYING` for a character device, a pipe or a folder."""


def rounds(log: str) -> dict[str, Any]:
    """Parse dd's reports: the number of complete readings, and the total of their bytes."""
    sizes = [int(number) for number in re.findall(r"^([0-9]{1,18}) bytes ", log, re.MULTILINE)]
    return {"rounds": len(sizes), "bytes": sum(sizes)}


class Read(Load):
    """Reads a device or a file with one dd after another."""

    name = "read"
    programs: ClassVar[tuple[str, ...]] = ("dd",)
    packages: ClassVar[dict[str, str]] = {"dd": "coreutils"}
    parameter = "DEVICE or FILE"

    def __init__(self, source: str | None = None) -> None:
        if source is not None and (not source.startswith("/") or not source.isprintable()):
            raise InputError(
                f"load read:{source[:100]}: give the whole path of a device or a file, such as "
                f"read:/dev/mmcblk0"
            )
        self._source = source

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one shell that starts dd again and again.

        Raises InputError if nothing is named, MeasureError if it cannot be read or is not a block device or a
        regular file.
        """
        if self._source is None:
            raise InputError(
                "load read: say what to read, such as read:/dev/mmcblk0 or read:/home/large-file"
            )
        tried = context.target.run(["sh", "-c", TRYING, "sh", self._source], timeout_s=10)
        if tried.returncode == NOT_A_DISK:
            raise MeasureError(
                f"load read: {self._source} is neither a block device nor a regular file on the target; "
                "name one, such as read:/dev/mmcblk0"
            )
        if tried.returncode != 0:
            raise MeasureError(
                f"load read: {self._source} cannot be read on the target; name another device or "
                "file, or run as root"
            )
        argv = ["timeout", str(context.bound_s), "sh", "-c", READING, "sh", self._source]
        return [
            PartSpec("dd", argv, {"source": self._source}, ready=("dd", 1), lasting=False, reached=rounds)
        ]
