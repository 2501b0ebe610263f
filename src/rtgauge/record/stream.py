# SPDX-License-Identifier: MIT
"""The engine's stream, version 2 (docs/formats/stream.md): a model for each type of line, and the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.facts import Calibration
from rtgauge.record.model import Mark, Outlier, Result, ThreadCounts, WarmUp

MOST_LINES = 500_000
"""The most lines of a stream that are kept unpacked in memory."""
STREAM_VERSION = 2

Bins = Annotated[str, Field(pattern="^[A-Za-z0-9+/]*$")]
"""Bins and counts in Base64 VLQ: each bin's distance from the previous bin, then its count
(`record.histogram`).
"""


class Line(BaseModel):
    """Base of all lines. It ignores unknown keys of a newer engine."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Hello(Line):
    """The first line: it describes the engine, its parameters and its clock."""

    type: Literal["hello"]
    version: int
    engine: str
    probe: str
    pid: int
    boot_id: str
    kernel: str
    machine: str
    capabilities: list[str]
    parameters: dict[str, Any]
    cpus: list[int] = Field(default_factory=list[int])
    cpus_not_measured: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    clock: dict[str, Any] = Field(default_factory=dict)
    dma_latency: dict[str, Any] | None = None
    runtime: str = "linux"
    """Kernel that schedules the measured threads: linux, or a co-kernel such as cobalt."""
    busy_loop: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """For the probe taskset, how long one round of the busy loop takes for each task."""


class SeriesLine(Line):
    """Declares one series."""

    type: Literal["series"]
    series: int
    metric: str
    unit: str
    labels: dict[str, str | int]


class Armed(Line):
    """Says that the engine is ready and waits for `go`."""

    type: Literal["armed"]
    time_ns: int


class Started(Line):
    """Gives the release time of activation 0."""

    type: Literal["started"]
    series: int
    start_ns: int


class Window(Line):
    """One window of one series, by default a second long."""

    type: Literal["window"]
    series: int
    phase: Literal["warm-up", "measure"]
    index: int = Field(ge=0)
    start_ns: int
    end_ns: int
    count: int = Field(ge=0)
    missed: int = Field(ge=0)
    min_ns: int | None
    max_ns: int | None
    sum_ns: int
    m2_ns2: float
    bins: Bins
    missed_bins: Bins


class Frame(Line):
    """The state of a simulation, for live views. Records do not keep frames.

    The probe defines its fields and which of them a browser gets (`Motion` of its descriptor).
    """

    model_config = ConfigDict(extra="allow")
    type: Literal["frame"]


class OutlierLine(Outlier):
    """One of the largest latencies."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Literal["outlier"]


class Summary(Line):
    """The totals of a series."""

    type: Literal["summary"]
    series: int
    count: int
    missed: int
    min_ns: int | None
    max_ns: int | None
    sum_ns: int
    m2_ns2: float
    lost: int
    impossible: int
    warm_up: WarmUp
    thread: ThreadCounts


class MarkLine(Mark):
    """A mark that only the engine can make."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Literal["mark"]


class SegmentLine(Line):
    """An interval in which a task ran without interruption (`taskset`). `series` is one of that task's
    series.
    """

    type: Literal["segment"]
    series: int
    activation: int = Field(ge=1)
    start_ns: int
    end_ns: int


class CalibrationLine(Calibration):
    """The calibration of one clock."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Literal["calibration"]


class ResultLine(Result):
    """A result that is not a distribution."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Literal["result"]


class TraceFormatsLine(Line):
    """The layout of the kernel events in `moment` lines, for all events that could be recorded."""

    type: Literal["trace_formats"]
    clock: str
    events: dict[str, str]
    """group/event -> text of its file `format` in tracefs."""
    header_page: str
    header_event: str
    page_bytes: int = Field(ge=1, le=1 << 20)
    cpus: int = Field(ge=1)


class HeldSleep(BaseModel):
    """A watched thread's sleep while it waited for a disk or a page, or was stopped."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    since_ns: int
    call: str
    """System call in which the thread slept; empty: it slept outside of system calls."""


class ThrottledGroup(BaseModel):
    """A control group that used up its CPU quota, according to its cpu.stat."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    group: str
    times: int
    """Number of periods in which the group was throttled."""
    ns: int
    """How long it was throttled, on all CPUs together."""
    after_ns: int
    """Time of the last reading of cpu.stat before the throttling showed."""
    until_ns: int
    """Time of the first reading of cpu.stat that showed the throttling."""


class MomentLine(Line):
    """The kernel's activity around a latency."""

    type: Literal["moment"]
    number: int = Field(ge=1)
    cpu: int = Field(ge=0)
    series: int = Field(ge=0)
    thread: int
    process: int = 0
    """ID of the thread's process; 0: unknown."""
    kind: Literal["maximum", "above", "blocked", "waited", "triggered"]
    request: int = Field(default=0, ge=0)
    """For `triggered`, the host's number; 0: the program has ended."""
    trigger: str = ""
    """For `triggered`, what the recorder knows about it."""
    release_ns: int
    end_ns: int
    latency_ns: int
    timer_ns: int = 0
    """Expiry of a timer set for after the release; 0: none."""
    copy_ns: int = Field(ge=0)
    steal_ms: dict[str, int] = Field(default_factory=dict[str, int])
    """CPU -> time that the hypervisor took from it since the previous reading."""
    held: list[HeldSleep] = Field(default_factory=list[HeldSleep])
    """For `watch`, sleeps within the activation, such as for a disk, that do not end the activation."""
    throttled: list[ThrottledGroup] = Field(default_factory=list[ThrottledGroup])
    """Control groups of the thread that were throttled since the last reading before the release."""
    quota_timers: bool = False
    """Whether the recorded events include the timers that end throttling."""
    lost: dict[str, int]
    """CPU -> how many events around this latency the kernel had overwritten; -1: unknown."""
    pages: dict[str, list[str]]
    """CPU -> pages of its ring buffer in Base64, without the bytes after the events."""
    left_out: list[int]
    """CPUs whose pages did not fit into the line."""


class SymbolsLine(Line):
    """The kernel functions whose addresses appear in moments."""

    type: Literal["symbols"]
    symbols: dict[str, str]
    """0xADDRESS -> name, or name+0xOFFSET."""


class StretchLine(Line):
    """A stretch of the warm-up with or without kernel events, for measuring their cost."""

    type: Literal["stretch"]
    events: bool
    start_ns: int
    end_ns: int
    count: int = Field(ge=0)
    bins: Bins


class End(Line):
    """The last line of a successful stream."""

    type: Literal["end"]
    reason: Literal[
        "duration", "count", "threshold", "stopped", "watchdog", "overload", "slave-died", "program-ended"
    ]
    status: int


class ErrorLine(Line):
    """The last line of a failed stream."""

    type: Literal["error"]
    code: str
    message: str
    detail: dict[str, Any]
    status: int


AnyLine = Annotated[
    Hello
    | SeriesLine
    | Armed
    | Started
    | Window
    | Frame
    | OutlierLine
    | Summary
    | MarkLine
    | CalibrationLine
    | SegmentLine
    | ResultLine
    | TraceFormatsLine
    | MomentLine
    | SymbolsLine
    | StretchLine
    | End
    | ErrorLine,
    Field(discriminator="type"),
]

LINE: TypeAdapter[AnyLine] = TypeAdapter(AnyLine)


def parse_line(text: str | bytes) -> AnyLine:
    """Parse one line of a stream. Raises RecordError, which quotes the beginning of the line."""
    try:
        line = LINE.validate_json(text)
    except ValidationError as error:
        details = error.errors()[0]
        start = text[:60].decode("utf-8", "replace") if isinstance(text, bytes) else text[:60]
        raise RecordError(
            f"this is not a line of the engine's stream ({details['msg']}): {start!r}"
        ) from None
    if isinstance(line, Hello) and line.version != STREAM_VERSION:
        raise RecordError(
            f"the engine has stream version {line.version}, but this rtgauge needs {STREAM_VERSION}; use "
            "the engine that came with this rtgauge"
        )
    return line


class StreamResult:
    """The content of a stream; `take` adds it line by line."""

    def __init__(self) -> None:
        self.hello: Hello | None = None
        self.series: list[SeriesLine] = []
        self.start_ns: dict[int, int] = {}
        self.outliers: list[Outlier] = []
        self.summaries: list[Summary] = []
        self.marks: list[Mark] = []
        self.calibrations: list[Calibration] = []
        self.segments: list[SegmentLine] = []
        self.results: list[Result] = []
        self.trace_formats: TraceFormatsLine | None = None
        self.stretches: list[StretchLine] = []
        self._lines = 0
        self.end: End | None = None
        self.error: ErrorLine | None = None

    def moved(
        self, first: int, labels: Mapping[str, str], *, added_ns: int = 0, mark_prefix: str = ""
    ) -> StreamResult:
        """Return a copy for a step with several streams: number the series from `first`, add these labels,
        shift the outliers by `added_ns`, and put `mark_prefix` before the details of marks.

        Segments, stretches and moments are left out: only a step with one stream has them.
        """
        result = StreamResult()
        result.hello, result.end = self.hello, self.end
        result.calibrations, result.results = [*self.calibrations], [*self.results]
        result.series = [
            line.model_copy(update={"series": line.series + first, "labels": {**line.labels, **labels}})
            for line in self.series
        ]
        result.summaries = [
            line.model_copy(update={"series": line.series + first}) for line in self.summaries
        ]
        result.outliers = [
            line.model_copy(update={"series": line.series + first, "time_ns": line.time_ns + added_ns})
            for line in self.outliers
        ]
        result.marks = [
            mark.model_copy(
                update={
                    "series": None if mark.series is None else mark.series + first,
                    "detail": f"{mark_prefix}{mark.detail}",
                }
            )
            for mark in self.marks
        ]
        return result

    def append(self, later: StreamResult) -> None:
        """Add another stream of the same step, with other series numbers (see `moved`).

        The step ends when the stream that was added last ends.
        """
        self.hello, self.end = self.hello or later.hello, later.end
        self.calibrations += later.calibrations
        self.series += later.series
        self.summaries += later.summaries
        self.outliers += later.outliers
        self.results += later.results
        self.marks += later.marks

    def take(self, line: AnyLine) -> None:
        """Add one line. Raises RecordError if there are more lines than any probe prints."""
        self._lines += not isinstance(line, (Window, Frame))
        if self._lines > MOST_LINES:
            raise RecordError(
                f"the stream has more than {MOST_LINES} lines other than windows, so the engine is not the "
                "one of this rtgauge"
            )
        match line:
            case Hello():
                self.hello = line
            case SeriesLine():
                self.series.append(line)
            case Started():
                self.start_ns[line.series] = line.start_ns
            case OutlierLine():
                self.outliers.append(Outlier.model_validate(line.model_dump(exclude={"type"})))
            case Summary():
                self.summaries.append(line)
            case MarkLine():
                self.marks.append(Mark.model_validate(line.model_dump(exclude={"type"})))
            case CalibrationLine():
                self.calibrations.append(Calibration.model_validate(line.model_dump(exclude={"type"})))
            case SegmentLine():
                self.segments.append(line)
            case ResultLine():
                self.results.append(Result.model_validate(line.model_dump(exclude={"type"})))
            case End():
                self.end = line
            case ErrorLine():
                self.error = line
            case TraceFormatsLine():
                self.trace_formats = line
            case StretchLine():
                self.stretches.append(line)
            case Armed() | Window() | Frame() | MomentLine() | SymbolsLine():
                pass  # a WindowTable collects the windows, a MomentWriter the moments; frames are not kept
