# SPDX-License-Identifier: MIT
"""Collects the state of a run, and makes the document that browsers show.

The runner's thread only appends windows to a list. Another thread counts the windows when it makes a
document, and it makes documents only while a browser is connected.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtgauge.errors import RecordError
from rtgauge.record.histogram import EDGES_NS
from rtgauge.record.windows import Windows

if TYPE_CHECKING:
    from rtgauge.record.model import LeftOut, Step, StepKey
    from rtgauge.record.stream import Frame, SeriesLine, Window

COLUMNS_NS: npt.NDArray[np.int64] = np.unique(np.round(np.logspace(2, 10, 8 * 16 + 1)).astype(np.int64))
"""Lower edges of the histogram's columns: 16 per decade from 100 ns to 10 s. The first column also has all
smaller values, the last all larger values.
"""
_COLUMN_OF_BIN = np.clip(np.searchsorted(COLUMNS_NS, EDGES_NS, side="right") - 1, 0, len(COLUMNS_NS) - 1)
MOST_MAXIMA = 600
"""The maximum number of points of the curve over time. More points than this are merged in pairs."""
MOST_WAITING = 100_000
"""The most windows that may wait for the next document. More windows than this are counted at once."""


@dataclass(frozen=True)
class Moving:
    """A step's simulation, which the page can draw."""

    view: str
    """The name of the script that draws the simulation on the page."""
    message: Callable[[int, Frame], bytes]
    """Makes the message to browsers from a frame's number (from 1) and the frame. Raises RecordError if it is
    not a frame.
    """
    elsewhere: bool = False
    """Whether the simulation runs on a machine that sends no frames."""


@dataclass(frozen=True)
class Required:
    """A requirement, for a page on which nobody has judged it yet.

    `text`: the requirement in words. `bounds_ns`: by metric. `allowed`: the share that may exceed a bound.
    `late`: returns how many activations in these windows certainly did, and how many there were.
    """

    text: str
    bounds_ns: Mapping[str, int]
    allowed: float
    late: Callable[[Windows, int], tuple[int, int]]


class LiveState:
    """Implements the runner's `Progress`, and makes documents and frames.

    `title`: names a step. `moving`: returns the step's simulation, or None. `required`: the requirement that
    the run is about, or None.
    """

    def __init__(
        self,
        title: Callable[[StepKey], str],
        moving: Callable[[StepKey], Moving | None] = lambda _: None,
        required: Required | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._title = title
        self._moving_of = moving
        self._required = required
        self.watchers = 0
        self.on_frame: Callable[[], None] = lambda: None
        """Called by the runner's thread for each frame."""
        self._frame: tuple[int, Frame | None] = (0, None)
        self._message: tuple[int, bytes | None] = (0, None)
        self._steps: list[dict[str, Any]] = []
        self._before = 0
        self._expected_s: list[float] = []
        self._number = 0
        self._phase = ""
        self._began_s = time.monotonic()
        self._left_out: list[str] = []
        self._ended = False
        self._waiting: list[Window] = []
        self._begin_step()

    def _begin_step(self) -> None:
        self._moving: Moving | None = None
        self._waiting = []
        self._names: dict[int, str] = {}
        self._counts: set[int] = set()
        """The series whose values are counts instead of times."""
        self._metric = "latency"
        self._drawn: set[int] | None = None
        """The series in the histogram and the curve: all series of the first metric. None means all, until
        the metric is known.
        """
        self._columns = np.zeros(len(COLUMNS_NS), dtype=np.int64)
        self._series: dict[int, dict[str, int | None]] = {}
        self._maxima: list[tuple[int, int]] = []
        self._metrics: dict[int, str] = {}
        self._late: dict[str, tuple[int, int]] = {}
        """By metric: how many activations were later than its bound, and how many there were."""
        self._together = 1
        """The number of windows (seconds) that one point of the curve covers."""

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Add the steps that will be measured. A study calls this again for each round."""
        with self._lock:
            self._before = len(self._steps)
            self._steps += [{"title": self._title(key), "state": "waits", "marks": []} for key in steps]
            self._expected_s = expected_s

    def left_out(self, what: LeftOut) -> None:
        """Note that a part of the plan cannot be measured."""
        with self._lock:
            self._left_out.append(f"{what.what}: {what.reason}")

    def step_begins(self, number: int, key: StepKey) -> None:
        """Begin a step. `number` counts from the last `run_begins`."""
        with self._lock:
            self._begin_step()
            self._moving = self._moving_of(key)
            self._number = number
            self._began_s = time.monotonic()
            self._steps[self._before + number]["state"] = "runs"

    def waits(self, reason: str) -> None:
        """Show why the run has not begun."""
        self.phase(f"waits: {reason}")

    def phase(self, text: str) -> None:
        """Show the step's present activity."""
        with self._lock:
            self._phase = text

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """Set the series that the step measures."""
        several = len({line.metric for line in lines}) > 1
        names: dict[int, str] = {}
        for line in lines:
            labels = [f"{'CPU' if name == 'cpu' else name} {value}" for name, value in line.labels.items()]
            names[line.series] = ", ".join([line.metric, *labels] if several else labels)
        with self._lock:
            self._names = names
            self._counts = {line.series for line in lines if line.unit == "count"}
            self._metric = lines[0].metric if lines else self._metric
            self._drawn = {line.series for line in lines if line.metric == self._metric}
            self._metrics = {line.series: line.metric for line in lines if line.unit == "ns"}

    def window(self, window: Window) -> None:
        """Add one window of one series."""
        with self._lock:
            self._waiting.append(window)
            if len(self._waiting) >= MOST_WAITING:
                self._count()

    def watched(self) -> bool:
        """Return whether a browser wants frames of this step."""
        return self.watchers > 0 and self._moving is not None and not self._moving.elsewhere

    def frame(self, frame: Frame) -> None:
        """Set the newest frame. It takes no lock, so that the runner never waits for a browser."""
        self._frame = (self._frame[0] + 1, frame)
        self.on_frame()

    def frame_message(self) -> tuple[int, bytes | None]:
        """Return the newest frame's number (from 1) and message; None if there is none or it is damaged."""
        number, frame = self._frame
        moving = self._moving
        if frame is not None and moving is not None and number != self._message[0]:
            try:
                self._message = (number, moving.message(number, frame))
            except RecordError:
                self._message = (number, None)
        return self._message

    def step_ends(self, step: Step) -> None:
        """End a step that is now in the record."""
        with self._lock:
            about = self._steps[self._before + self._number]
            about |= {
                "state": "done",
                "max_ns": None if step.total is None else step.total.max_ns,
                "count": None if step.total is None else step.total.count,
                "missed": None if step.total is None else step.total.missed,
                "marks": [
                    {"severity": mark.severity.value, "name": mark.name, "detail": mark.detail}
                    for mark in step.marks
                ],
            }
            self._phase = ""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._ended

    def run_ends(self) -> None:
        """End the run."""
        with self._lock:
            self._ended = True

    def _count(self) -> None:
        """Count the waiting windows. The caller holds the lock."""
        waiting, self._waiting = [window for window in self._waiting if window.phase == "measure"], []
        drawn = [window for window in waiting if self._drawn is None or window.series in self._drawn]
        if drawn:
            histograms = Windows.of(drawn).bins
            np.add.at(self._columns, _COLUMN_OF_BIN[np.abs(histograms.bins)], histograms.counts)
        self._judge(waiting)
        for window in waiting:
            figures = self._series.setdefault(
                window.series, {"count": 0, "missed": 0, "min_ns": None, "max_ns": None}
            )
            figures["count"] = (figures["count"] or 0) + window.count
            figures["missed"] = (figures["missed"] or 0) + window.missed
            if window.max_ns is not None and window.min_ns is not None:
                figures["max_ns"] = max(
                    window.max_ns, window.max_ns if figures["max_ns"] is None else figures["max_ns"]
                )
                figures["min_ns"] = min(
                    window.min_ns, window.min_ns if figures["min_ns"] is None else figures["min_ns"]
                )
                if self._drawn is None or window.series in self._drawn:
                    self._note_maximum(window.index // self._together, max(window.max_ns, -window.min_ns))

    def _judge(self, windows: Sequence[Window]) -> None:
        """Count what was later than a bound. The caller holds the lock."""
        for metric, bound_ns in self._required.bounds_ns.items() if self._required is not None else ():
            own = [window for window in windows if self._metrics.get(window.series) == metric]
            if own and self._required is not None:
                late, activations = self._required.late(Windows.of(own), bound_ns)
                before = self._late.get(metric, (0, 0))
                self._late[metric] = (before[0] + late, before[1] + activations)

    def _required_document(self) -> dict[str, Any] | None:
        """Return the requirement and what was late in this step so far; None if there is no requirement."""
        if self._required is None:
            return None
        counted = [
            {
                "metric": metric,
                "bound_ns": self._required.bounds_ns[metric],
                "late": late,
                "activations": every,
            }
            for metric, (late, every) in self._late.items()
        ]
        return {"text": self._required.text, "allowed": self._required.allowed, "counted": counted}

    def _note_maximum(self, at: int, value_ns: int) -> None:
        """Add a value to the curve, which shows the first metric's largest value in each second."""
        if self._maxima and self._maxima[-1][0] >= at:
            place = next(
                (place for place in range(len(self._maxima) - 1, -1, -1) if self._maxima[place][0] <= at), 0
            )
            self._maxima[place] = (self._maxima[place][0], max(self._maxima[place][1], value_ns))
            return
        self._maxima.append((at, value_ns))
        if len(self._maxima) > MOST_MAXIMA:
            self._together *= 2
            merged: dict[int, int] = {}
            for second, value in self._maxima:
                merged[second // 2] = max(value, merged.get(second // 2, 0))
            self._maxima = list(merged.items())

    def document(self) -> bytes:
        """Return the state as JSON."""
        with self._lock:
            self._count()
            elapsed_s = time.monotonic() - self._began_s
            left_s = max(
                sum(self._expected_s[self._number :]) - elapsed_s, sum(self._expected_s[self._number + 1 :])
            )
            filled = np.flatnonzero(self._columns)
            moving = self._moving
            first, last = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
            document = {
                "steps": self._steps,
                "number": self._before + self._number,
                "phase": self._phase,
                "left_s": 0 if self._ended else round(left_s, 1),
                "left_out": self._left_out,
                "metric": self._metric,
                "motion": "none" if moving is None else "elsewhere" if moving.elsewhere else "shown",
                "view": None if moving is None else moving.view,
                "series": [
                    {
                        "name": self._names.get(number, f"series {number}"),
                        "unit": "count" if number in self._counts else "ns",
                        **figures,
                    }
                    for number, figures in sorted(self._series.items())
                ],
                "histogram": {
                    "edges_ns": COLUMNS_NS[first : last + 1].tolist(),
                    "counts": self._columns[first:last].tolist(),
                },
                "maxima": [[second * self._together, value] for second, value in self._maxima],
                "required": self._required_document(),
                "ended": self._ended,
            }
        return json.dumps(document).encode()
