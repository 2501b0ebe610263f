# SPDX-License-Identifier: MIT
"""Reads Xenomai's switchtest: a line RTD a second and CPU, with the context switches since the line before
and in all.

Its first thread sleeps for 1 ms in each round, and the last line is of less than a second: the figures say
how many switches there were in so many seconds, so that one took at most that time, and not how long one
takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.importers.measurement import Measurement
from rtgauge.record.model import Result
from rtgauge.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

_THREADS = re.compile(r"== Threads: (.+)")
_LINE = re.compile(r"RTD\|\s*([0-9]{1,5})\|\s*([0-9]{1,12})\|\s*([0-9]{1,15})")


def parse_switchtest(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """The result `switchtest` a CPU: its `threads`, `seconds`, `switches`, and the most that a switch took on
    average (`at_most_ns`).

    Raises InputError for a damaged output, or one without a figure.
    """
    threads = 0
    counts: dict[int, list[int]] = {}
    totals: dict[int, int] = {}
    for number, line in numbered:
        text = line.strip()
        if match := _THREADS.match(text):
            threads = len(match[1].split())
        elif match := _LINE.fullmatch(text):
            cpu = int(match[1])
            counts.setdefault(cpu, []).append(int(match[2]))
            totals[cpu] = int(match[3])
            if sum(counts[cpu]) != totals[cpu]:
                raise InputError(
                    f"{source} is damaged: line {number}: {match[3]} switches, and the lines so far "
                    f"have {sum(counts[cpu])}"
                )
        elif text.startswith("RTD|"):
            raise InputError(f"{source} is damaged: line {number}: '{text[:60]}'")
    if not any(totals.values()):
        raise InputError(f"{source} has no figures of switchtest")
    results = [
        Result(
            name="switchtest",
            labels={"cpu": cpu},
            values={
                "threads": threads,
                "seconds": len(counts[cpu]),
                "switches": switches,
                "at_most_ns": len(counts[cpu]) * NS_PER_S // switches if switches else None,
            },
        )
        for cpu, switches in totals.items()
    ]
    return Measurement(
        tool="xenomai switchtest", source=source, probe="switch", series=[], resolution_ns=1, results=results
    )
