# SPDX-License-Identifier: MIT
"""Where in time the samples of a file lie: on their grid of releases, or at the times that they bring."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.errors import RecordError
from rtgauge.record.model import WarmUp

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from rtgauge.record.samples import SamplesHeader

SECOND_NS = 10**9
MAX_WINDOWS = 10_000_000


@dataclass(frozen=True)
class SampleWindows:
    """The course over time: one entry a second of the measured phase, by release time; `max_ns` is -1 where `count` is 0.

    `count` holds every sample of the file that was released in that second, impossible ones too.
    """

    start_ns: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    missed: npt.NDArray[np.int64]
    max_ns: npt.NDArray[np.int64]


class GridCourse:
    """Which window each sample of the file belongs to, with what was missed in between."""

    def __init__(self, header: SamplesHeader, path: Path) -> None:
        self.interval = header.interval_ns
        self.warm_up = header.warm_up_ns
        self.path = path
        self.release = 0
        """Release number of the next sample."""
        self.first = self.edge(0)
        """Release number of the first one of the measured phase."""
        self.end = None if header.duration_ns == 0 else -(-(header.warm_up_ns + header.duration_ns) // header.interval_ns)
        self.counts: Counter[int] = Counter()
        self.maxima: dict[int, int] = {}

    def edge(self, window: int) -> int:
        """Release number of the first one at or after the beginning of `window` (window -1: the warm-up)."""
        return 0 if window < 0 else -(-(self.warm_up + window * SECOND_NS) // self.interval)

    def window_of(self, release: int) -> int:
        """The window that holds this release number, -1 for the warm-up. Raises RecordError where no measurement is that long."""
        since = release * self.interval - self.warm_up
        window = since // SECOND_NS if since >= 0 else -1
        if window >= MAX_WINDOWS:
            raise RecordError(f"{self.path} is damaged: its samples reach over {window} seconds")
        return window

    def add(self, values: npt.NDArray[np.int64], times: npt.NDArray[np.int64] | None = None) -> int:  # noqa: ARG002 - they follow from the releases
        """Take the next piece of the file; answers how many of its samples are warm-up."""
        late = np.flatnonzero(values > self.interval)
        extra = (values[late] - 1) // self.interval
        if len(extra) and float(extra.sum(dtype=np.float64)) * self.interval > MAX_WINDOWS * SECOND_NS:
            raise RecordError(f"{self.path} is damaged: it has a latency of {int(values.max())} ns")
        after = np.cumsum(extra)
        missed = int(after[-1]) if len(after) else 0
        base = self.release
        # Release number of each late sample: what was missed before it counts as well.
        numbers = base + late + after - extra
        last = base + len(values) - 1 + (missed if not len(late) or late[-1] != len(values) - 1 else missed - int(extra[-1]))
        first_window, last_window = self.window_of(base), self.window_of(last)
        self.release = base + len(values) + missed
        edges = np.array([self.edge(window) for window in range(first_window + 1, last_window + 1)], dtype=np.int64)
        # The first sample that is released at or after each edge; an edge among missed ones is that of the sample after them.
        before = np.searchsorted(numbers, edges, side="left")
        position = edges - base - np.concatenate([[0], after])[before]
        floor = np.concatenate([[0], late + 1])[before]
        starts = np.concatenate([[0], np.maximum(position, floor)]).astype(np.int64)
        lengths = np.diff(np.append(starts, len(values)))
        filled = np.flatnonzero(lengths)
        maxima = np.maximum.reduceat(values, starts[filled])
        for window, length, maximum in zip((filled + first_window).tolist(), lengths[filled].tolist(), maxima.tolist(), strict=True):
            self.counts[window] += length
            self.maxima[window] = max(self.maxima.get(window, -1), maximum)
        return int(starts[1]) if first_window < 0 <= last_window else len(values) if last_window < 0 else 0

    def missed_in(self, releases: int, window: int) -> int:
        """Missed activations among the releases of one window, when there were `releases` in all."""
        return max(0, min(self.edge(window + 1), releases) - min(self.edge(window), releases)) - self.counts[window]

    def finish(self, start_ns: int) -> tuple[WarmUp, SampleWindows]:
        """What was warm-up, and the seconds of the measured phase."""
        # What is missed after the end of the measured phase is not part of it.
        releases = self.release if self.end is None else max(min(self.release, self.end), 0)
        windows = 0 if releases <= self.first else self.window_of(releases - 1) + 1
        index = np.arange(windows, dtype=np.int64)
        warm_up = WarmUp(count=self.counts[-1], missed=self.missed_in(releases, -1), max_ns=self.maxima.get(-1))
        return warm_up, SampleWindows(
            start_ns=start_ns + self.warm_up + index * SECOND_NS,
            count=np.array([self.counts[w] for w in range(windows)], dtype=np.int64),
            missed=np.array([max(0, self.missed_in(releases, w)) for w in range(windows)], dtype=np.int64),
            max_ns=np.array([self.maxima.get(w, -1) for w in range(windows)], dtype=np.int64),
        )


class TimedCourse:
    """Which window each sample of the file belongs to, by its own time; nothing is missed."""

    def __init__(self, header: SamplesHeader, path: Path) -> None:
        self.measured_ns = header.start_ns + header.warm_up_ns
        self.path = path
        self.counts: Counter[int] = Counter()
        self.maxima: dict[int, int] = {}

    def add(self, values: npt.NDArray[np.int64], times: npt.NDArray[np.int64] | None = None) -> int:
        """Take the next piece of the file; answers how many of its samples are warm-up. Raises RecordError where times go back or too far."""
        if times is None:
            raise TypeError("samples without times")
        if (np.diff(times) < 0).any():
            raise RecordError(f"{self.path} is damaged: the times of its samples go backwards")
        windows = np.maximum((times - self.measured_ns) // SECOND_NS, -1)
        if len(windows) and int(windows[-1]) >= MAX_WINDOWS:
            raise RecordError(f"{self.path} is damaged: its samples reach over {int(windows[-1])} seconds")
        found, starts, lengths = np.unique(windows, return_index=True, return_counts=True)
        maxima = np.maximum.reduceat(values, starts)
        for window, length, maximum in zip(found.tolist(), lengths.tolist(), maxima.tolist(), strict=True):
            self.counts[window] += length
            self.maxima[window] = max(self.maxima.get(window, -1), maximum)
        return int(np.searchsorted(windows, 0))

    def finish(self, start_ns: int) -> tuple[WarmUp, SampleWindows]:  # noqa: ARG002 - as of the other course
        """What was warm-up, and the seconds of the measured phase."""
        windows = max(self.counts, default=-1) + 1
        index = np.arange(windows, dtype=np.int64)
        return WarmUp(count=self.counts[-1], max_ns=self.maxima.get(-1)), SampleWindows(
            start_ns=self.measured_ns + index * SECOND_NS,
            count=np.array([self.counts[w] for w in range(windows)], dtype=np.int64),
            missed=np.zeros(windows, dtype=np.int64),
            max_ns=np.array([self.maxima.get(w, -1) for w in range(windows)], dtype=np.int64),
        )
