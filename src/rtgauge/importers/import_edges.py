# SPDX-License-Identifier: MIT
"""Imports a file of an oscilloscope or logic analyser as responses, or half-periods of a toggled line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.errors import InputError
from rtgauge.instrument.edge_file import Distances, EdgeBlock, EdgeFile, Pairing
from rtgauge.instrument.edges import Times
from rtgauge.instrument.messages import Answer, Edges
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import LoadReport, Mark, Run, Step, StepKey
from rtgauge.record.parameters import OpenParameters
from rtgauge.record.summary import summarise_step
from rtgauge.record.window_builder import WindowBuilder, summary_line
from rtgauge.record.window_table import WindowTable
from rtgauge.record.writer import RecordWriter
from rtgauge.units import plural

LONGEST_NS = 366 * 86_400 * 10**9
"""Longest time from first to last edge. More shows a wrong unit of time."""
UNKNOWN = "unknown"
TOOL = "oscilloscope"


@dataclass(frozen=True)
class EdgeOptions:
    """How to interpret a file's edges.

    With `answer` (a channel): responses from an edge of the channel `stimulus` to one of `answer`. Without
    it: half-periods of `stimulus`, less half of `period_ns`, or whole periods if `edges` is rising or
    falling. `threshold`, `hysteresis`: in volts (None: from the levels in the file).
    """

    stimulus: str
    answer: str | None = None
    period_ns: int | None = None
    edges: Edges = Edges.BOTH
    any_edge_answers: bool = False
    threshold: float | None = None
    hysteresis: float | None = None
    time_unit: str | None = None
    sample_rate_hz: float | None = None

    def check(self) -> None:
        """Raises InputError if the options contradict each other."""
        if self.answer is None and self.period_ns is None:
            raise InputError(
                "give --answer CHANNEL to measure from stimulus to answer, or --period TIME, the "
                "nominal period of the line, to measure its half-periods"
            )
        if self.answer is not None and self.period_ns is not None:
            raise InputError("--period is for the half-periods of one line: leave out --answer, or --period")
        if self.answer is None and self.any_edge_answers:
            raise InputError("--any-edge needs --answer")
        if self.period_ns is not None and not 2 <= self.period_ns <= LONGEST_NS:
            raise InputError("--period is between 2ns and a year")
        for name, value in (
            ("--threshold", self.threshold),
            ("--hysteresis", self.hysteresis),
            ("--sample-rate", self.sample_rate_hz),
        ):
            if value is not None and not math.isfinite(value):
                raise InputError(f"{name} {value} is not a usable number")
        if self.sample_rate_hz is not None and self.sample_rate_hz <= 0:
            raise InputError(f"--sample-rate {self.sample_rate_hz:g} is not above 0")

    @property
    def nominal_ns(self) -> int:
        """The nominal distance of edges, to which measured ones are compared (ns)."""
        return (self.period_ns or 0) // (2 if self.edges is Edges.BOTH else 1)


class _Measured:
    """Collects what was measured from the edges so far."""

    def __init__(self, options: EdgeOptions) -> None:
        self._options = options
        self._pairing = Pairing(
            options.edges, Answer.ANY_EDGE if options.any_edge_answers else Answer.FOLLOWS
        )
        self._distances = Distances(options.edges)
        self._builder: WindowBuilder | None = None
        self._first_ns = 0
        self._last_ns = 0
        self._edges = 0
        self.table = WindowTable()

    def add(self, block: EdgeBlock) -> None:
        """Add a block of edges. Raises InputError if their times are impossible."""
        if not len(block.times_ns):
            return
        if self._builder is None:
            self._first_ns = int(block.times_ns[0])
            self._builder = WindowBuilder(0, self._first_ns)
        self._last_ns = int(block.times_ns[-1])
        self._edges += len(block.times_ns)
        if self._last_ns - self._first_ns > LONGEST_NS:
            raise InputError("the file's times span more than a year: is the unit wrong? (--time-unit)")
        if self._options.answer is not None:
            responses = self._pairing.add(block)
            self._take(
                self._builder,
                responses.stimulus_ns,
                responses.response_ns,
                responses.missed_ns,
                responses.unanswered_ns,
            )
        else:
            times_ns, distances_ns = self._distances.add(block)
            self._take(self._builder, times_ns, distances_ns - self._options.nominal_ns)

    def _take(self, builder: WindowBuilder, *values: Times) -> None:
        for window in builder.add(*values):
            self.table.add(window)

    def end(self, name: str) -> WindowBuilder:
        """Finish and return the samples. Raises InputError if there are none."""
        builder = self._builder
        if builder is None:
            raise InputError(
                f"{name}: no edge was found on "
                f"{'these channels' if self._options.answer else 'this channel'}; check --threshold"
            )
        totals = builder.totals()
        if totals.count == 0:
            why = (
                "no stimulus has an answer: are the two channels the other way round?"
                if self._options.answer
                else "fewer than two edges were found"
            )
            toggled = (
                " An answer that is toggled stays inverted after a lost one: --any-edge pairs only by time"
            )
            raise InputError(f"{name}: {why}{toggled if self._pairing.opposite else ''}")
        for window in builder.close(self._last_ns + 1):
            self.table.add(window)
        return builder

    def marks(self, unreadable: int) -> list[Mark]:
        """Return marks for the reasons why figures are doubtful."""
        marks: list[Mark] = []
        if unreadable:
            detail = (
                f"{plural(unreadable, 'row')} of the file without numbers left out: edges may be "
                "missing there"
            )
            marks.append(MarkKind.ROWS_UNREADABLE.mark(detail))
        if unpaired := self._pairing.extra - self._pairing.opposite:
            detail = (
                f"{plural(unpaired, 'edge')} of the answer's channel without a stimulus: noise, or a "
                "threshold that is crossed more than once"
            )
            marks.append(MarkKind.EXTRA_EDGES.mark(detail))
        if self._pairing.opposite:
            edges = plural(self._pairing.opposite, "edge")
            detail = (
                f"is the answer toggled? Then give --any-edge: {edges} went to the other level than the "
                "stimulus and did not count as its answer"
            )
            marks.append(MarkKind.ANSWERS_INVERTED.mark(detail))
        if self._options.answer is not None and self._pairing.open:
            detail = (
                "the file ends before the last stimulus has an answer: it counts neither as answered nor as "
                "missed"
            )
            marks.append(MarkKind.LAST_UNANSWERED.mark(detail))
        return marks

    @property
    def span_ns(self) -> tuple[int, int]:
        """Times of the first and the last edge."""
        return self._first_ns, self._last_ns


def _step(
    file: EdgeFile, options: EdgeOptions, measured: _Measured, builder: WindowBuilder, time: str
) -> tuple[Step, Any]:
    probe, metric = ("response", "response") if options.answer is not None else ("periodic", "jitter")
    edges = {"edges": options.edges.name.lower()}
    parameters: dict[str, Any] = (
        {"stimulus": options.stimulus, "answer": options.answer}
        if options.answer is not None
        else {"period_ns": options.period_ns}
    )
    thresholds = {"threshold_volts": options.threshold, "hysteresis_volts": options.hysteresis}
    key = StepKey(
        probe=probe,
        parameters=OpenParameters(**parameters, **edges),
        load=UNKNOWN,
        deployment=UNKNOWN,
        targets={"self": UNKNOWN},
        repeat=0,
        tool=TOOL,
    )
    windows = measured.table.windows()
    info = [{"series": 0, "metric": metric, "unit": "ns", "labels": {"role": "instrument"}}]
    summary = summarise_step(
        windows, info, [summary_line(0, builder.totals(), builder.warm_up()).model_dump()]
    )
    time_unknown = MarkKind.TIME_UNKNOWN.mark(
        "the file does not contain the time of the measurement: its modification time is used"
    )
    first_ns, last_ns = measured.span_ns
    step = Step(
        id=f"01-{probe}-{TOOL}",
        key=key,
        tool=f"{TOOL} ({file.style})",
        started=time,
        ended=time,
        start_ns=first_ns,
        end_ns=last_ns,
        end_reason="imported",
        parameters={
            **parameters,
            **edges,
            **{name: value for name, value in thresholds.items() if value is not None},
            "channels": file.channels,
        },
        cpus=[],
        load=LoadReport(name=UNKNOWN),
        series=summary.series,
        total=summary.total,
        outliers=builder.outliers,
        marks=[*measured.marks(file.unreadable), time_unknown, *summary.marks],
    )
    return step, windows


def import_edges(
    source: Path,
    out: Path,
    options: EdgeOptions,
    *,
    command: list[str],
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Make a record in the folder `out` from the file `source` (CSV or VCD of any size); return its folder.

    `progress` is called with the bytes read and the file's size. Raises InputError if the file is of another
    kind or lacks a channel, and the errors of RecordWriter.
    """
    options.check()
    file = EdgeFile.open(source, time_unit=options.time_unit, sample_rate_hz=options.sample_rate_hz)
    channels = [
        file.channel(options.stimulus),
        *([] if options.answer is None else [file.channel(options.answer)]),
    ]
    if len(set(channels)) < len(channels):
        raise InputError(
            f"--stimulus and --answer name the same channel, {file.channels[channels[0]]}; "
            f"{source.name} has {', '.join(file.channels)}"
        )
    measured = _Measured(options)
    for block in file.edges(
        channels, threshold=options.threshold, hysteresis=options.hysteresis, progress=progress
    ):
        measured.add(block)
    builder = measured.end(source.name)
    now = datetime.now(UTC)
    time = f"{datetime.fromtimestamp(source.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}"
    step, windows = _step(file, options, measured, builder, time)
    with RecordWriter.at_once(out, host=UNKNOWN, name=TOOL, now=now) as writer:
        run = Run(
            id=writer.id,
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            state="partial",
            rtgauge=rtgauge.__version__,
            command=command,
            plan={"name": TOOL, "imported_from": source.name},
            targets=[UNKNOWN],
            planned=[step.key],
        )
        writer.write_run(run)
        writer.write_system(UNKNOWN, Facts(host=None))
        writer.commit_step(step, windows)
        return writer.finish("complete")
