# SPDX-License-Identifier: MIT
"""Turns a measured step's results into the record's step: summaries, marks, task counts."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rtgauge.errors import MeasureError
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.probe_registry import AnyProbe
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import (
    Changes,
    InstrumentReport,
    LoadReport,
    Mark,
    PeerReport,
    Result,
    SeriesSummary,
    Step,
    StepKey,
)
from rtgauge.record.stream import StreamResult
from rtgauge.record.task_counts import run_segments, task_counts
from rtgauge.record.watched_loop import loops_of
from rtgauge.record.windows import Windows, largest, least
from rtgauge.runner.context import StepInProgress, now_utc
from rtgauge.runner.interrupt import Abandoned
from rtgauge.system.cpu_counters import frequency_marks
from rtgauge.system.runtime import runtime_of
from rtgauge.system.scheduling import throttled
from rtgauge.system.step_changes import marks as change_marks
from rtgauge.target.engine_path import engine_hash
from rtgauge.target.target_protocol import Guarded, Target
from rtgauge.units import plural

DIED = "died"
"""The end reason of a step whose engine ended without saying why."""
FETCHED_A_SECOND, FETCHED_FIXED = 16 << 20, 64 << 20
"""The most bytes of files that a target may send: per second and series of a step (a million timed samples),
plus a fixed amount.
"""


@dataclass(frozen=True)
class EndedStep:
    """A measured step whose load has ended."""

    id: str
    begun: StepInProgress
    load: LoadReport
    changes: Changes
    """How the target's counters and settings changed during the step."""
    took_s: float


class StepResult(NamedTuple):
    """The record's step, and its windows."""

    step: Step
    windows: Windows


class MeasurerResult(Protocol):
    """The result of any way to measure."""

    def settle(self, step: EndedStep) -> StepResult:
        """Return the record's step and its windows."""
        ...


@dataclass(frozen=True)
class EngineMeasurement:
    """The result of one or more of rtgauge's engines, or of an engine and an instrument, combined."""

    result: StreamResult
    windows: Windows
    programs: tuple[Guarded, ...]
    files_on: Target
    """The target that has the engine's files that the step keeps."""
    peer: PeerReport | None = None
    instrument: InstrumentReport | None = None
    outer_samples: bool = False
    """Whether the instrument made the raw samples. The engine is then a slave, which keeps none."""
    from_histogram: bool = False
    """Whether the instrument gave a histogram instead of samples. Values may then be in no bin, and there are
    no totals to check the windows with.
    """
    end_reason: str | None = None
    """Why the step ended, if it was not the engine that ended it."""

    @property
    def sampled(self) -> set[int]:
        """The series that may have raw samples; in a step with two ends, only the master's."""
        numbers = {line.series for line in self.result.series}
        if self.instrument is not None:
            outer = set(self.instrument.series)
            return outer if self.outer_samples else numbers - outer
        if self.peer is None:
            return numbers
        return set(self.peer.series) if self.peer.role == "master" else numbers - set(self.peer.series)

    def settle(self, step: EndedStep) -> StepResult:
        """Return the record's step and its windows; move the engine's files to the step's folder.

        Raises MeasureError if the engine sent nothing, Abandoned if the user ended the run before anything
        was measured.
        """
        begun = step.begun
        if not len(self.windows) and begun.context.interrupt.requested:
            raise Abandoned
        assembled = _assemble(step, self)
        fastest_bytes = FETCHED_FIXED + round(step.took_s * max(len(assembled.series), 1) * FETCHED_A_SECOND)
        self.files_on.fetch(begun.folder, fastest_bytes)
        if begun.key.parameters.get("samples"):
            from rtgauge.record.samples_summary import summarise_samples, with_samples

            assembled.series = [
                with_samples(series, summarise_samples(begun.folder / f"samples-{series.series}.i64"))
                if series.series in self.sampled
                else series
                for series in assembled.series
            ]
        return StepResult(assembled, self.windows)


def _assemble(ended: EndedStep, measured: EngineMeasurement) -> Step:
    """Return the record's step. Raises MeasureError if the engine sent nothing."""
    from rtgauge.record.explain_report import explain_marks, explain_report
    from rtgauge.record.summary import summarise_step

    begun = ended.begun
    context, key, result, windows = begun.context, begun.key, measured.result, measured.windows
    outer = measured.instrument.series if measured.instrument is not None and measured.from_histogram else []
    summary = summarise_step(windows, result.series, result.summaries, without_summary=outer)
    hello = result.hello
    if hello is None:
        raise MeasureError("the engine sent nothing; use the engine that came with this rtgauge")
    measuring = windows.are_of(None)
    explained = explain_report(result)
    marks = [
        *_stream_marks(ended.begun, measured),
        *explain_marks(explained),
        *summary.marks,
        *_end_marks(measured, key, context.interrupt.requested),
        *load_marks(ended.load),
    ]
    step = Step(
        id=ended.id,
        key=key,
        tool=f"rtgauge-engine {hello.engine}"
        if hello.runtime == "linux"
        else f"rtgauge-engine-{hello.runtime} {hello.engine}",
        engine_sha256=engine_hash(context.target.machine, key.rt),
        boot_id=hello.boot_id or None,
        started=begun.started,
        ended=now_utc(),
        start_ns=least(windows.start_ns[measuring]),
        end_ns=largest(windows.end_ns[measuring]),
        end_reason=measured.end_reason or (result.end.reason if result.end is not None else DIED),
        parameters=hello.parameters
        | {name: shown for name, shown in (("space", key.space), ("rt", key.rt)) if key.parameters.get(name)},
        cpus=hello.cpus,
        cpus_not_measured=hello.cpus_not_measured,
        clock=hello.clock | ({"busy_loop": hello.busy_loop} if hello.busy_loop else {}),
        calibrations=result.calibrations or context.on.calibrations,
        load=ended.load,
        peer=measured.peer,
        instrument=measured.instrument,
        series=summary.series,
        total=summary.total,
        outliers=result.outliers,
        results=result.results,
        explain=explained,
        marks=marks,
        changes=ended.changes,
        tasks=task_counts(summary.series, windows),
        segments=run_segments(result),
    )
    step.marks += _step_marks(step, ended)
    return step


def _stream_marks(begun: StepInProgress, measured: EngineMeasurement) -> list[Mark]:
    """Return the marks of the engine and its connection, and the mark that says why nothing is explained."""
    marks = measured.result.marks + _connection_marks(
        measured.programs, picked_up=begun.picked_up is not None
    )
    if (why := begun.context.not_explained) is None:
        return marks
    detail = f"latencies are not explained, because the kernel's events cannot be recorded here ({why})"
    others = [mark for mark in marks if mark.kind is not MarkKind.NOT_EXPLAINED]
    return [*others, MarkKind.NOT_EXPLAINED.mark(detail)]


def _step_marks(step: Step, ended: EndedStep) -> list[Mark]:
    """Return the marks that the step's own figures and the changes on the machine give it."""
    facts = ended.begun.context.facts
    return [
        *_nothing_marks(step, probes.get(step.key.probe)),
        *_early_marks(step),
        *_program_marks(step),
        *frequency_marks(step.results),
        *change_marks(ended.changes, step.cpus, step.results, explained=step.explain is not None),
        # an emulator can cause a latency as long as the kernel's limits
        *([] if facts.machine.emulated else _throttle_marks(step, facts)),
    ]


def load_marks(report: LoadReport) -> list[Mark]:
    """Return a mark for each of the load's programs that died."""
    return [
        MarkKind.LOAD_DIED.mark(
            f"{part.program} of the load {report.name} ended too early ({part.ended_early})"
        )
        for part in report.parts
        if part.ended_early is not None
    ]


def _end_marks(measured: EngineMeasurement, key: StepKey, requested: bool) -> list[Mark]:
    result = measured.result
    if measured.end_reason is not None:  # the instrument's reason, because the instrument stopped the engine
        requested = requested and measured.end_reason == "stopped"
        return [MarkKind.STOPPED.mark("the user ended the step early")] if requested else []
    if result.end is None:
        return [
            MarkKind.ENGINE_DIED.mark(
                "the engine ended too early; everything that it had measured by then is kept"
            )
        ]
    if result.end.reason == "stopped" and not requested:
        detail = (
            "the engine ended because it no longer heard from rtgauge (suspended by Ctrl-Z or with its "
            "machine), or because the run lost its guard; everything that it had measured by then is kept"
        )
        return [MarkKind.LEASE_LOST.mark(detail)]
    if result.end.reason == "stopped":
        return [MarkKind.STOPPED.mark("the user ended the step early")]
    if result.end.reason == "threshold":
        limit = key.parameters.get("stop_at_ns")
        return [MarkKind.THRESHOLD.mark(f"the step ended at a latency above {limit} ns, as requested")]
    return []


def _nothing_marks(step: Step, probe: AnyProbe) -> list[Mark]:
    """Return a mark if a step measured no value although nothing failed."""
    if (
        probe.when_nothing is None
        or not step.series
        or any(series.count or series.missed for series in step.series)
        or any(mark.name == probe.nothing_mark for mark in step.marks)
        or any(loop.kind == "poller" for loop in loops_of(step))  # no gap is the best result
    ):
        return []
    cause, remedy = "the task was never activated in the measured time", probe.when_nothing
    if step.end_reason == "program-ended":
        cause = "the program ended before it could be measured"
    elif step.end_reason == DIED:
        cause = "the engine ended before it measured anything"
        remedy = "read the last lines in the step's stream.ndjson, then measure again"
    return [MarkKind.NOTHING_MEASURED.mark(f"{cause}; {remedy}")]


def _early_marks(step: Step) -> list[Mark]:
    """Return a mark if nearly all latencies of a series on a co-kernel are negative."""
    early = [series for series in step.series if series.p99_ns is not None and series.p99_ns < 0]
    if not early or step.key.rt == "linux":
        return []
    which = "every latency" if all((series.max_ns or 0) < 0 for series in early) else "nearly every latency"
    detail = (
        f"{which} is negative, because the timers fire too early: by more than a wake-up takes; calibrate "
        f"with {runtime_of(step.key.rt).early}"
    )
    return [MarkKind.EARLY.mark(detail)]


ENDING_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals by which people end a program."""


def _program_marks(step: Step) -> list[Mark]:
    """Return marks on what happened to a watched program: how it ended, and what changed about its
    threads.
    """
    marks = [
        MarkKind.THREAD_CHANGED.mark(
            f"{result.labels.get('task')}: {result.values.get('what')} {result.values.get('from')} -> "
            f"{result.values.get('to')}, noticed {_seconds(result, 'after_ns')} after the measured phase "
            "began"
        )
        for result in step.results
        if result.name == "change"
    ]
    watched = next((result for result in step.results if result.name == "watched"), None)
    if step.end_reason != "program-ended" or watched is None:
        return marks
    number, limit_us = watched.values.get("signal"), watched.values.get("rttime_us")
    after = _seconds(watched, "signal_after_ns" if isinstance(number, int) else "watched_ns")
    if not isinstance(number, int):
        return [
            MarkKind.PROGRAM_ENDED.mark(f"the program ended {after} after the measured phase began"),
            *marks,
        ]
    how = f"the program was ended by {signal_name(number)} {after} after the measured phase began"
    if isinstance(limit_us, int) and number in {signal.SIGXCPU, signal.SIGKILL}:
        how += (
            f", probably because it exceeded its limit on real-time CPU time (RLIMIT_RTTIME, {limit_us} us)"
        )
    kind = MarkKind.PROGRAM_ENDED if number in ENDING_SIGNALS else MarkKind.PROGRAM_KILLED
    return [kind.mark(how), *marks]


def _seconds(result: Result, name: str) -> str:
    value = result.values.get(name)
    return f"{value / 1e9:.3f} s" if isinstance(value, int) else "an unknown time"


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _connection_marks(programs: Sequence[Guarded], *, picked_up: bool) -> list[Mark]:
    marks: list[Mark] = []
    if picked_up:
        detail = (
            "rtgauge ended or lost its connection during the step; the target continued by itself, and a "
            "later session picked up the step"
        )
        marks.append(MarkKind.PICKED_UP.mark(detail))
    broken = sum(program.reconnections for program in programs)
    if broken:
        detail = (
            f"the connection to the target broke {plural(broken, 'time')} during the step; no measured data "
            f"was lost"
        )
        marks.append(MarkKind.CONNECTION_BROKEN.mark(detail))
    return marks


def _throttle_marks(step: Step, facts: Facts) -> list[Mark]:
    policy = str(step.parameters.get("policy", "other"))
    marks: list[Mark | None] = []
    traced = step.explain is not None and step.explain.shows_servers
    elsewhere = set(step.peer.series if step.peer is not None else ()) | set(
        step.instrument.series if step.instrument is not None else ()
    )
    for series in highest(step):
        if series.series in elsewhere:
            continue
        # A computing time proves nothing: the task may compute for as long as throttling would stop it.
        metric = probes.get(step.key.probe).metric(series.metric)
        longest = series.max_ns if metric is None or metric.is_delay else None
        marks.append(
            throttled(
                series.thread,
                facts,
                max_latency_ns=longest,
                policy=policy,
                series=series.series,
                servers_traced=traced,
            )
        )
    return [mark for mark in marks if mark is not None]


def highest(step: Step) -> list[SeriesSummary]:
    """Return the series whose latency only the kernel can cause. In a task set they belong to the
    highest-priority tasks of each CPU; otherwise they are all series.
    """
    priorities: dict[str, tuple[int, int]] = (
        {task.name: (task.cpu, task.priority) for task in probes.probe_of(step).own(step.key).tasks}
        if step.tasks
        else dict[str, tuple[int, int]]()
    )
    if not priorities:
        return step.series
    top = {
        cpu: max(priority for of, priority in priorities.values() if of == cpu)
        for cpu, _ in priorities.values()
    }
    names = {name for name, (cpu, priority) in priorities.items() if priority == top[cpu]}
    return [
        series for series in step.series if series.metric == "latency" and series.labels.get("task") in names
    ]
