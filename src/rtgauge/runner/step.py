# SPDX-License-Identifier: MIT
"""One step: load up, probe measured, load down, what changed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from rtgauge.errors import EXIT_INPUT, InputError, MeasureError, RecordError
from rtgauge.load import registry as loads
from rtgauge.load.running import RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.record.model import Calibration, LoadReport, Mark, Severity, Step, StepKey
from rtgauge.record.samples_summary import summarise_samples, with_samples
from rtgauge.record.storage import clear_errors
from rtgauge.record.stream import Armed, ErrorLine, StreamResult, Window, parse_line
from rtgauge.record.summary import summarise_step
from rtgauge.record.windows import WindowTable
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.kept import Kept
from rtgauge.runner.machine_marks import emulated
from rtgauge.runner.progress import Progress
from rtgauge.runner.tasks import highest, run_segments, task_counts
from rtgauge.system.changes import CHANGE_PATHS, changes
from rtgauge.system.controller import Controller
from rtgauge.system.marks import marks as change_marks
from rtgauge.system.starvation import throttled
from rtgauge.target.base import Guarded, Target
from rtgauge.target.ssh_errors import ConnectionBroken

if TYPE_CHECKING:
    from rtgauge.runner.booted import Boots

LOAD_CHECK_S = 1.0
TRACE_PARTS = "trace_parts"
STOPPED_EARLY = ("stopped", "died")
"""Reasons of a step that is not finished: it is measured again when the run is resumed."""


class Abandoned(Exception):  # noqa: N818 - no error: the user said so
    """The user ended the run before this step had measured anything."""


class LoadFailed(MeasureError):  # noqa: N818 - reads as what it is
    """The load could not be started; the other steps can be measured all the same."""


class NotHere(MeasureError):  # noqa: N818 - reads as what it is
    """This machine has not what the step needs; the other steps can be measured all the same."""


NOT_HERE = ("placement", "method")
"""The engine's codes for that (docs/formats/stream.md)."""


def _keep_nothing(_kept: Kept | None) -> None:
    """For a target where nothing outlives this process."""


@dataclass
class Context:
    """What every step of a run shares."""

    target: Target
    facts: dict[str, Any]
    progress: Progress
    interrupt: Interrupt
    load_warm_up_s: float
    calibrations: list[Calibration] = field(default_factory=list[Calibration])
    controller: Controller | None = None
    group: str | None = None
    """Where to measure, while CPUs are set aside: a control group, or `cpus:LIST`."""
    isolated: list[int] = field(default_factory=list[int])
    not_put_back: list[str] = field(default_factory=list[str])
    """Settings of earlier steps that could not be put back."""
    boots: Boots | None = None
    """Where deployments are brought about by booting."""
    at_armed: Callable[[], None] | None = None
    """What is to be set once the probe is armed: it concerns what the probe itself has made."""
    keep: Callable[[Kept | None], None] = _keep_nothing
    earlier: Kept | None = None


def now_utc() -> str:
    """ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def fail(error: ErrorLine) -> MeasureError | InputError:
    """The engine's error as ours."""
    if error.code in NOT_HERE:
        return NotHere(error.message)
    return InputError(error.message) if error.status == EXIT_INPUT else MeasureError(error.message)


def follow(
    program: Guarded, context: Context, load: RunningLoad | None, log: Path, *, begin: Callable[[], None] | None = None
) -> tuple[StreamResult, pl.DataFrame]:
    """Read a probe's stream to its end: `go` when it is armed, `stop` when the user says so. `begin` is called before `go` (None: the load has begun).

    Gives what it said, its windows as a frame. Raises what the engine refused.
    """
    result = StreamResult()
    windows = WindowTable()
    checked_s = time.monotonic()
    with clear_errors(log, log.parent.parent.parent), log.open("wb") as copy:
        context.interrupt.stop_by(lambda: program.say("stop"))
        try:
            for text in program.lines():
                copy.write(text)
                if not text.endswith(b"\n"):
                    break  # the engine was killed in the middle of a line
                line = parse_line(text)
                if isinstance(line, Window):
                    windows.add(line)
                    context.progress.window(line)
                else:
                    result.take(line)
                if isinstance(line, Armed):
                    if begin is not None:
                        begin()
                    program.say("go")
                    context.progress.phase("measuring")
                if load is not None and time.monotonic() - checked_s > LOAD_CHECK_S:
                    load.check()
                    checked_s = time.monotonic()
        except RecordError as error:
            raise MeasureError(str(error)) from None
        finally:
            context.interrupt.stop_by(None)
    program.wait(LOAD_CHECK_S)
    if result.error is not None:
        raise fail(result.error)
    return result, windows.frame()


def check_permission(key: StepKey, context: Context) -> None:
    """Arm the probe and stop it again: what the engine refuses is known before anything else is done."""
    probe = probes.get(key.probe)
    # the tracefs instance is made for the step itself
    parameters = {name: False if name == TRACE_PARTS else value for name, value in key.parameters.items()}
    program = context.target.engine(*probe.arguments(parameters, None), group=context.group)
    error: ErrorLine | None = None
    for text in program.lines():
        line = parse_line(text)
        if isinstance(line, Armed):
            program.say("stop")
        if isinstance(line, ErrorLine):
            error = line
    status = program.wait(LOAD_CHECK_S)
    if error is not None:
        raise fail(error)
    if status:
        raise MeasureError(f"the engine ended at once with status {status}; run `rtgauge probe {key.probe}` to see why")


def calibrate(target: Target) -> list[Calibration]:
    """Resolution and reading cost of every clock of the target."""
    result = StreamResult()
    program = target.engine(*probes.get("calibrate").arguments({"count": 100_000}, None))
    for text in program.lines():
        result.take(parse_line(text))
    program.wait(LOAD_CHECK_S)
    return result.calibrations


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


def abandon() -> None:
    """What takes long before the measuring begins is not waited for when the user wants to end."""
    raise Abandoned


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


def _samples_dir(key: StepKey, context: Context, folder: Path) -> str | None:
    """Where the engine writes files of its own: raw samples, the state of a tire."""
    return context.target.files_folder(folder) if key.parameters.get("samples") or key.parameters.get("state") else None


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


def _connection_marks(program: Guarded, *, picked_up: bool) -> list[Mark]:
    marks: list[Mark] = []
    if picked_up:
        detail = "rtgauge or its connection ended while this was measured; the target went on by itself, and it was picked up from there"
        marks.append(Mark(name="picked-up", severity=Severity.NOTE, detail=detail))
    if program.reconnections:
        detail = f"the connection to the target broke {program.reconnections} time(s) while this was measured; nothing that was measured is lost by it"
        marks.append(Mark(name="connection-broken", severity=Severity.NOTE, detail=detail))
    return marks


def measure_step(step_id: str, key: StepKey, context: Context, folder: Path) -> tuple[Step, pl.DataFrame]:
    """Measure one step with the engine.

    Writes stream.ndjson, load.log and raw samples to `folder`; gives the step and its frame of windows.
    Raises InputError or MeasureError where the engine or the load refuses.
    """
    target = context.target
    started, before, program, load = _pick_up(key, context, folder) or _begin(key, context, folder)
    report = LoadReport(name=key.load)
    picked_up = program is not None
    try:
        if context.interrupt.asked:
            raise Abandoned
        if program is None:
            arguments = probes.get(key.probe).arguments(key.parameters, _samples_dir(key, context, folder))
            program = target.engine(*arguments, group=context.group)
        running = program

        def begin() -> None:
            if context.at_armed is not None:
                context.at_armed()
            if load is not None:
                load.begin()
            if running.kept is not None:
                files = _samples_dir(key, context, folder)
                kept_load = load.state() if load is not None else None
                context.keep(Kept(key=key.model_dump_json(), started=started, before=before, program=running.kept, files=files, load=kept_load))

        result, frame = follow(program, context, load, folder / "stream.ndjson", begin=None if picked_up else begin)
    except ConnectionBroken:
        # There it goes on, and is picked up: the load is left to it.
        raise
    except BaseException:
        if load is not None:
            load.stop()
        raise
    if load is not None:
        context.progress.phase(f"load {key.load} ends")
        report = load.stop()
    if frame.is_empty() and context.interrupt.asked:
        raise Abandoned
    after = target.read(CHANGE_PATHS)
    changed = changes(before, after)
    result.marks += _connection_marks(program, picked_up=picked_up)
    step = _put_together(step_id, key, context, said=(result, frame), report=report, started=started, changed=changed)
    target.fetch(folder)
    if key.parameters.get("samples"):
        step.series = [with_samples(one, summarise_samples(folder / f"samples-{one.series}.i64")) for one in step.series]
    return step, frame


def _put_together(
    step_id: str, key: StepKey, context: Context, *, said: tuple[StreamResult, pl.DataFrame], report: LoadReport, started: str, changed: dict[str, Any]
) -> Step:
    result, frame = said
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
    for one in highest(step):
        # How long a tire computes says nothing: a step may well take as long as a limit takes at once.
        longest = None if step.key.probe == "tire" and one.metric != "latency" else one.max_ns
        found.append(throttled(one.thread, facts, max_latency_ns=longest, policy=policy, series=one.series))
    return [mark for mark in found if mark is not None]
