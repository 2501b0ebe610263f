# SPDX-License-Identifier: MIT
"""Reads the table that oslat prints: a row for each bin, with a count for each core. rt_tests.py reads its
--json, which has the same figures.

The value of a row is the start of a bin in us. The last bin also counts all longer rounds of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rtgauge.errors import InputError
from rtgauge_ext.importers.foreign_file import damaged, lines
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import Measurement, check_runs
from rtgauge_ext.importers.rt_tests import oslat_fields

_VERSION = re.compile(r"oslat V ([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})\b")
_COMMAND = re.compile(r"cmd to run: \[?(.{1,1000}?)\]?")
_BIN = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,6})?) \(us\):((?:\s+[0-9]{1,18})+)\s*(?:\(including overflows\))?"
)
_FIGURE = re.compile(
    r"(Core|Minimum|Average|Maximum|Duration):((?:\s+[0-9]{1,15}(?:\.[0-9]{1,9})?)+)\s*(?:\([a-z]+\))?"
)
FIGURES = {"Minimum": "min", "Average": "avg", "Maximum": "max", "Duration": "duration"}
"""The table's figure -> the field in --json."""


@dataclass
class _Table:
    """The lines of one run. `figures`: the values of each core; `bins`: value (us) -> counts of each core."""

    version: str | None = None
    command: str | None = None
    figures: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bins: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def take(self, text: str) -> bool:
        """Parse a line. Return False if it begins another run."""
        if match := _VERSION.search(text):
            if self.figures:
                return False
            self.version = match[1]
        elif match := _COMMAND.fullmatch(text):
            if self.figures:
                return False
            self.command = match[1]
        elif match := _FIGURE.fullmatch(text):
            if match[1] in self.figures:
                return False
            self.figures[match[1]] = match[2].split()
        elif match := _BIN.fullmatch(text):
            self.bins[match[1]] = [int(count) for count in match[2].split()]
        return True


def parse_oslat(numbered: Iterable[tuple[int, str]], source: str) -> list[Measurement]:
    """Parse the tables in these lines. Raises InputError if there is none, or if one is damaged."""
    tables = [_Table()]
    for _, line in numbered:
        if not tables[-1].take(line.strip()):
            tables.append(_Table())
            check_runs(len(tables), source)
            tables[-1].take(line.strip())
    return [_measurement(table, source) for table in tables]


def _measurement(table: _Table, source: str) -> Measurement:
    missing = {"Core", *FIGURES} - table.figures.keys()
    if missing or not table.bins:
        what = "rows of bins" if not table.bins else f"line '{min(missing)}:'"
        raise InputError(f"{source} is not a table from oslat, or it is cut short: {what} is missing")
    cores = table.figures["Core"]
    if any(len(values) != len(cores) for values in (*table.figures.values(), *table.bins.values())):
        raise damaged(source, f"a row in oslat's table does not have {len(cores)} columns")
    threads: dict[str, dict[str, Any]] = {}
    for at, core in enumerate(cores):
        thread: dict[str, Any] = {name: float(table.figures[figure][at]) for figure, name in FIGURES.items()}
        thread["cpu"] = int(core) if core.isdigit() else -1
        thread["histogram"] = {str(float(value)): counts[at] for value, counts in table.bins.items()}
        threads[str(at)] = thread
    return Measurement(
        tool="oslat",
        source=source,
        version=table.version,
        command=table.command,
        **oslat_fields({"thread": threads}, source),
    )


OSLAT = Importer(
    "oslat",
    "the table that oslat prints",
    lambda head: re.search(r"^[ \t]*+[0-9.]{1,16} \(us\):[ \t]", head, re.MULTILINE) is not None,
    lambda path, _hints: parse_oslat(lines(path), str(path)),
)
