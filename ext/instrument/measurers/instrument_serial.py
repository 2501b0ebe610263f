# SPDX-License-Identifier: MIT
"""Measures the outer view with rtgauge's own instrument: loopback, warm-up, the measured phase, and the
instrument's own totals.
"""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from rtgauge.errors import MeasureError
from rtgauge.record.model import (
    ClockDriftReport,
    ExactFigures,
    InstrumentReport,
    LeftOut,
    Mark,
    StepKey,
)
from rtgauge.record.samples import SamplesHeader
from rtgauge.record.stream import Summary
from rtgauge.record.window_table import WindowTable
from rtgauge.runner.context import StepContext, StepInProgress
from rtgauge.runner.put_together import EngineMeasurement
from rtgauge.target.target_protocol import Target
from rtgauge.units import NS_PER_S, plural
from rtgauge_ext.instrument.configuration import configuration_of
from rtgauge_ext.instrument.edges import Distances, ResponseFollower, Times
from rtgauge_ext.instrument.instrument_marks import InstrumentMarkKind
from rtgauge_ext.instrument.instrument_session import Loopback, Session, self_test
from rtgauge_ext.instrument.measurers.instrument import (
    DIED,
    OUTER_TABLE,
    InstrumentResult,
    InstrumentStep,
    lost_mark,
    measure_both,
    try_engine,
)
from rtgauge_ext.instrument.messages import (
    Events,
    InstrumentConfiguration,
    InstrumentHistogram,
    InstrumentState,
    Mode,
)
from rtgauge_ext.instrument.samples_file import SamplesFile
from rtgauge_ext.instrument.window_builder import Phase, PhaseTotals, WindowBuilder, summary_line
from rtgauge_ext.signal.clock_offset import clock_offset
from rtgauge_ext.signal.parameters import signal_step
from rtgauge_ext.signal.signal_marks import SignalMarkKind

LOOPBACK_COUNT = 1_000
"""Number of loopback stimuli before each step; they take about 30 ms."""
WARM = "warm"
"""The end reason of a warm-up that the measured phase follows."""
NO_ANSWER_AFTER = 10
"""How many stimuli without an answer, or missing edges of a toggled line, end the measurement."""
arms = True
goes_on_alone = False


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None: the engine comes with rtgauge, and a missing instrument ends the run anyway."""
    return None


def try_arm(context: StepContext) -> None:
    """Check that the instrument answers, then arm and stop the engine.

    Raises InputError or MeasureError if either refuses.
    """
    Session.open(str(signal_step(context.key).parameters.instrument)).close()
    try_engine(context)


def measure(step: StepInProgress) -> EngineMeasurement:
    """Measure with an engine and an instrument. Raises as `measure_both` does."""
    step.context.progress.phase("the instrument is prepared")
    with closing(Session.open(str(signal_step(step.key).parameters.instrument))) as session:
        # Before the engine starts, because this makes edges on the line.
        loopback = self_test(session, inside=True, count=LOOPBACK_COUNT)
        return measure_both(step, lambda begun: _outer_view(begun, session, loopback))


class _Recorder:
    """Collects the instrument's stream into windows, and into a samples file if the step keeps samples."""

    def __init__(
        self,
        step: InstrumentStep,
        session: Session,
        configuration: InstrumentConfiguration,
        samples: SamplesFile | None,
    ) -> None:
        self._step = step
        self._session = session
        self._configuration = configuration
        self._samples = samples
        self._tick_ns = session.identity.tick_ns
        self._offset = clock_offset(time.monotonic_ns, step.context.target.monotonic_ns)
        self._responses: ResponseFollower | None = None
        self._distances: Distances | None = None
        self._start_ns = 0
        self._missed_before = 0
        self._phase: Phase = "measure"
        self.builder = WindowBuilder(step.series, 0)
        self.table = WindowTable(step.folder, OUTER_TABLE)
        self.measured_from_ns = 0
        self.clock_uncertainty_ns = 0
        self.orphans = 0

    def start(self, phase: Phase, configuration: InstrumentConfiguration) -> None:
        """Start the instrument, and find the target's time at which the instrument's clock is 0."""
        self._session.configure(configuration)
        before_ns = time.monotonic_ns()
        self._session.start()
        after_ns = time.monotonic_ns()
        self._start_ns = (before_ns + after_ns) // 2 - self._offset.ns
        self.clock_uncertainty_ns = (after_ns - before_ns) // 2 + self._offset.uncertainty_ns
        if phase == "measure":
            self.measured_from_ns = self._start_ns
        self._phase = phase
        if configuration.mode is Mode.PERIODIC:
            self._distances = Distances(configuration.edges)
        else:
            self._responses = ResponseFollower(self._tick_ns, configuration.limit_ns, configuration.edges)
        self.builder.begin(phase, self._start_ns)
        self._missed_before = self.builder.totals(phase).missed

    def listen(self, *, for_ns: float | None) -> str:
        """Collect events until the phase is over; return the reason. `for_ns`: the warm-up's length."""
        reason: str | None = None
        for arrival in self._session.arrivals():
            if isinstance(arrival, Events):
                self._take(arrival)
                continue
            if reason is not None:
                continue
            elapsed_ns = arrival.now * self._tick_ns
            reason = self._step.over(0 if self._phase == "warm-up" else elapsed_ns) or (
                WARM if for_ns is not None and elapsed_ns >= for_ns else None
            )
            if reason is not None:
                self._session.stop()
            else:
                self._check(arrival)
        return reason or "count"

    def close(self, state: InstrumentState | None) -> None:
        """End the phase. `state`: the instrument's last counters; None if the instrument was lost."""
        if self._responses is not None:
            if (
                state is not None
                and state.missed > self.builder.totals(self._phase).missed - self._missed_before
            ):
                last = self._responses.last_missed()
                self._add(last.stimulus_ns, last.response_ns, last.missed_ns, last.unanswered_ns)
            self.orphans += self._responses.orphans
        end_ns = None if state is None else self._start_ns + round(state.now * self._tick_ns)
        for window in self.builder.close(end_ns):
            self._step.context.progress.window(window)
            self.table.add(window)

    def _take(self, events: Events) -> None:
        if self._responses is not None:
            responses = self._responses.add(events)
            self._add(
                responses.stimulus_ns, responses.response_ns, responses.missed_ns, responses.unanswered_ns
            )
        elif self._distances is not None:
            answers, gap = events.answer_line, events.missing > 0
            ticks = events.ticks[answers].astype(np.int64)
            times_ns, distances_ns = (
                np.rint(part * self._tick_ns).astype(np.int64)
                for part in self._distances.add(ticks, events.high[answers], gap=gap)
            )
            self._add(times_ns, distances_ns - self._configuration.nominal_ns)

    def _add(self, times_ns: Times, values_ns: Times, *missed: Times) -> None:
        placed_ns = times_ns + self._start_ns
        if missed:
            missed = (missed[0] + self._start_ns, missed[1])
        for window in self.builder.add(placed_ns, values_ns, *missed):
            self._step.context.progress.window(window)
            self.table.add(window)
        if self._samples is not None and len(values_ns):
            self._samples.append(np.stack([placed_ns, values_ns], axis=1))

    def _check(self, state: InstrumentState) -> None:
        """Raise MeasureError if nothing at the other end of the wires answers."""
        if self._responses is not None and state.answers == 0 and state.missed >= NO_ANSWER_AFTER:
            heard = (
                f"{plural(state.edges, 'edge')} came, but not as an answer"
                if state.edges
                else ("no edge came")
            )
            raise MeasureError(
                f"none of the instrument's {state.stimuli} stimuli had an answer ({heard}); check the wires "
                f"(GND, stimulus, answer), the levels and --path"
            )
        expected_ns = NO_ANSWER_AFTER * self._configuration.nominal_ns + NS_PER_S
        if self._distances is not None and state.edges == 0 and state.now * self._tick_ns > expected_ns:
            raise MeasureError(
                "the instrument does not see any edge of the toggled line; check the wires (GND, answer "
                "pin), the levels and --path"
            )


def _outer_view(step: InstrumentStep, session: Session, loopback: Loopback) -> InstrumentResult:
    """Measure until the step is over.

    Raises MeasureError if the instrument refuses or is lost before anything was measured.
    """
    parameters = signal_step(step.key).parameters
    configuration = configuration_of(parameters)
    if parameters.get("seed") is None:
        configuration = replace(configuration, seed=secrets.randbelow(2**32))
    with ExitStack() as stack:
        samples = None
        if parameters.samples and step.makes_stimuli:
            samples = stack.enter_context(SamplesFile(step.folder / f"samples-{step.series}.i64"))
        recorder = _Recorder(step, session, configuration, samples)
        reason, state, histogram, lost = _run(recorder, session, step, configuration)
        if samples is not None:
            start_ns = recorder.measured_from_ns - parameters.warm_up_ns
            lasts_ns = 0 if parameters.cycles else parameters.duration_ns
            samples.finish(
                SamplesHeader(
                    step.series,
                    None,
                    0,
                    max(0, start_ns),
                    parameters.warm_up_ns,
                    duration_ns=lasts_ns,
                )
            )
    totals = recorder.builder.totals()
    exact = None if histogram is None else _exact(histogram, session, configuration)
    summary = _summary(step.series, recorder, state, histogram, exact, session)
    drift = session.clock.drift()
    report = InstrumentReport(
        address=str(parameters.instrument),
        id=session.identity.unique_id,
        firmware=session.identity.text,
        resolution_ns=session.identity.tick_ns,
        configuration=_written(configuration),
        series=[step.series],
        loopback_ns=loopback.offset_ns,
        wire_offset_ns=parameters.wire_offset_ns,
        counters={} if state is None else _counters(state),
        exact=exact,
        drift=None if drift is None else ClockDriftReport(**asdict(drift)),
        clock_offset_ns=recorder.measured_from_ns,
        clock_uncertainty_ns=recorder.clock_uncertainty_ns,
    )
    marks = [*([] if lost is None else [lost_mark(lost)]), *_marks(state, totals, histogram)]
    return InstrumentResult(recorder.table, summary, recorder.builder.outliers, marks, report, reason)


def _warm_up_stimuli(key: StepKey) -> int:
    """Return how many stimuli take about the warm-up time. The warm-up then ends after an answer.

    The number is even, so that the line ends low and releasing it makes no edge.
    """
    probe, parameters = signal_step(key)
    return 2 * max(1, round(parameters.warm_up_ns / probe.cycle_ns(parameters) / 2))


class InstrumentEnd(NamedTuple):
    """How the measurement ended: the reason, the last counters, the instrument's histogram, and the error if
    the instrument was lost.
    """

    reason: str
    state: InstrumentState | None = None
    histogram: InstrumentHistogram | None = None
    lost: MeasureError | None = None


def _run(
    recorder: _Recorder, session: Session, step: InstrumentStep, configuration: InstrumentConfiguration
) -> InstrumentEnd:
    """Run the warm-up and the measured phase."""
    warm_up_ns = step.parameters.warm_up_ns
    first: Phase = "warm-up" if warm_up_ns else "measure"
    if step.makes_stimuli:
        step.begin()
        recorder.start(
            first, replace(configuration, count=_warm_up_stimuli(step.key)) if warm_up_ns else configuration
        )
    else:
        # The instrument must be watching the line before the first edge.
        recorder.start(first, configuration)
        step.begin()
    if warm_up_ns:
        reason = recorder.listen(for_ns=None if step.makes_stimuli else warm_up_ns)
        recorder.close(session.state)
        if reason not in (WARM, "count"):
            return InstrumentEnd(reason)
        recorder.start("measure", configuration)
    try:
        reason = recorder.listen(for_ns=None)
        state = session.current_state()
        recorder.close(state)
        return InstrumentEnd(reason, state, session.histogram())
    except MeasureError as error:
        if recorder.builder.totals().count == 0:
            raise
        state = session.state
        recorder.close(None)
        return InstrumentEnd(DIED, state, lost=error)


def _written(configuration: InstrumentConfiguration) -> dict[str, object]:
    """Return the configuration in the words of the instrument's format."""
    written = asdict(configuration)
    return {
        name: value.name.lower() if name in ("mode", "edges", "answer", "timing", "pull") else value
        for name, value in written.items()
    }


def _counters(state: InstrumentState) -> dict[str, int]:
    named = asdict(state)
    return {name: int(value) for name, value in named.items() if name not in ("run", "mode", "now")}


def _ticks_to_ns(session: Session, configuration: InstrumentConfiguration) -> tuple[float, float]:
    """Return a tick's length (ns), and the nominal time in whole ticks minus the nominal time (ns; 0 for
    responses).
    """
    ticks = session.identity.ticks_per_second
    nominal = (
        configuration.nominal_ns * ticks // NS_PER_S * session.identity.tick_ns - configuration.nominal_ns
    )
    return session.identity.tick_ns, nominal if configuration.mode is Mode.PERIODIC else 0.0


def _exact(
    histogram: InstrumentHistogram, session: Session, configuration: InstrumentConfiguration
) -> ExactFigures:
    tick_ns, added_ns = _ticks_to_ns(session, configuration)

    def of(ticks: float | None) -> float | None:
        return None if ticks is None else ticks * tick_ns + added_ns

    std = histogram.standard_deviation
    return ExactFigures(
        count=histogram.count,
        min_ns=of(histogram.minimum),
        mean_ns=of(histogram.mean),
        std_ns=None if std is None else std * tick_ns,
        max_ns=of(histogram.maximum),
    )


def _summary(
    series: int,
    recorder: _Recorder,
    state: InstrumentState | None,
    histogram: InstrumentHistogram | None,
    exact: ExactFigures | None,
    session: Session,
) -> Summary:
    """Return the instrument's own totals if its stream is complete; the windows must then agree with them.
    Otherwise return the windows' totals.
    """
    totals, warm_up = recorder.builder.totals(), recorder.builder.warm_up()
    if state is None or histogram is None or exact is None:
        return summary_line(series, totals, warm_up)
    complete = not (
        state.events_dropped
        or state.edges_lost
        or recorder.orphans
        or session.frames_missing
        or session.frames_damaged
    )
    if not complete or exact.min_ns is None or exact.max_ns is None or exact.mean_ns is None:
        return summary_line(series, totals, warm_up, lost=max(0, histogram.count - totals.count))
    own = PhaseTotals(
        histogram.count,
        state.missed,
        round(exact.min_ns),
        round(exact.max_ns),
        round(exact.mean_ns * histogram.count),
        totals.m2_ns2,
    )
    return summary_line(series, own, warm_up)


def _marks(
    state: InstrumentState | None, totals: PhaseTotals, histogram: InstrumentHistogram | None
) -> list[Mark]:
    if state is None:
        return []
    marks: list[Mark] = []
    if state.edges_lost:
        detail = (
            f"edges came faster than the instrument can count; lost edges: at least {state.edges_lost}; "
            f"stimuli that awaited an answer and are not counted: {state.voided}"
        )
        marks.append(InstrumentMarkKind.EDGES_LOST.mark(detail))
    if histogram is not None and histogram.count != totals.count and not state.edges_lost:
        detail = (
            f"this machine read the instrument too slowly, so {histogram.count - totals.count} of "
            f"{histogram.count} values did not arrive; only the instrument's own figures include them"
        )
        marks.append(InstrumentMarkKind.STREAM_GAPS.mark(detail))
    if state.extra:
        detail = (
            f"{plural(state.extra, 'edge')} came without a stimulus; the line is noisy, or something else "
            f"drives it"
        )
        marks.append(SignalMarkKind.NOISE.mark(detail))
    if state.glitches:
        detail = (
            f"{plural(state.glitches, 'edge')} came in pulses no longer than a tick of the instrument; "
            f"check the wires and their ground"
        )
        marks.append(InstrumentMarkKind.GLITCHES.mark(detail))
    return marks
