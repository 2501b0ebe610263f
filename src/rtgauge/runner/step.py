# SPDX-License-Identifier: MIT
"""One step: load started, probe measured, load ended, and what changed meanwhile; gives the record's step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.errors import MeasureError
from rtgauge.load import registry as loads
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.record.model import (
    NOTHING_MEASURED,
    LoadReport,
    Mark,
    RunSegment,
    SeriesSummary,
    Severity,
    Step,
    StepKey,
    TaskCounts,
)
from rtgauge.record.stream import StreamResult
from rtgauge.runner import autotune_step, instrument_step, peer_step
from rtgauge.runner.context import Abandoned, LoadFailed, RunContext, abandon, is_emulated, now_utc
from rtgauge.runner.engine_start import start_engine
from rtgauge.runner.engine_stream import EngineStream, Measured, as_exception, follow
from rtgauge.runner.resume_state import StepInProgress
from rtgauge.system.changes import CHANGE_PATHS, changes
from rtgauge.system.changes import marks as change_marks
from rtgauge.system.starvation import throttled
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Guarded, Target
from rtgauge.units import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

    from rtgauge.probe.descriptor import Probe
    from rtgauge.record.window_columns import WindowColumns

STREAM = "stream.ndjson"
NOT_EXPLAINED = "not-explained"
FETCHED_A_SECOND, FETCHED_SPARE = 16 << 20, 64 << 20
"""Bytes of files that a target may send for each second and series of a step, and besides: a million samples
with their times.
"""


def load_marks(report: LoadReport) -> list[Mark]:
    """A mark for every program of the load that died."""
    return [
        Mark(
            name="load-died",
            severity=Severity.INVALID,
            detail=f"{part.program} of the load {report.name} died while it was needed: {part.ended_early}",
        )
        for part in report.parts
        if part.ended_early is not None
    ]


def _end_marks(measured: Measured, key: StepKey, requested: bool) -> list[Mark]:
    result = measured.result
    if measured.end_reason is not None:  # the instrument's word, which stopped the engine
        requested = requested and measured.end_reason == "stopped"
        return (
            [Mark(name="stopped", severity=Severity.NOTE, detail="ended by the user before its time")]
            if requested
            else []
        )
    if result.end is None:
        return [
            Mark(
                name="engine-died",
                severity=Severity.INVALID,
                detail="the engine ended before its time; what it had measured by then is kept",
            )
        ]
    if result.end.reason == "stopped" and not requested:
        detail = (
            "the engine lost its lease (rtgauge was held: Ctrl-Z, a suspended machine) or the run its guard, "
            "so it ended; what it had measured by then is kept"
        )
        return [Mark(name="lease-lost", severity=Severity.INVALID, detail=detail)]
    if result.end.reason == "stopped":
        return [Mark(name="stopped", severity=Severity.NOTE, detail="ended by the user before its time")]
    if result.end.reason == "threshold":
        limit = key.parameters.get("stop_at_ns")
        return [
            Mark(
                name="threshold",
                severity=Severity.NOTE,
                detail=f"ended at a latency above {limit} ns, as requested",
            )
        ]
    return []


def _nothing_marks(step: Step, probe: Probe) -> list[Mark]:
    """A step without one value measured nothing, though nothing went wrong."""
    if (
        probe.when_nothing is None
        or not step.series
        or any(series.count or series.missed for series in step.series)
    ):
        return []
    ended = step.end_reason == "program-ended"
    cause = "the program ended before it was measured" if ended else "no activation came in the measured time"
    return [Mark(name=NOTHING_MEASURED, severity=Severity.INVALID, detail=f"{cause}; {probe.when_nothing}")]


def start_load(key: StepKey, context: RunContext, folder: Path, expected_s: float) -> RunningLoad:
    """The load of a step, warm. Raises LoadFailed."""
    load: RunningLoad | None = None
    try:
        context.progress.phase(f"load {key.load} starts")
        load = RunningLoad.start(
            context.target,
            loads.get(key.load),
            folder / "load.log",
            expected_s=expected_s + context.load_warm_up_s,
        )
        context.progress.phase(f"load {key.load} warms up")
        context.interrupt.stop_by(abandon)
        load.wait_warm(context.load_warm_up_s)
        context.interrupt.stop_by(None)
    except BaseException as error:
        context.interrupt.stop_by(None)
        if load is not None:
            load.stop()
        if isinstance(error, MeasureError):
            raise LoadFailed(key.load, str(error)) from None
        raise
    return load


def _files_folder(key: StepKey, target: Target, folder: Path) -> str | None:
    """Where the engine writes files of its own: raw samples, the state of a tire."""
    return (
        target.files_folder(folder) if key.parameters.get("samples") or key.parameters.get("state") else None
    )


def _expected_s(key: StepKey) -> float:
    return (probes.get(key.probe).expected_ns(key.parameters) or 0) / NS_PER_S


def _begin(key: StepKey, context: RunContext, folder: Path) -> StepInProgress:
    started, files_before = now_utc(), dict(context.target.read(CHANGE_PATHS))
    load = start_load(key, context, folder, _expected_s(key)) if key.load != "idle" else None
    return StepInProgress(key, started, files_before, load)


def _pick_up(key: StepKey, context: RunContext, folder: Path) -> StepInProgress | None:
    """The step as an earlier process has begun it, where it has, and it goes on by itself on the target.

    Raises MeasureError where it is gone.
    """
    state, target = context.interrupted_step, context.target
    if state is None or state["key"] != key.model_dump_json():
        return None
    context.progress.phase("resumes the measurement there")
    if state["files"] is not None:
        target.use_files_folder(folder, state["files"])
    program = target.attach(state["program"])
    load: RunningLoad | None = None
    if state["load"] is not None:
        expected_s = _expected_s(key) + context.load_warm_up_s
        load = RunningLoad.pick_up(
            target, loads.get(key.load), folder / "load.log", expected_s=expected_s, state=state["load"]
        )
    return StepInProgress(key, state["started"], state["before"], load, program)


def _connection_marks(programs: Sequence[Guarded], *, picked_up: bool) -> list[Mark]:
    marks: list[Mark] = []
    if picked_up:
        detail = (
            "rtgauge or its connection ended while this was measured; the target went on by itself, "
            "and it was picked up from there"
        )
        marks.append(Mark(name="picked-up", severity=Severity.NOTE, detail=detail))
    broken = sum(program.reconnections for program in programs)
    if broken:
        detail = (
            f"the connection to the target broke {broken} time(s) while this was measured; no measured data "
            f"was lost"
        )
        marks.append(Mark(name="connection-broken", severity=Severity.NOTE, detail=detail))
    return marks


def _measure_one_end(step: StepInProgress, context: RunContext, folder: Path) -> Measured:
    """By one engine on the target, which may measure already."""
    target = context.target
    files = _files_folder(step.key, target, folder)
    program = step.picked_up or start_engine(
        step.key, context, probes.get(step.key.probe).arguments(step.key.parameters, files)
    )

    def begin(armed: EngineStream) -> None:
        expected_ns = probes.get(step.key.probe).expected_ns(step.key.parameters)
        armed.table.expect(
            math.inf if expected_ns is None else expected_ns / NS_PER_S * len(armed.result.series)
        )
        _begin_beside(context, step.load)
        state = step.state(program, files)
        if state is not None:
            context.save_step(state)

    stream = follow(
        program,
        context,
        step.load,
        folder / STREAM,
        begin=None if step.picked_up is not None else begin,
        expected_ns=probes.get(step.key.probe).expected_ns(step.key.parameters),
    )
    if stream.result.error is not None:
        raise as_exception(stream.result.error, target)
    return Measured(stream.result, stream.table.windows(), (program,))


def _measure_with_instrument(step: StepInProgress, context: RunContext, folder: Path) -> Measured:
    """By an engine on the target and an instrument at this machine."""
    files = _files_folder(step.key, context.target, folder)
    return instrument_step.measure(
        step.key,
        context,
        step.load,
        folder,
        begin=lambda: _begin_beside(context, step.load),
        samples_dir=files,
    )


def _measure_around_autotune(step: StepInProgress, context: RunContext, folder: Path) -> Measured:
    """By one engine on the target before Xenomai's autotune, and by one after it."""
    return autotune_step.measure(
        step.key, context, step.load, folder, begin=lambda: _begin_beside(context, step.load)
    )


def _measurement(key: StepKey) -> Callable[[StepInProgress, RunContext, Path], Measured]:
    if key.peer is not None:
        return _measure_two_ends
    if autotune_step.calibrates(key):
        return _measure_around_autotune
    return _measure_one_end if instrument_step.instrument_of(key) is None else _measure_with_instrument


def _goes_on_alone(key: StepKey) -> bool:
    """Whether the step goes on on its target when the connection to that breaks."""
    return _measurement(key) is _measure_one_end


def _measure_two_ends(step: StepInProgress, context: RunContext, folder: Path) -> Measured:
    """By one engine on the target and one on its peer."""
    files = _files_folder(step.key, peer_step.target_of("master", step.key, context), folder)
    return peer_step.measure(
        step.key,
        context,
        step.load,
        folder,
        begin=lambda: _begin_beside(context, step.load),
        samples_dir=files,
    )


def _begin_beside(context: RunContext, load: RunningLoad | None) -> None:
    """What is done when the probe is armed, before it is told to go."""
    if context.at_armed is not None:
        context.at_armed()
    if load is not None:
        load.begin()


def measure_step(
    step_id: str, key: StepKey, context: RunContext, folder: Path
) -> tuple[Step, pl.DataFrame | WindowColumns]:
    """Measure one step with the engine, or with one on each of two machines.

    Writes stream.ndjson, load.log and raw samples to `folder`; gives the step and its table of windows.
    Raises InputError or MeasureError where the engine or the load refuses, Abandoned where the user ends the
    run before anything was measured.
    """
    began_s = time.monotonic() - _expected_s(key)  # what is picked up may have begun so long ago
    step = _pick_up(key, context, folder) or _begin(key, context, folder)
    report = LoadReport(name=key.load)
    try:
        if context.interrupt.requested:
            raise Abandoned
        measured = _measurement(key)(step, context, folder)
    except BaseException as error:
        # What is measured by one machine goes on there when its connection broke, and is picked up: the load
        # is left to it.
        if step.load is not None and not (isinstance(error, ConnectionBroken) and _goes_on_alone(key)):
            with suppress(ConnectionBroken):
                step.load.stop()
        raise
    if step.load is not None:
        context.progress.phase(f"load {key.load} ends")
        report = step.load.stop()
    if not len(measured.windows) and context.interrupt.requested:
        raise Abandoned
    changed = changes(step.files_before, context.target.read(CHANGE_PATHS))
    measured.result.marks += _connection_marks(measured.programs, picked_up=step.picked_up is not None)
    done = _put_together(step_id, step, context, measured, report, changed)
    fastest_bytes = FETCHED_SPARE + round(
        (time.monotonic() - began_s) * max(len(done.series), 1) * FETCHED_A_SECOND
    )
    peer_step.target_of("master", key, context).fetch(folder, fastest_bytes)
    if key.parameters.get("samples"):
        from rtgauge.record.samples_summary import summarise_samples, with_samples

        done.series = [
            with_samples(series, summarise_samples(folder / f"samples-{series.series}.i64"))
            if series.series in measured.sampled
            else series
            for series in done.series
        ]
    return done, measured.windows


def _put_together(
    step_id: str,
    begun: StepInProgress,
    context: RunContext,
    measured: Measured,
    report: LoadReport,
    changed: dict[str, Any],
) -> Step:
    """The record's step. Raises MeasureError where the engine said nothing."""
    from rtgauge.record.explain_report import explain_marks, explain_report
    from rtgauge.record.summary import summarise_step
    from rtgauge.record.windows import numbers_of

    key, result, windows = begun.key, measured.result, measured.windows
    outer = measured.instrument.series if measured.instrument is not None and measured.from_histogram else []
    summary = summarise_step(
        windows,
        [line.model_dump() for line in result.series],
        [line.model_dump() for line in result.summaries],
        without_summary=outer,
    )
    hello = result.hello
    if hello is None:
        raise MeasureError("the engine said nothing; is it the one that came with this rtgauge?")
    measuring = numbers_of(windows, ("start_ns", "end_ns"))
    explained = explain_report(result)
    if context.not_explained is not None:
        result.marks = [mark for mark in result.marks if mark.name != NOT_EXPLAINED] + [
            Mark(
                name=NOT_EXPLAINED,
                severity=Severity.NOTE,
                detail=(
                    "latencies are not explained: the kernel's events cannot be recorded here: "
                    f"{context.not_explained}"
                ),
            )
        ]
    marks = [
        *result.marks,
        *explain_marks(explained),
        *summary.marks,
        *_end_marks(measured, key, context.interrupt.requested),
        *load_marks(report),
    ]
    step = Step(
        id=step_id,
        key=key,
        tool=f"rtgauge-engine {hello.engine}"
        if hello.runtime == "linux"
        else f"rtgauge-engine-{hello.runtime} {hello.engine}",
        started=begun.started,
        ended=now_utc(),
        start_ns=min(measuring["start_ns"], default=None),
        end_ns=max(measuring["end_ns"], default=None),
        end_reason=measured.end_reason or (result.end.reason if result.end is not None else "died"),
        parameters=hello.parameters
        | {name: shown for name, shown in (("space", key.space), ("rt", key.rt)) if name in key.parameters},
        cpus=hello.cpus,
        cpus_not_measured=hello.cpus_not_measured,
        clock=hello.clock | ({"busy_loop": hello.busy_loop} if hello.busy_loop else {}),
        calibrations=result.calibrations or context.calibrations,
        load=report,
        peer=measured.peer,
        instrument=measured.instrument,
        series=summary.series,
        total=summary.total,
        outliers=result.outliers,
        results=result.results,
        explain=explained,
        marks=marks,
        changes=changed,
        tasks=task_counts(summary.series, windows),
        segments=run_segments(result),
    )
    step.marks += _nothing_marks(step, probes.get(key.probe))
    step.marks += change_marks(changed, step.cpus)
    if not is_emulated(context.facts):
        # there, a latency as long as the kernel's limits is the emulator's
        step.marks += _throttle_marks(step, context.facts)
    return step


def _throttle_marks(step: Step, facts: Mapping[str, Any]) -> list[Mark]:
    policy = str(step.parameters.get("policy", "other"))
    marks: list[Mark | None] = []
    elsewhere = set(step.peer.series if step.peer is not None else ()) | set(
        step.instrument.series if step.instrument is not None else ()
    )
    for series in highest(step):
        if series.series in elsewhere:
            continue
        # How long something computes says nothing: it may well take as long as a limit takes at once.
        metric = probes.get(step.key.probe).metric(series.metric)
        longest = series.max_ns if metric is None or metric.is_delay else None
        marks.append(
            throttled(series.thread, facts, max_latency_ns=longest, policy=policy, series=series.series)
        )
    return [mark for mark in marks if mark is not None]


def task_counts(series: list[SeriesSummary], windows: pl.DataFrame | WindowColumns) -> list[TaskCounts]:
    """Activations, deadline misses and preemptions of each task; nothing for a step of another probe."""
    by_task: dict[str, dict[str, SeriesSummary]] = {}
    for summary in series:
        if "task" in summary.labels:
            by_task.setdefault(str(summary.labels["task"]), {})[summary.metric] = summary
    tasks: list[TaskCounts] = []
    for task, metrics in by_task.items():
        late, preemptions = metrics.get("tardiness"), metrics.get("preemptions")
        if late is None or late.series is None:
            continue
        cpu = late.labels.get("cpu")
        tasks.append(
            TaskCounts(
                task=task,
                cpu=cpu if isinstance(cpu, int) else None,
                activations=late.count,
                deadline_misses=late.count - _on_time(windows, late.series),
                preemptions=None
                if preemptions is None or preemptions.mean_ns is None
                else round(preemptions.mean_ns * preemptions.count),
            )
        )
    return tasks


def _on_time(windows: pl.DataFrame | WindowColumns, tardiness: int) -> int:
    """Activations with a tardiness of 0, which has a bin of its own."""
    from rtgauge.record.windows import merge

    merged = merge(windows, tardiness)
    return sum(int(count) for at, count in zip(merged.bins, merged.counts, strict=True) if at == 0)


def run_segments(result: StreamResult) -> list[RunSegment]:
    """The engine's segments with the names of their tasks, from time 0 of the set, in order of time."""
    names = {line.series: str(line.labels.get("task", line.series)) for line in result.series}
    segments: list[RunSegment] = []
    for line in result.segments:
        zero = result.start_ns.get(line.series)
        if line.series in names and zero is not None:
            segments.append(
                RunSegment(
                    task=names[line.series],
                    activation=line.activation,
                    start_ns=line.start_ns - zero,
                    end_ns=line.end_ns - zero,
                )
            )
    return sorted(segments, key=lambda segment: segment.start_ns)


def highest(step: Step) -> list[SeriesSummary]:
    """The series whose latencies nothing but the kernel can hold up: of a task set, those of the highest
    priority on each CPU; else all.
    """
    priorities = (
        {task["name"]: (task["cpu"], task["priority"]) for task in step.key.parameters.get("tasks", [])}
        if step.tasks
        else {}
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
