# SPDX-License-Identifier: MIT
"""One step: what it needs is set, its load started, the probe measured, and all of it undone; gives the
record's step.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rtgauge.errors import MeasureError
from rtgauge.load import registry as loads
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.record.model import LoadReport, Step, StepKey
from rtgauge.runner.context import (
    Abandoned,
    LoadFailed,
    StepInProgress,
    StepState,
    TargetContext,
    abandon,
    now_utc,
)
from rtgauge.runner.measurer import measurer_of
from rtgauge.runner.put_together import EndedStep, Outcome, Windows
from rtgauge.runner.scope import in_deployment, with_deployment
from rtgauge.system.changes import CHANGE_PATHS, changes
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Guarded
from rtgauge.units import NS_PER_S


class State(IntEnum):
    """How far a step is: it only ever gets further."""

    PLANNED = 0
    SET = 1
    """Its deployment, and what else it needs to be set, is in force."""
    LOADED = 2
    """Its load is warm."""
    ARMED = 3
    """The probe is ready."""
    MEASURING = 4
    """The probe measures; a step that is picked up comes here at once."""
    ENDED = 5
    """The probe and the load have ended."""
    SETTLED = 6
    """Everything of it is undone."""


class StepRun:
    """A step from PLANNED to SETTLED.

    Leaving it, however far it got, undoes whatever it did: nothing else does.
    """

    def __init__(self, step_id: str, key: StepKey, context: TargetContext, folder: Path) -> None:
        """`folder`: where the step's files go."""
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
        """Bring about what the step needs. Raises Refused where the machine refuses it after all."""
        self._context, self._applied = self._undo.enter_context(in_deployment(self._key, self._on))
        self._reach(State.SET)

    def begin(self) -> None:
        """Start the load, or pick up what goes on by itself. Raises LoadFailed, MeasureError, Abandoned."""
        # What is picked up may have begun as long ago as it takes.
        self._began_s = time.monotonic() - self._expected_s
        state = self._on.interrupted_step
        if state is not None and state["key"] == self._key.id:
            self._pick_up(state)
            return
        started, files_before = now_utc(), dict(self._on.target.read(CHANGE_PATHS))
        load = self._start_load() if self._key.load != "idle" else None
        self._reach(State.LOADED)
        self._step = self._in_progress(started, files_before, load)

    def measure(self) -> None:
        """Measure. Raises InputError or MeasureError, Abandoned where the user ends the run before."""
        if self._context.interrupt.requested:
            raise Abandoned
        self._outcome: Outcome = self._measurer.measure(self._step)

    def end(self) -> tuple[Step, Windows]:
        """End the load; gives the step, without what is told of its deployment, and its table of windows.

        Raises MeasureError where nothing was said, Abandoned where the user ended the run before anything was
        measured.
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
        """The step with what was set for it, once it is undone."""
        return with_deployment(step, self._applied, self._left_before)

    @property
    def _expected_s(self) -> float:
        probe = probes.get(self._key.probe)
        return (probe.expected_ns(probe.own(self._key)) or 0) / NS_PER_S

    def _start_load(self) -> RunningLoad:
        """The load of the step, warm. Raises LoadFailed, Abandoned."""
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
            load.wait_warm(run.load_warm_up_s)
        except MeasureError as error:
            raise LoadFailed(name, str(error)) from None
        finally:
            run.interrupt.stop_by(None)
        return load

    def _pick_up(self, state: StepState) -> None:
        """The step as an earlier process has begun it. Raises MeasureError where it is gone."""
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
        self._step = self._in_progress(state["started"], state["before"], load, program)

    def _in_progress(
        self,
        started: str,
        files_before: Mapping[str, Any],
        load: RunningLoad | None,
        picked_up: Guarded | None = None,
    ) -> StepInProgress:
        undo = self._undo.enter_context(ExitStack())
        return StepInProgress(
            self._context, self._folder, started, files_before, load, self._armed, undo, picked_up
        )

    def _armed(self) -> None:
        """What is done when the probe is armed, before it is told to go."""
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
                # else it is measured there further, and picked up: the load is left to it
                with suppress(ConnectionBroken):
                    load.stop()

        self._undo.push(stop)


def measure_step(step_id: str, key: StepKey, context: TargetContext, folder: Path) -> tuple[Step, Windows]:
    """Measure one step, with whatever measures it.

    Writes stream.ndjson, load.log and raw samples to `folder`; gives the step and its table of windows.
    Raises InputError or MeasureError where the engine or the tool refuses, LoadFailed where the load does,
    Refused where the machine refuses what the step needs, Abandoned where the user ends the run before
    anything was measured.
    """
    with StepRun(step_id, key, context, folder) as run:
        run.set()
        run.begin()
        run.measure()
        step, windows = run.end()
    return run.settled(step), windows
