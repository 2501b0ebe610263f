# SPDX-License-Identifier: MIT
"""Imports a file from an oscilloscope or logic analyser, as responses or as half-periods of a toggled
line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.facts import Facts
from rtgauge.record.model import LoadReport, Mark, Step, StepKey
from rtgauge.record.probe_parameters import OpenParameters
from rtgauge.record.stream import SeriesLine
from rtgauge.record.summary import summarise_step
from rtgauge.record.window_table import WindowTable
from rtgauge.units import plural
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.imported_record import modification_time, write_imported
from rtgauge_ext.importers.imported_step import StepAndWindows
from rtgauge_ext.instrument.edge_file import EdgeBlock, EdgeFile, Pairing
from rtgauge_ext.instrument.edges import Distances
from rtgauge_ext.instrument.messages import AnswerEdges, Edges
from rtgauge_ext.instrument.window_builder import WindowBuilder, summary_line

LONGEST_NS = 366 * 86_400 * 10**9
"""The longest time from the first to the last edge. A longer time shows that the unit is wrong."""
UNKNOWN = "unknown"
TOOL = "oscilloscope"


@dataclass(frozen=True)
class EdgeOptions:
    """How to interpret a file's edges.

    With `answer` (a channel), the file gives responses from an edge of `stimulus` to an edge of `answer`.
    Without it, the file gives half-periods of `stimulus` minus half of `period_ns`, or whole periods if
    `edges` is rising or falling.
    """

    stimulus: str
    answer: str | None = None
    period_ns: int | None = None
    edges: Edges = Edges.BOTH
    any_edge_answers: bool = False

    def check(self) -> None:
        """Raise InputError if the options contradict each other."""
        if self.answer is None and self.period_ns is None:
            answer = "give --answer CHANNEL to measure from stimulus to answer"
            period = "--period TIME (the nominal period of the line) to measure its half-periods"
            raise InputError(f"{answer}, or {period}")
        if self.answer is not None and self.period_ns is not None:
            raise InputError(
                "--period measures the half-periods of a single line; leave out --answer or --period"
            )
        if self.answer is None and self.any_edge_answers:
            raise InputError("--any-edge needs --answer")
        if self.period_ns is not None and not 2 <= self.period_ns <= LONGEST_NS:
            raise InputError("--period must be at least 2ns and at most a year")

    @property
    def nominal_ns(self) -> int:
        """The nominal distance of edges (ns), with which measured distances are compared."""
        return (self.period_ns or 0) // (2 if self.edges is Edges.BOTH else 1)


class _Measured:
    """Collects the measurements from all edges so far."""

    def __init__(self, options: EdgeOptions) -> None:
        self._options = options
        answer = AnswerEdges.ANY_EDGE if options.any_edge_answers else AnswerEdges.FOLLOWS
        self._pairing = Pairing(options.edges, answer)
        self._distances = Distances(options.edges)
        self._builder: WindowBuilder | None = None
        self._first_ns = 0
        self._last_ns = 0
        self.table = WindowTable()

    def add(self, block: EdgeBlock) -> None:
        """Add a block of edges. Raises InputError if their times are impossible."""
        if not len(block.times_ns):
            return
        if self._builder is None:
            self._first_ns = int(block.times_ns[0])
            self._builder = WindowBuilder(0, self._first_ns)
        self._last_ns = int(block.times_ns[-1])
        if self._last_ns - self._first_ns > LONGEST_NS:
            raise InputError("the file's times span more than a year; CSV needs seconds, VCD a time scale")
        if self._options.answer is not None:
            pairs = self._pairing.add(block)
            windows = self._builder.add(
                pairs.stimulus_ns, pairs.response_ns, pairs.missed_ns, pairs.unanswered_ns
            )
        else:
            times_ns, distances_ns = self._distances.add(block.times_ns, block.high)
            windows = self._builder.add(times_ns, distances_ns - self._options.nominal_ns)
        for window in windows:
            self.table.add(window)

    def end(self, name: str) -> WindowBuilder:
        """Close the last window, and return the builder with the totals. Raises InputError if there are no
        samples.
        """
        builder = self._builder
        if builder is None:
            channels = "these channels" if self._options.answer else "this channel"
            raise InputError(
                f"{name}: rtgauge did not find edges on {channels}; check the channel and the threshold"
            )
        if builder.totals().count == 0:
            why = "rtgauge found fewer than two edges; check the channel and the threshold"
            if self._options.answer:
                why = "none of the stimuli has an answer; did you swap the two channels?"
            if self._pairing.opposite:
                why += " If the answer line is toggled, it stays inverted after a lost answer: "
                why += "give --any-edge, so that only the time of an edge counts"
            raise InputError(f"{name}: {why}")
        for window in builder.close(self._last_ns + 1):
            self.table.add(window)
        return builder

    def marks(self) -> list[Mark]:
        """Return a mark for each reason to doubt the figures."""
        marks: list[Mark] = []
        if unpaired := self._pairing.extra - self._pairing.opposite:
            edges = f"{plural(unpaired, 'edge')} on the answer channel came without a stimulus"
            cause = "the line is noisy, or an edge crosses the threshold more than once"
            marks.append(ImportMarkKind.EXTRA_EDGES.mark(f"{edges}: {cause}"))
        if self._pairing.opposite:
            edges = f"{plural(self._pairing.opposite, 'edge')} went in the other direction"
            toggled = "give --any-edge if the answer line is toggled"
            marks.append(ImportMarkKind.ANSWERS_INVERTED.mark(f"{toggled}: {edges} and did not count"))
        if self._options.answer is not None and self._pairing.open:
            marks.append(ImportMarkKind.LAST_UNANSWERED.mark())
        return marks

    @property
    def span_ns(self) -> tuple[int, int]:
        """The times (ns) of the first and the last edge."""
        return self._first_ns, self._last_ns


def _step(
    file: EdgeFile, options: EdgeOptions, measured: _Measured, builder: WindowBuilder, time: str
) -> StepAndWindows:
    probe, metric = ("response", "response") if options.answer is not None else ("periodic", "jitter")
    parameters: dict[str, Any] = {"period_ns": options.period_ns}
    if options.answer is not None:
        parameters = {"stimulus": options.stimulus, "answer": options.answer}
    parameters["edges"] = options.edges.name.lower()
    key = StepKey(
        probe=probe,
        parameters=OpenParameters(**parameters),
        load=UNKNOWN,
        deployment=UNKNOWN,
        targets={"self": UNKNOWN},
        repeat=0,
        tool=TOOL,
    )
    windows = measured.table.windows()
    series = SeriesLine(type="series", series=0, metric=metric, unit="ns", labels={"role": "instrument"})
    summary = summarise_step(windows, [series], [summary_line(0, builder.totals(), builder.warm_up())])
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
            "channels": file.channels,
        },
        cpus=[],
        load=LoadReport(name=UNKNOWN),
        series=summary.series,
        total=summary.total,
        outliers=builder.outliers,
        marks=[*measured.marks(), ImportMarkKind.TIME_UNKNOWN.mark(), *summary.marks],
    )
    return StepAndWindows(step, windows)


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
    file = EdgeFile.open(source)
    names = [options.stimulus] if options.answer is None else [options.stimulus, options.answer]
    channels = [file.channel(name) for name in names]
    if len(set(channels)) < len(channels):
        same = f"--stimulus and --answer name the same channel, {file.channels[channels[0]]}"
        raise InputError(f"{same}; {source.name} has {', '.join(file.channels)}")
    measured = _Measured(options)
    for block in file.edges(channels, progress=progress):
        measured.add(block)
    builder = measured.end(source.name)
    step = _step(file, options, measured, builder, modification_time(source))
    return write_imported(source, out, TOOL, command, {UNKNOWN: Facts(host=None)}, [step])
