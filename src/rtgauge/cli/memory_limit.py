# SPDX-License-Identifier: MIT
"""Refuses to begin, or to load numpy and polars, under a limit of the address space (`ulimit -v`) that is too
low.

Without memory, libraries abort the process or end it with a status of their own, which may be that of an
answer.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from types import ModuleType

from rtgauge.errors import MeasureError

LIBRARIES = frozenset({"numpy", "polars"})
LEAST_BYTES, LEAST_BYTES_PER_CPU = 2 << 30, 128 << 20
"""What they need. Each CPU gets threads, whose stacks and buffers take address space."""
LEAST_BYTES_TO_BEGIN = 64 << 20
"""What every command needs."""


class _Finder:
    """Finds no module, but refuses the libraries."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """Raise MeasureError for a library whose memory is not there."""
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        least = LEAST_BYTES + LEAST_BYTES_PER_CPU * (os.cpu_count() or 1)
        if name in LIBRARIES and limit != resource.RLIM_INFINITY and limit < least:
            raise _too_low(limit, least)


def _too_low(limit: int, least: int) -> MeasureError:
    """Return the error for a limit of so many bytes."""
    return MeasureError(
        f"the memory limit of {limit >> 10} KiB is too low; raise it with: ulimit -v {least >> 10}"
    )


def check_memory() -> None:
    """Raise MeasureError if the limit is too low to begin; refuse the libraries from now on if it is too low
    for them.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    if limit < LEAST_BYTES_TO_BEGIN:
        raise _too_low(limit, LEAST_BYTES_TO_BEGIN)
    sys.meta_path.insert(0, _Finder)
