# SPDX-License-Identifier: MIT
"""Measures one step: applies its settings, starts its load, runs its probe, and undoes everything.

A step's measurer runs its probe. The ordinary measurer runs one engine on the target.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, suppress
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, cast, runtime_checkable

from rtgauge import extension
from rtgauge.errors import InputError, MeasureError
from rtgauge.known_extensions import from_where
from rtgauge.load import load_registry as loads
from rtgauge.load.lifecycle import EMULATED_READY_S, READY_S, RunningLoad
from rtgauge.probe import probe_registry as probes
from rtgauge.record.model import LeftOut, LoadReport, Step, StepKey
from rtgauge.runner.context import (
    LoadFailed,
    StepContext,
    StepInProgress,
    StepState,
    TargetContext,
    now_utc,
    step_files,
)
from rtgauge.runner.engine import STREAM, EngineStream, arm_trial, follow, start_engine
from rtgauge.runner.interrupt import Abandoned, abandon
from rtgauge.runner.put_together import EndedStep, EngineMeasurement, MeasurerResult, StepResult
from rtgauge.runner.scope import in_deployment, with_deployment
from rtgauge.system.step_changes import CHANGE_PATHS, changes
from rtgauge.target.file_batch import Files
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target_protocol import Guarded, Target
from rtgauge.units import NS_PER_S


@runtime_checkable
class Measurer(Protocol):
    """A way to measure a step: SingleEngineMeasurer, or one of the `measurers` of extensions."""

    arms: bool
    """Whether it arms rtgauge's engine. Arming is timed, and may need kernel modules."""
    goes_on_alone: bool
    """Whether the step continues on its target if the connection breaks."""

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:
        """Return why the target cannot be measured in this way; None if no reason is known before trying."""
        ...

    def try_arm(self, context: StepContext) -> None:
        """Try this way without measuring. Raises InputError or MeasureError if the engine or tool refuses."""
        ...

    def measure(self, step: StepInProgress) -> MeasurerResult:
        """Measure the step; call `step.begin` when the probe is armed.

        Raises InputError or MeasureError if the engine or tool refuses, Abandoned if the user ends the run
        before anything was measured.
        """
        ...


class SingleEngineMeasurer:
    """Measures with one engine on the target."""

    arms = True
    goes_on_alone = True

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG002 - of every measurer
        """Return None: the engine comes with rtgauge."""
        return None

    def try_arm(self, context: StepContext) -> None:
        """Arm and stop the probe. Raises InputError or MeasureError if the engine refuses."""
        arm_trial(context)

    def measure(self, step: StepInProgress) -> EngineMeasurement:
        """Measure with the engine. If the step was picked up, the engine already runs.

        Raises InputError, MeasureError.
        """
        context = step.context
        files = step_files(step.key, context.target, step.folder)
        probe = probes.get(step.key.probe)
        program = step.picked_up or start_engine(context, probe.arguments(probe.own(step.key), files))

        def begin(armed: EngineStream) -> None:
            expected_ns = step.expected_ns
            armed.table.expect(
                math.inf if expected_ns is None else expected_ns / NS_PER_S * len(armed.result.series)
            )
            step.begin()
            state = step.state(program, files)
            if state is not None:
                context.on.save_step(state)

        stream = follow(
            program, step, step.folder / STREAM, begin=None if step.picked_up is not None else begin
        )
        stream.check(context.target)
        return EngineMeasurement(stream.result, stream.table.windows(), (program,), context.target)


SINGLE_ENGINE = SingleEngineMeasurer()


def measurer_of(key: StepKey) -> Measurer:
    """Return the measurer of a step; import its module unless it is the ordinary one.

    Raises InputError if no extension has the step's measurer, or if its package cannot be used.
    """
    own = key.tool == "rtgauge"
    name = probes.get(key.probe).measurer(key) if own else key.tool
    if name is None:
        return SINGLE_ENGINE
    if name not in extension.registered("measurers"):
        what = f"the step of {key.probe}" if own else "the cross-check"
        instead = f"; install an extension that does, or leave {what} out"
        raise InputError(f"rtgauge cannot measure with {name}{from_where('measurers', name) or instead}")
    return cast("Measurer", extension.load("measurers", name, Measurer))


class State(IntEnum):
    """The state of a step. It only moves forward."""

    PLANNED = 0
    SET = 1
    """The step's deployment and other settings are in force."""
    LOADED = 2
    """The step's load is warm."""
    ARMED = 3
    """The probe is ready."""
    MEASURING = 4
    """The probe is measuring. A step that is picked up begins here."""
    ENDED = 5
    """The probe and the load have ended."""
    SETTLED = 6
    """Everything is undone."""


class StepRun:
    """A step from PLANNED to SETTLED. Leaving its `with` block undoes everything it did, in any state."""

    def __init__(self, step_id: str, key: StepKey, context: TargetContext, folder: Path) -> None:
        """`folder`: the folder for the step's files."""
        self.state = State.PLANNED
        self._id, self._key, self._on, self._folder = step_id, key, context, folder
        self._measurer = measurer_of(key)
        self._left_before = list(context.deployments.not_put_back)
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.__exit__(kind, error, trace)
        self._reach(State.SETTLED)

    def _reach(self, state: State) -> None:
        assert state > self.state, f"{state.name} after {self.state.name}"  # noqa: S101 - of this class alone
        self.state = state

    def set(self) -> None:
        """Apply the step's settings. Raises Refused if the machine refuses a setting that seemed possible."""
        self._context, self._applied = self._undo.enter_context(in_deployment(self._key, self._on))
        self._reach(State.SET)

    def begin(self) -> None:
        """Start the load, or pick up a running step. Raises LoadFailed, MeasureError, Abandoned."""
        # A step that is picked up may have begun long ago.
        self._began_s = time.monotonic() - self._expected_s
        state = self._on.interrupted_step
        if state is not None and state["key"] == self._key.id:
            self._pick_up(state)
            return
        started, files_before = now_utc(), self._on.target.read(CHANGE_PATHS)
        load = self._start_load() if self._key.load != "idle" else None
        self._reach(State.LOADED)
        self._step = self._in_progress(started, files_before, load)

    def measure(self) -> None:
        """Measure the step. Raises InputError or MeasureError, or Abandoned if the user ended the
        run first.
        """
        if self._context.interrupt.requested:
            raise Abandoned
        self._outcome: MeasurerResult = self._measurer.measure(self._step)

    def end(self) -> StepResult:
        """End the load; return the windows, and the step without its deployment's report.

        Raises MeasureError if the engine sent nothing, Abandoned if the user ended the run before anything
        was measured.
        """
        begun = self._step
        report = LoadReport(name=self._key.load)
        if begun.load is not None:
            self._context.progress.phase(f"load {self._key.load} ends")
            report = begun.load.stop()
        begun.undo.close()
        self._reach(State.ENDED)
        changed = changes(begun.files_before, self._on.target.read(CHANGE_PATHS))
        took_s = time.monotonic() - self._began_s
        return self._outcome.settle(EndedStep(self._id, begun, report, changed, took_s))

    def settled(self, step: Step) -> Step:
        """Return the step with the report of its deployment, after the deployment was undone."""
        return with_deployment(step, self._applied, self._left_before)

    @property
    def _expected_s(self) -> float:
        probe = probes.get(self._key.probe)
        return (probe.expected_ns(probe.own(self._key)) or 0) / NS_PER_S

    def _start_load(self) -> RunningLoad:
        """Start the step's load and wait until it is warm. Raises LoadFailed, Abandoned."""
        name, run = self._key.load, self._on.run
        try:
            run.progress.phase(f"load {name} starts")
            load = RunningLoad.start(
                self._on.target,
                loads.get(name),
                self._folder / "load.log",
                expected_s=self._expected_s + run.load_warm_up_s,
            )
            self._stop_at_exit(load)
            run.progress.phase(f"load {name} warms up")
            run.interrupt.stop_by(abandon)
            ready_s = EMULATED_READY_S if self._on.facts.machine.emulated else READY_S
            load.wait_warm(run.load_warm_up_s, ready_s)
        except MeasureError as error:
            raise LoadFailed(name, str(error)) from None
        finally:
            run.interrupt.stop_by(None)
        return load

    def _pick_up(self, state: StepState) -> None:
        """Continue a step of an earlier process. Raises MeasureError if the step no longer runs."""
        target, run = self._on.target, self._on.run
        run.progress.phase("resumes the measurement there")
        if state["files"] is not None:
            target.use_files_folder(self._folder, state["files"])
        program = target.attach(state["program"])
        load: RunningLoad | None = None
        if state["load"] is not None:
            load = RunningLoad.pick_up(
                target,
                loads.get(self._key.load),
                self._folder / "load.log",
                expected_s=self._expected_s + run.load_warm_up_s,
                state=state["load"],
            )
            self._stop_at_exit(load)
        self._reach(State.MEASURING)
        self._step = self._in_progress(state["started"], Files(state["before"]), load, program)

    def _in_progress(
        self,
        started: str,
        files_before: Files,
        load: RunningLoad | None,
        picked_up: Guarded | None = None,
    ) -> StepInProgress:
        undo = self._undo.enter_context(ExitStack())
        return StepInProgress(
            self._context, self._folder, started, files_before, load, self._armed, undo, picked_up
        )

    def _armed(self) -> None:
        """Begin the load's phase when the probe is armed, before the probe gets `go`."""
        self._reach(State.ARMED)
        if self._context.at_armed is not None:
            self._context.at_armed()
        if self._step.load is not None:
            self._step.load.begin()
        self._reach(State.MEASURING)

    def _stop_at_exit(self, load: RunningLoad) -> None:
        def stop(_kind: object, error: BaseException | None, _trace: object) -> None:
            if self.state < State.LOADED:
                load.stop()
            elif not (isinstance(error, ConnectionBroken) and self._measurer.goes_on_alone):
                # otherwise the step continues on the target, to be picked up, and needs the load
                with suppress(ConnectionBroken):
                    load.stop()

        self._undo.push(stop)


def measure_step(step_id: str, key: StepKey, context: TargetContext, folder: Path) -> StepResult:
    """Measure one step; return the step and its windows. Its stream, load.log and raw samples go to `folder`.

    Raises InputError or MeasureError if the engine or tool refuses, LoadFailed if the load does not run,
    Refused if the machine refuses a setting, Abandoned if the user ends the run before anything was measured.
    """
    with StepRun(step_id, key, context, folder) as run:
        run.set()
        run.begin()
        run.measure()
        ended = run.end()
    return ended._replace(step=run.settled(ended.step))
