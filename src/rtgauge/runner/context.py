# SPDX-License-Identifier: MIT
"""What the steps of a run, of a target and one step are measured with, whom they tell, how a step that is not
measured ends, and what another process needs to pick one up.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rtgauge.errors import EXIT_INPUT, MeasureError
from rtgauge.load.lifecycle import KeptLoad, RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.record.facts import Calibration, Facts
from rtgauge.record.model import LeftOut, Step, StepKey
from rtgauge.record.stream import Frame, SeriesLine, Window
from rtgauge.runner.interrupt import Interrupt
from rtgauge.system.deployment.apply import Applied
from rtgauge.system.priorities import Controller
from rtgauge.target.target import FolderName, Guarded, ProgramPlace, Target

STOPPED_EARLY = ("stopped", "died", "instrument-died")
"""End reasons of a step that is not finished: it is measured again when the run is resumed."""


class Abandoned(Exception):  # noqa: N818 - no error: the user said so
    """The user ended the run before this step had measured anything."""


def abandon() -> None:
    """For `Interrupt.stop_by`: end at once what takes long before the measuring begins. Raises Abandoned."""
    raise Abandoned


class LoadFailed(MeasureError):  # noqa: N818 - reads as what it is
    """A load could not be started; the other steps can be measured all the same."""

    def __init__(self, load: str, reason: str) -> None:
        super().__init__(f"load {load}: {reason}")
        self.load = load
        self.reason = reason


class NotHere(MeasureError):  # noqa: N818 - reads as what it is
    """This machine lacks `what` a step needs; the other steps can be measured all the same."""

    def __init__(self, what: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.what = what
        self.reason = reason
        self.remedy = remedy


class NotOnCokernel(NotHere):
    """The co-kernel has no such probe or option."""

    status = EXIT_INPUT


class StepState(TypedDict):
    """Of a step on a target that outlives this process: its key as JSON, when it was started, the target's
    files before it, and the names of the folders
    of its programs and files there."""

    key: str
    started: str
    before: dict[str, Any]
    program: ProgramPlace
    files: FolderName | None
    load: KeptLoad | None


def read_step_state(written: object) -> StepState | None:
    """The state that a record holds; None where nothing can be picked up from it."""
    try:
        state = TypeAdapter(StepState).validate_python(written, strict=True)
        StepKey.model_validate_json(state["key"])
    except ValidationError:
        return None
    return state


def program_folders(state: StepState | None) -> list[str]:
    """The names of the folders of a step's programs on the target."""
    if state is None:
        return []
    return [
        state["program"]["name"],
        *(part["kept"]["name"] for part in (state["load"]["parts"] if state["load"] is not None else [])),
    ]


class Progress(Protocol):
    """Listens to a run: the runner calls, a display shows. Times are in seconds."""

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """The steps that will be measured and how long each is expected to take."""
        ...

    def left_out(self, what: LeftOut) -> None:
        """A part of the plan that cannot be measured here."""
        ...

    def step_begins(self, number: int, key: StepKey) -> None:
        """Step `number` (from 0) begins."""
        ...

    def waits(self, reason: str) -> None:
        """The run has not begun: another one holds a machine."""
        ...

    def phase(self, text: str) -> None:
        """What the step does now: `load warms up`, `measuring`."""
        ...

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """What the step measures, known when the probe is armed."""
        ...

    def window(self, window: Window) -> None:
        """One second of one series was measured."""
        ...

    def watched(self) -> bool:
        """Whether somebody watches what the step simulates: frames are asked of the engine only then."""
        ...

    def frame(self, frame: Frame) -> None:
        """What the step simulates has moved."""
        ...

    def step_ends(self, step: Step) -> None:
        """The step is in the record."""
        ...


class DeploymentStrategy(Protocol):
    """How deployments come into force on one target: by settings while it runs, or by booting
    it.
    """

    not_put_back: list[str]
    """Settings that could not be put back after a step, so far."""

    sets_as_is: bool
    """Whether `as-is` has to be brought about too, as any other deployment."""

    def possible(self, steps: Sequence[StepKey]) -> tuple[list[StepKey], list[LeftOut]]:
        """The steps whose deployment the target can take, and what is left out and why."""
        ...

    def bring_about(self, name: str) -> tuple[Applied, Facts | None]:
        """Put the deployment into force.

        Gives what was done and, where they are not those of before, the target's facts.

        Raises Refused where the target cannot take it after all, Abandoned where the user ends the run
        meanwhile.
        """
        ...

    def forget(self) -> None:
        """The next deployment is brought about anew, also if it is in force."""
        ...

    def check(self) -> None:
        """Raises MeasureError where the target is no longer held by this run."""
        ...

    def expected_s(self, before: str | None, name: str) -> float:
        """About how long it takes, in s, to get from the deployment `before` to `name`, beyond what every
        step takes.
        """
        ...

    def console(self) -> bytes | None:
        """What the target wrote on its console during the run; None where it has none that is known."""
        ...


def _save_nothing(_state: StepState | None) -> None:
    """For a target where nothing outlives this process."""


@dataclass(frozen=True)
class RunContext:
    """What every step of a run shares."""

    targets: Mapping[str, Target]
    """Every target of the run by its name: also those that play the other role of a signal probe."""
    progress: Progress
    interrupt: Interrupt
    load_warm_up_s: float = 0.0
    controller: Controller | None = None


@dataclass(frozen=True)
class TargetContext:
    """What every step of a run on one target shares."""

    run: RunContext
    target: Target
    facts: Facts
    calibrations: list[Calibration]
    deployments: DeploymentStrategy
    group: str | None = None
    """Where to measure in the deployment that `deploy apply` holds: a control group."""
    isolated: list[int] = field(default_factory=list[int])
    """The isolated CPUs of that deployment."""
    arming_s: float = 0.0
    """How long it took on the target to arm a probe and to stop it again: what goes slowly there."""
    interrupted_step: StepState | None = None
    """A step that goes on by itself on the target since an earlier process measured it, to be picked up."""
    save_step: Callable[[StepState | None], None] = _save_nothing
    """Writes down what another process needs to pick up the step that is being measured; None: no step is."""


@dataclass(frozen=True)
class StepContext:
    """What is set for one step, and where it is measured."""

    key: StepKey
    on: TargetContext
    facts: Facts
    """Of the target in the step's deployment."""
    group: str | None
    """Where to measure while CPUs are set aside: a control group, or `cpus:LIST`."""
    isolated: list[int]
    at_armed: Callable[[], None] | None = None
    """Called once the probe is armed: for settings of what the probe itself has made."""
    not_explained: str | None = None
    """Why the kernel's events cannot be recorded for a step that is to be explained."""

    @property
    def target(self) -> Target:
        """The target that the step is measured on."""
        return self.on.target

    @property
    def progress(self) -> Progress:
        """Who listens to the run."""
        return self.on.run.progress

    @property
    def interrupt(self) -> Interrupt:
        """Whether the user has ended the run."""
        return self.on.run.interrupt


def step_files(key: StepKey, target: Target, folder: Path) -> str | None:
    """Where the engine on this target writes files that the step keeps; None: it keeps none."""
    keeps = ("samples", *probes.get(key.probe).files)
    return target.files_folder(folder) if any(key.parameters.get(name) for name in keeps) else None


def step_context(key: StepKey, context: TargetContext) -> StepContext:
    """A step for which nothing is set."""
    return StepContext(key, context, context.facts, context.group, context.isolated)


@dataclass(frozen=True)
class StepInProgress:
    """A step that was begun, here or by the process that it was picked up from."""

    context: StepContext
    folder: Path
    """Where its files go."""
    started: str
    """ISO 8601, UTC."""
    files_before: Mapping[str, Any]
    """What the target's files that must not change said before it."""
    load: RunningLoad | None
    begin: Callable[[], None]
    """To be called when the probe is armed, before it is told to go."""
    undo: ExitStack
    """Left when the step's load has ended, before its deployment is put back."""
    picked_up: Guarded | None = None
    """The engine that measures it already."""

    @property
    def key(self) -> StepKey:
        """Which step it is."""
        return self.context.key

    @property
    def expected_ns(self) -> int | None:
        """How long the engine measures, with its warm-up; None: until it is stopped."""
        probe = probes.get(self.key.probe)
        return probe.expected_ns(probe.own(self.key))

    def state(self, program: Guarded, files: str | None) -> StepState | None:
        """For another process, once the engine runs; None where it ends with this one.

        `files`: the folder on the target that the engine writes to.
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
    """ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


RESUMING = ("run", "gate", "tune")
"""The commands with --resume. A record that another one began goes on with `rtgauge run`."""


def how_to_resume(record: Path, command: Sequence[str] = ()) -> str:
    """The end of every line that ends a run early and keeps its record; `command` began it."""
    verb = command[1] if len(command) > 1 and command[1] in RESUMING else RESUMING[0]
    return f"; go on with: rtgauge {verb} --resume {shlex.quote(str(record))}"


def steps_on(name: str, steps: Sequence[StepKey]) -> list[StepKey]:
    """The steps that are measured on the target of that name."""
    return [key for key in steps if key.targets["self"] == name]
