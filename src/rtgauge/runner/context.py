# SPDX-License-Identifier: MIT
"""The state that a run and its steps share, and how another process resumes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rtgauge.errors import EXIT_INPUT, MeasureError
from rtgauge.load.lifecycle import KeptLoad, RunningLoad
from rtgauge.probe import probe_registry as probes
from rtgauge.record.facts import Calibration, Facts
from rtgauge.record.model import LeftOut, Step, StepKey
from rtgauge.record.stream import Frame, SeriesLine, Window
from rtgauge.runner.interrupt import Interrupt
from rtgauge.system.deployment.apply import Applied
from rtgauge.system.priorities import Controller
from rtgauge.target.file_batch import Files
from rtgauge.target.target_protocol import FolderName, Guarded, ProgramPlace, Target


class LoadFailed(MeasureError):  # noqa: N818 - reads as what it is
    """A load could not be started; other steps can still be measured."""

    def __init__(self, load: str, reason: str) -> None:
        super().__init__(f"load {load}: {reason}")
        self.load = load
        self.reason = reason


class NotHere(MeasureError):  # noqa: N818 - reads as what it is
    """This machine lacks `what`, which a step needs; other steps can still be measured."""

    def __init__(self, what: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.what = what
        self.reason = reason
        self.remedy = remedy


class NotOnCokernel(NotHere):
    """The co-kernel lacks the probe or option."""

    status = EXIT_INPUT


class StepState(TypedDict):
    """What another process needs to resume a step that continues on its target without this process: the
    step's key as JSON, its start, the target's files before the start, and the places of its program, files
    and load on the target.
    """

    key: str
    started: str
    before: dict[str, Any]
    program: ProgramPlace
    files: FolderName | None
    load: KeptLoad | None


def read_step_state(written: object) -> StepState | None:
    """Read a state from a record; None if it cannot be resumed."""
    try:
        state = TypeAdapter(StepState).validate_python(written, strict=True)
        StepKey.model_validate_json(state["key"])
    except ValidationError:
        return None
    return state


def program_folders(state: StepState | None) -> list[str]:
    """Return the folders of a step's programs on the target."""
    if state is None:
        return []
    return [
        state["program"]["name"],
        *(part["kept"]["name"] for part in (state["load"]["parts"] if state["load"] is not None else [])),
    ]


class Progress(Protocol):
    """Listens to a run: the runner calls its methods, a display shows them. Times are in seconds."""

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Called with the steps to measure, and how long each is expected to take."""
        ...

    def left_out(self, what: LeftOut) -> None:
        """Called if a part of the plan cannot be measured here."""
        ...

    def step_begins(self, number: int, key: StepKey) -> None:
        """Called when step `number` (from 0) begins."""
        ...

    def waits(self, reason: str) -> None:
        """Called when the run waits, because another run holds a machine."""
        ...

    def phase(self, text: str) -> None:
        """Called when the step enters a phase: `load warms up`, `measuring`."""
        ...

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """Called when the probe is armed and has declared its series."""
        ...

    def window(self, window: Window) -> None:
        """Called when a window of a series, usually one second, was measured."""
        ...

    def watched(self) -> bool:
        """Return whether anyone watches the simulation. The engine sends frames only then."""
        ...

    def frame(self, frame: Frame) -> None:
        """Called with the next frame of the simulation."""
        ...

    def step_ends(self, step: Step) -> None:
        """Called when the step is in the record."""
        ...


class Possible(NamedTuple):
    """The steps that a target supports, and why the others are left out."""

    steps: list[StepKey]
    left_out: list[LeftOut]


class InForce(NamedTuple):
    """A deployment in force: what was done, and the target's facts if they have changed."""

    applied: Applied
    facts: Facts | None


class DeploymentStrategy(Protocol):
    """How deployments take effect on a target: by settings on the running machine, or by booting it."""

    not_put_back: list[str]
    """Settings that could not be restored after earlier steps."""

    sets_as_is: bool
    """Whether `as-is` must be set too, like any other deployment."""

    def possible(self, steps: Sequence[StepKey]) -> Possible:
        """Return the steps whose deployment the target supports."""
        ...

    def bring_about(self, name: str) -> InForce:
        """Put the deployment into force.

        Return what was done, and the target's facts if they have changed. Raises Refused if the target
        refuses it although `possible` allowed it, Abandoned if the user ends the run.
        """
        ...

    def forget(self) -> None:
        """Make the next step set its deployment again, even if that is in force."""
        ...

    def check(self) -> None:
        """Raise MeasureError if this run no longer holds the target."""
        ...

    def expected_s(self, before: str | None, name: str) -> float:
        """Return about how long (s) a change from deployment `before` to `name` takes, in addition to a
        step's overhead.
        """
        ...

    def console(self) -> bytes | None:
        """Return the target's console output during the run; None if it has no known console."""
        ...


class BootingStrategy(DeploymentStrategy, Protocol):
    """A strategy that boots the target for each deployment."""

    def leave(self) -> None:
        """Give the target its own boot parameters back. Raises MeasureError if it does not come up."""
        ...


BootsDeployments = Callable[[Target, Interrupt, Callable[[str], None]], BootingStrategy]
"""Makes the strategy of a target. The function is called with the name of each phase."""


def _save_nothing(_state: StepState | None) -> None:
    """Save nothing, for a target whose programs all end with this process."""


@dataclass(frozen=True)
class RunContext:
    """What all steps of a run share."""

    targets: Mapping[str, Target]
    """All targets of the run by name, including the peers of signal probes."""
    progress: Progress
    interrupt: Interrupt
    load_warm_up_s: float = 0.0
    controller: Controller | None = None


@dataclass(frozen=True)
class TargetContext:
    """What all steps on one target share."""

    run: RunContext
    target: Target
    facts: Facts
    calibrations: list[Calibration]
    deployments: DeploymentStrategy
    group: str | None = None
    """The control group to measure in, if `deploy apply` holds a deployment."""
    isolated: list[int] = field(default_factory=list[int])
    """The isolated CPUs of the held deployment."""
    arming_s: float = 0.0
    """How long (s) arming and stopping a probe took on the target. It shows how slow the target is."""
    loaded_cokernels: frozenset[str] = frozenset()
    """The co-kernels that rtgauge itself loaded to read the facts."""
    interrupted_step: StepState | None = None
    """A step that an earlier process began and that still runs on the target. The run resumes it."""
    save_step: Callable[[StepState | None], None] = _save_nothing
    """Saves the state that another process needs to resume the current step; None clears it."""


@dataclass(frozen=True)
class StepContext:
    """One step's settings, and its place on the target."""

    key: StepKey
    on: TargetContext
    facts: Facts
    """The target's facts in the step's deployment."""
    group: str | None
    """Where to measure while CPUs are isolated: a control group, or `cpus:LIST`."""
    isolated: list[int]
    at_armed: Callable[[], None] | None = None
    """Called when the probe is armed, to configure what the probe has created."""
    not_explained: str | None = None
    """Why kernel events cannot be recorded, although the step asks for an explanation."""

    @property
    def target(self) -> Target:
        """The target that measures the step."""
        return self.on.target

    @property
    def progress(self) -> Progress:
        """The listener of the run."""
        return self.on.run.progress

    @property
    def interrupt(self) -> Interrupt:
        """The user's request to end the run."""
        return self.on.run.interrupt


def step_files(key: StepKey, target: Target, folder: Path) -> str | None:
    """Return the folder on this target for the engine's files that the step keeps; None if it keeps none."""
    keeps = ("samples", *probes.get(key.probe).files)
    return target.files_folder(folder) if any(key.parameters.get(name) for name in keeps) else None


def step_context(key: StepKey, context: TargetContext) -> StepContext:
    """Return a step's context before the step's settings are applied."""
    return StepContext(key, context, context.facts, context.group, context.isolated)


@dataclass(frozen=True)
class StepInProgress:
    """A step that this process started, or resumed from another process."""

    context: StepContext
    folder: Path
    """The folder for the step's files."""
    started: str
    """When the step started, ISO 8601 in UTC."""
    files_before: Files
    """The target's counters and settings (CHANGE_PATHS) before the step, to compare with their values after
    it.
    """
    load: RunningLoad | None
    begin: Callable[[], None]
    """The caller must call this when the probe is armed, before `go`."""
    undo: ExitStack
    """Closed after the step's load has ended, before the deployment is undone."""
    picked_up: Guarded | None = None
    """The engine that is already measuring the step."""

    @property
    def key(self) -> StepKey:
        """The step's key."""
        return self.context.key

    @property
    def expected_ns(self) -> int | None:
        """How long the engine measures (ns), with its warm-up; None: until it is stopped."""
        probe = probes.get(self.key.probe)
        return probe.expected_ns(probe.own(self.key))

    def state(self, program: Guarded, files: str | None) -> StepState | None:
        """Return the state for another process after the engine has started; None if the engine ends with
        this one.

        `files`: the folder on the target for the engine's files.
        """
        if program.kept is None:
            return None
        load = self.load.state() if self.load is not None else None
        name = files.rpartition("/")[2] if files is not None else None
        return StepState(
            key=self.key.id,
            started=self.started,
            before=dict(self.files_before),
            program=program.kept,
            files=name,
            load=load,
        )


def now_utc() -> str:
    """Return the time in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def how_to_resume(record: Path) -> str:
    """Say how to resume, for a run that ends early."""
    return f"; continue with: rtgauge resume {shlex.quote(str(record))}"


def steps_on(name: str, steps: Sequence[StepKey]) -> list[StepKey]:
    """Return the steps that the named target measures."""
    return [key for key in steps if key.targets["self"] == name]
