# SPDX-License-Identifier: MIT
"""Reads the output of Xenomai's switchtest: the switches of each CPU in each second."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rtgauge.errors import InputError
from rtgauge.record.model import Result
from rtgauge.units import NS_PER_S
from rtgauge_ext.importers.foreign_file import damaged
from rtgauge_ext.importers.measurement import Measurement

_THREADS = re.compile(r"== Threads: (.+)")
_LINE = re.compile(r"RTD\|\s*([0-9]{1,5})\|\s*([0-9]{1,12})\|\s*([0-9]{1,15})")


def parse_switchtest(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Make a result `switchtest` for each CPU: its `threads`, `seconds`, `switches`, and an upper bound on
    the mean time of a switch (`at_most_ns`).

    Raises InputError if the output is damaged or has no figures.
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
            if (sum_so_far := sum(counts[cpu])) != totals[cpu]:
                lines_have = f"but the lines up to it have {sum_so_far}"
                raise damaged(source, f"line {number} says {match[3]} switches, {lines_have}")
        elif text.startswith("RTD|"):
            raise damaged(source, f"line {number}: '{text[:60]}'")
    if not any(totals.values()):
        raise InputError(f"{source} has no figures from switchtest")
    results: list[Result] = []
    for cpu, switches in totals.items():
        seconds = len(counts[cpu])
        most = seconds * NS_PER_S // switches if switches else None
        values = {"threads": threads, "seconds": seconds, "switches": switches, "at_most_ns": most}
        results.append(Result(name="switchtest", labels={"cpu": cpu}, values={**values}))
    return Measurement(
        tool="xenomai switchtest", source=source, probe="switch", series=[], resolution_ns=1, results=results
    )
