# SPDX-License-Identifier: MIT
"""What a format of `rtgauge export` defines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rtgauge.record.reader import Record


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A format. `make` returns the record in it, text in UTF-8.

    The functions raise InputError if a record has nothing for the format, RecordError for a damaged record.
    """

    make: Callable[[Record], bytes]
    binary: bool = False
    """Whether the format is not text."""
