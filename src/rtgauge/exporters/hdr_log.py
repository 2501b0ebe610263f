# SPDX-License-Identifier: MIT
"""Writes an HdrHistogram log (format 1.2, histograms V2) with a tagged line (ns) for each window of each
series.

A bin counts as its largest value, as for quantiles, but at most as the window's maximum. The format has no
values below 0, so early activations have their own unsigned series, tagged `early`. It also has no place for
missed activations and for samples beyond the last bin of an imported histogram, except the largest. Comments
give the numbers of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from rtgauge.exporters.step_figures import missed_text, series_name, step_name
from rtgauge.record.files import clean_name
from rtgauge.record.histogram import OVERFLOW_NS, upper_ns
from rtgauge.record.reader import Record
from rtgauge.record.windows import largest, least

DIGITS = 3
"""The number of significant figures. The precision of 0.1 % is finer than a record's bins."""


def _tag(step_id: str, series: int | None, *, early: bool) -> str:
    return f"{clean_name(step_id)}-{series}" + ("-early" if early else "")


def _line(tag: str, start_s: float, length_s: float, values: Iterable[tuple[int, int]]) -> str | None:
    """Return a line of the log; None if there are no values."""
    from hdrh.histogram import HdrHistogram

    known = [(value, count) for value, count in values if count]
    if not known:
        return None
    largest = max(value for value, _ in known)
    histogram: Any = HdrHistogram(1, max(largest, 2), DIGITS)
    for value, count in known:
        histogram.record_value(value, count)
    payload = cast("bytes", histogram.encode()).decode()
    return f"Tag={tag},{start_s:.3f},{length_s:.3f},{largest / 1e6:.6f},{payload}"


def hdr_log(record: Record) -> bytes:
    """Return the log of all steps."""
    lines = ["#[Histogram log format version 1.2]"]
    body: list[str] = []
    first: float | None = None
    for step in record.steps:
        try:
            began = datetime.fromisoformat(step.started).timestamp()
        except ValueError:
            began = 0.0
        first = began if first is None else min(first, began)
        windows = record.windows(step)
        windows = windows.chosen(windows.measured)
        start_ns = least(windows.start_ns) or 0
        lines += [
            f"#{_tag(step.id, series.series, early=False)}: {step_name(step)}: {series.metric}: "
            f"{series_name(series)}: missed {missed_text(step, series)}"
            for series in step.series
        ]
        outside = at_least = 0
        for number in range(len(windows)):
            bins, counts = windows.bins.of(number)
            values: list[tuple[int, int]] = list(zip(upper_ns(bins).tolist(), counts.tolist(), strict=True))
            one = windows.chosen(slice(number, number + 1))
            lowest, most = least(one.min_ns), largest(one.max_ns)
            late = [
                (value if most is None else min(value, most), count)
                for value, count in values
                if 0 <= value < OVERFLOW_NS
            ]
            early = [
                (-value if lowest is None else min(-value, -lowest), count)
                for value, count in values
                if -OVERFLOW_NS < value < 0
            ]
            # All values beyond 10 s are in one bin, so only the most extreme value is known.
            beyond = [
                (side, count)
                for value, count in values
                for side in (late, early)
                if abs(value) >= OVERFLOW_NS and (value > 0) == (side is late)
            ]
            for side, count in beyond:
                farthest = most if side is late else None if lowest is None else -lowest
                side.extend(
                    [(OVERFLOW_NS, count)] if farthest is None else [(OVERFLOW_NS, count - 1), (farthest, 1)]
                )
                at_least += count - (farthest is not None)
            absent = int(one.count[0] - counts.sum())
            if absent and most is not None and most >= 0:
                late.append((most, 1))
                absent -= 1
            outside += absent
            begin, end = int(one.start_ns[0]), int(one.end_ns[0])
            at, length = (begin - start_ns) / 1e9, (end - begin) / 1e9
            written = (
                _line(_tag(step.id, int(one.series[0]), early=is_early), at, length, part)
                for part, is_early in ((late, False), (early, True))
            )
            body += [line for line in written if line is not None]
        if outside:
            lines.append(
                f"#{clean_name(step.id)}: samples of unknown value, which are not in the log: {outside}"
            )
        if at_least:
            lines.append(
                f"#{clean_name(step.id)}: samples of 10 s or longer: {at_least}; they are in the log as 10 "
                f"s, except the longest of each window, which is exact"
            )
    began_at = datetime.fromtimestamp(first or 0).astimezone()
    lines += [
        f"#[StartTime: {first or 0:.3f} (seconds since epoch), {began_at:%Y-%m-%d %H:%M:%S}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    return ("\n".join([*lines, *body]) + "\n").encode()
