# SPDX-License-Identifier: MIT
"""One step: load up, probe measured, load down, what changed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import polars as pl

from rtgauge.errors import MeasureError
from rtgauge.load import registry as loads
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.record.model import LoadReport, Mark, Severity, Step, StepKey
from rtgauge.record.samples_summary import summarise_samples, with_samples
from rtgauge.record.stream import StreamResult
from rtgauge.record.summary import summarise_step
from rtgauge.runner import peer_step
from rtgauge.runner.context import Abandoned, Context, LoadFailed, abandon, now_utc
from rtgauge.runner.follow_engine import Said, fail, follow
from rtgauge.runner.machine_marks import emulated
from rtgauge.runner.resume_state import Kept
from rtgauge.runner.taskset_result import highest, run_segments, task_counts
from rtgauge.system.changes import CHANGE_PATHS, changes
from rtgauge.system.changes import marks as change_marks
from rtgauge.system.starvation import throttled
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Guarded, Target

STREAM = "stream.ndjson"


def load_marks(report: LoadReport) -> list[Mark]:
    """A mark for every program of the load that died."""
    return [
        Mark(name="load-died", severity=Severity.INVALID, detail=f"{part.program} of the load {report.name} died while it was needed: {part.ended_early}")
        for part in report.parts
        if part.ended_early is not None
    ]


def _end_marks(result: StreamResult, key: StepKey, asked: bool) -> list[Mark]:
    if result.end is None:
        return [Mark(name="engine-died", severity=Severity.INVALID, detail="the engine ended before its time; what it had measured by then is kept")]
    if result.end.reason == "stopped" and not asked:
        detail = "rtgauge was held for longer than the engine's lease (Ctrl-Z, a suspended machine), so the engine ended; what it had measured by then is kept"
        return [Mark(name="lease-lost", severity=Severity.INVALID, detail=detail)]
    if result.end.reason == "stopped":
        return [Mark(name="stopped", severity=Severity.NOTE, detail="ended by the user before its time")]
    if result.end.reason == "threshold":
        limit = key.parameters.get("stop_at_ns")
        return [Mark(name="threshold", severity=Severity.NOTE, detail=f"ended at a latency above {limit} ns, as asked")]
    return []


def start_load(key: StepKey, context: Context, folder: Path, expected_s: float) -> RunningLoad:
    """The load of a step, warm. Raises LoadFailed."""
    load: RunningLoad | None = None
    try:
        context.progress.phase(f"load {key.load} starts")
        load = RunningLoad.start(context.target, loads.get(key.load), folder / "load.log", expected_s=expected_s + context.load_warm_up_s)
        context.progress.phase(f"load {key.load} warms up")
        context.interrupt.stop_by(abandon)
        load.wait_warm(context.load_warm_up_s)
        context.interrupt.stop_by(None)
    except BaseException as error:
        context.interrupt.stop_by(None)
        if load is not None:
            load.stop()
        if isinstance(error, MeasureError):
            raise LoadFailed(str(error)) from None
        raise
    return load


def _samples_dir(key: StepKey, target: Target, folder: Path) -> str | None:
    """Where the engine writes files of its own: raw samples, the state of a tire."""
    return target.files_folder(folder) if key.parameters.get("samples") or key.parameters.get("state") else None


def _expected_s(key: StepKey) -> float:
    return (probes.get(key.probe).expected_ns(key.parameters) or 0) / 1e9


_Begun = tuple[str, dict[str, Any], Guarded | None, RunningLoad | None]
"""When it began, what the target said before, the program where it runs already, the load."""


def _begin(key: StepKey, context: Context, folder: Path) -> _Begun:
    started, before = now_utc(), dict(context.target.read(CHANGE_PATHS))
    return started, before, None, start_load(key, context, folder, _expected_s(key)) if key.load != "idle" else None


def _pick_up(key: StepKey, context: Context, folder: Path) -> _Begun | None:
    """Go on with what an earlier process had begun to measure, where this step is the one and it can be had still."""
    earlier, context.earlier = context.earlier, None
    if earlier is None or earlier["key"] != key.model_dump_json():
        return None
    context.progress.phase("goes on with what is measured there")
    target = context.target
    if earlier["files"] is not None:
        target.use_files_folder(folder, earlier["files"])
    program = target.attach(earlier["program"])
    load: RunningLoad | None = None
    if earlier["load"] is not None:
        expected_s = _expected_s(key) + context.load_warm_up_s
        load = RunningLoad.pick_up(target, loads.get(key.load), folder / "load.log", expected_s=expected_s, state=earlier["load"])
    return earlier["started"], earlier["before"], program, load


def _connection_marks(programs: Sequence[Guarded], *, picked_up: bool) -> list[Mark]:
    marks: list[Mark] = []
    if picked_up:
        detail = "rtgauge or its connection ended while this was measured; the target went on by itself, and it was picked up from there"
        marks.append(Mark(name="picked-up", severity=Severity.NOTE, detail=detail))
    broken = sum(program.reconnections for program in programs)
    if broken:
        detail = f"the connection to the target broke {broken} time(s) while this was measured; nothing that was measured is lost by it"
        marks.append(Mark(name="connection-broken", severity=Severity.NOTE, detail=detail))
    return marks


def _measure_here(key: StepKey, context: Context, folder: Path, begun: _Begun) -> Said:
    """By one engine on the target, which may be at it already."""
    started, before, picked_up, load = begun
    target = context.target
    files = _samples_dir(key, target, folder)
    program = picked_up or target.engine(*probes.get(key.probe).arguments(key.parameters, files), group=context.group)

    def begin() -> None:
        _begin_beside(context, load)
        if program.kept is not None:
            kept_load = load.state() if load is not None else None
            context.keep(Kept(key=key.model_dump_json(), started=started, before=before, program=program.kept, files=files, load=kept_load))

    heard = follow(program, context, load, folder / STREAM, begin=None if picked_up is not None else begin)
    if heard.result.error is not None:
        raise fail(heard.result.error, target)
    return Said(heard.result, heard.frame(), (program,))


def _begin_beside(context: Context, load: RunningLoad | None) -> None:
    """What is done when the probe is armed, before it is told to go."""
    if context.at_armed is not None:
        context.at_armed()
    if load is not None:
        load.begin()


def _measure_both(key: StepKey, context: Context, folder: Path, load: RunningLoad | None) -> Said:
    files = _samples_dir(key, peer_step.target_of("master", key, context), folder)
    return peer_step.measure(key, context, load, folder, begin=lambda: _begin_beside(context, load), samples_dir=files)


def measure_step(step_id: str, key: StepKey, context: Context, folder: Path) -> tuple[Step, pl.DataFrame]:
    """Measure one step with the engine, or with one on each of two machines.

    Writes stream.ndjson, load.log and raw samples to `folder`; gives the step and its frame of windows.
    Raises InputError or MeasureError where the engine or the load refuses.
    """
    target = context.target
    begun = _pick_up(key, context, folder) or _begin(key, context, folder)
    started, before, picked_up, load = begun
    report = LoadReport(name=key.load)
    try:
        if context.interrupt.asked:
            raise Abandoned
        said = _measure_here(key, context, folder, begun) if key.peer is None else _measure_both(key, context, folder, load)
    except BaseException as error:
        # What is measured by one machine goes on there when its connection broke, and is picked up: the load is left to it.
        if load is not None and not (isinstance(error, ConnectionBroken) and key.peer is None):
            with suppress(ConnectionBroken):
                load.stop()
        raise
    if load is not None:
        context.progress.phase(f"load {key.load} ends")
        report = load.stop()
    if said.frame.is_empty() and context.interrupt.asked:
        raise Abandoned
    after = target.read(CHANGE_PATHS)
    changed = changes(before, after)
    said.result.marks += _connection_marks(said.programs, picked_up=picked_up is not None)
    step = _put_together(step_id, key, context, said=said, report=report, started=started, changed=changed)
    peer_step.target_of("master", key, context).fetch(folder)
    if key.parameters.get("samples"):
        step.series = [with_samples(one, summarise_samples(folder / f"samples-{one.series}.i64")) if one.series in said.sampled else one for one in step.series]
    return step, said.frame


def _put_together(step_id: str, key: StepKey, context: Context, *, said: Said, report: LoadReport, started: str, changed: dict[str, Any]) -> Step:
    result, frame = said.result, said.frame
    summary = summarise_step(frame, [line.model_dump() for line in result.series], [line.model_dump() for line in result.summaries])
    hello = result.hello
    if hello is None:
        raise MeasureError("the engine said nothing; is it the one that came with this rtgauge?")
    measured = frame.filter(pl.col("phase") == "measure")
    marks = [*result.marks, *summary.marks, *_end_marks(result, key, context.interrupt.asked), *load_marks(report)]
    step = Step(
        id=step_id,
        key=key,
        tool=f"rtgauge-engine {hello.engine}",
        started=started,
        ended=now_utc(),
        start_ns=cast("int | None", measured["start_ns"].min()),
        end_ns=cast("int | None", measured["end_ns"].max()),
        end_reason=result.end.reason if result.end is not None else "died",
        parameters=hello.parameters,
        cpus=hello.cpus,
        cpus_not_measured=hello.cpus_not_measured,
        clock=hello.clock | ({"busy_loop": hello.busy_loop} if hello.busy_loop else {}),
        calibrations=result.calibrations or context.calibrations,
        load=report,
        peer=said.peer,
        series=summary.series,
        total=summary.total,
        outliers=result.outliers,
        results=result.results,
        marks=marks,
        changes=changed,
        tasks=task_counts(summary.series, frame),
        segments=run_segments(result),
    )
    step.marks += change_marks(changed, step.cpus)
    if not emulated(context.facts):
        # there, a latency as long as the kernel's limits is the emulator's
        step.marks += _throttle_marks(step, context.facts)
    return step


def _throttle_marks(step: Step, facts: dict[str, Any]) -> list[Mark]:
    policy = str(step.parameters.get("policy", "other"))
    found: list[Mark | None] = []
    elsewhere = set(step.peer.series) if step.peer is not None else set[int]()
    for one in highest(step):
        if one.series in elsewhere:
            continue
        # How long something computes says nothing: it may well take as long as a limit takes at once.
        metric = probes.get(step.key.probe).metric(one.metric)
        longest = one.max_ns if metric is None or metric.is_delay else None
        found.append(throttled(one.thread, facts, max_latency_ns=longest, policy=policy, series=one.series))
    return [mark for mark in found if mark is not None]
