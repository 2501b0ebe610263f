# SPDX-License-Identifier: MIT
"""What a format of `rtgauge export` defines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rtgauge.record.reader import Record


@dataclass(frozen=True)
class KernelSource:
    """The commit of the measured kernel, and who submits the report (`origin`). `describe`: git's name for
    the commit. `url`: the repository's clone address; empty if there is none.
    """

    origin: str
    commit: str
    describe: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A format. `make` returns the record in it, text in UTF-8.

    The functions raise InputError if a record has nothing for the format, RecordError for a damaged record.
    """

    make: Callable[[Record], bytes]
    make_with_source: Callable[[Record, KernelSource], bytes] | None = None
    """The same with the source of the measured kernel. None if the format has no place for it."""
    binary: bool = False
    """Whether the format is not text."""
