# SPDX-License-Identifier: MIT
"""Reads LAVA's results of cyclictest: lines `t0-max-latency pass 54 us`, and the signals
`<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=t0-max-latency ...>`.

They give each thread's minimum, average and maximum, but no number of samples, so they become results of the
step instead of series. Most job logs also have cyclictest's own lines `T: 0 ( 614) P:98 I:1000 C: 60000 ...`.
The last such line gives the number of samples, and each thread becomes a series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rtgauge.errors import InputError
from rtgauge.importers.cyclictest import ScreenText, live_series, smi_results
from rtgauge.importers.measurement import Importer, Measurement
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result

_CASE = r"t([0-9]{1,5})-(min|avg|max)-latency"
_NUMBER = r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)"
_LINE = re.compile(rf"\s*{_CASE}\s+(pass|fail|skip|unknown)\s+{_NUMBER}\s+(us|ns)\s*")
_SIGNAL = re.compile(
    rf"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={_CASE} RESULT=(\w+) UNITS=(us|ns) MEASUREMENT={_NUMBER}>"
)
_SIGNAL_TURNED = re.compile(
    rf"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={_CASE} RESULT=(\w+) MEASUREMENT={_NUMBER} UNITS=(us|ns)>"
)
_NAMES = ("min", "avg", "max")


class _Case(NamedTuple):
    """A figure of a thread: `which` is min, avg or max."""

    thread: int
    which: str
    result: str
    value: float
    unit: str


def _case(line: str) -> _Case | None:
    """Parse the figure in a line; None if there is none."""
    if match := (_LINE.fullmatch(line) or _SIGNAL_TURNED.search(line)):
        return _Case(int(match[1]), match[2], match[3], float(match[4]), match[5])
    if match := _SIGNAL.search(line):
        return _Case(int(match[1]), match[2], match[3], float(match[5]), match[4])
    return None


def parse_lava(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse the results in these lines. Raises InputError if there are none or they contradict each other."""
    threads: dict[int, dict[str, float]] = {}
    units: set[str] = set()
    failed = 0
    text = ScreenText(source)
    for number, line in numbered:
        case = _case(line)
        if case is None:
            if "T:" in line and not text.take_live(line):
                raise InputError(
                    f"line {number} of {source} begins a second run of cyclictest; keep only one job"
                )
            continue
        figures = threads.setdefault(case.thread, {})
        # A log has each result twice, as a line and as a signal.
        if figures.setdefault(case.which, case.value) != case.value:
            raise InputError(
                f"line {number} of {source} is the second value of {case.which}-latency for thread "
                f"{case.thread}; does the file have two jobs?"
            )
        units.add(case.unit)
        failed += case.result == "fail"
    if not threads:
        raise InputError(f"{source} has no LAVA line like 't0-max-latency pass 54 us'")
    if len(units) > 1:
        raise InputError(f"{source} has latencies both in us and in ns")
    unit = units.pop()
    unit_ns = 1000 if unit == "us" else 1
    marks: list[Mark] = []
    series = [] if text.live.keys() != threads.keys() else live_series(text, unit_ns)
    if not series:
        unknown = "LAVA's lines do not give the number of samples, so there is no distribution and no verdict"
        marks.append(MarkKind.SAMPLES_UNKNOWN.mark(unknown))
    for thread, part in zip(sorted(threads), series, strict=False):
        largest = threads[thread].get("max")
        if largest is not None and part.maximum_ns != round(largest * unit_ns):
            another = f"LAVA's line and cyclictest's give different largest latencies for thread {thread}"
            marks.append(MarkKind.FIGURES_CONTRADICT.mark(another))
            break
    for thread, figures in threads.items():
        ordered = [figures[name] for name in _NAMES if name in figures]
        if ordered != sorted(ordered):
            listed = ", ".join(f"{value:g}" for value in ordered)
            detail = (
                f"minimum, average and maximum of thread {thread} are not in rising order: {listed} {unit}"
            )
            marks.append(MarkKind.FIGURES_CONTRADICT.mark(detail))
    numbers = (all(figures.get(name) == thread for thread, figures in threads.items()) for name in _NAMES)
    if len(threads) > 1 and any(numbers):
        detail = "one figure of each thread is its thread number"
        marks.append(
            MarkKind.THREAD_NUMBER.mark(f"{detail}, because the script that extracted it took the wrong word")
        )
    if failed:
        marks.append(
            MarkKind.LAVA_FAILED.mark(f"{failed} of LAVA's lines {'says' if failed == 1 else 'say'} fail")
        )
    results: list[Result] = []
    for thread, figures in sorted(threads.items()):
        values = {f"{name}_{unit}": figures.get(name) for name in _NAMES}
        results.append(Result(name="latency", labels={"thread": thread}, values={**values}))
    cyclic = bool(series) and text.tool == "cyclictest"
    return Measurement(
        tool="cyclictest (LAVA)",
        source=source,
        series=series,
        resolution_ns=unit_ns,
        parameters={"priority": min(live.priority for live in text.live.values())} if cyclic else {},
        marks=marks,
        results=[*results, *smi_results(text.smi)],
        average_is_cut=True,
        releases=cyclic,
    )


LAVA = Importer.of_lines(
    "lava",
    "result lines of cyclictest, such as t0-max-latency",
    lambda head: re.search(r"\bt[0-9]+-(?:min|avg|max)-latency\b", head) is not None,
    parse_lava,
)
