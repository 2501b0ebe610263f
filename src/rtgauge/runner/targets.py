# SPDX-License-Identifier: MIT
"""Opens a run's targets, holds them until the run ends, examines them, and picks up steps that still run
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.plan.make_plan import Plan
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import normalise
from rtgauge.record.facts import Calibration, Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Run, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.stream import StreamResult, parse_line
from rtgauge.record.writer import RecordWriter
from rtgauge.runner.context import (
    BootsDeployments,
    DeploymentStrategy,
    RunContext,
    StepState,
    TargetContext,
    how_to_resume,
    program_folders,
    read_step_state,
    steps_on,
)
from rtgauge.runner.deployments import LiveDeployments
from rtgauge.runner.engine import LAST_WORDS_S, SILENCE_S
from rtgauge.runner.interrupt import Abandoned, Interrupt, abandon
from rtgauge.runner.scope import with_cokernels
from rtgauge.system.collect_facts import facts_by
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.system.deployment.extension_auditor import auditor
from rtgauge.target.kind import NotUpError, guest_kind, name_in_scheme
from rtgauge.target.open_target import TargetOpener, console
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target_protocol import Target

READINGS, FEWER_READINGS = 100_000, 1_000
"""How often each clock is read for its calibration.

100,000 readings take 0.15 s. Fewer are enough if no record is kept, or if the machine is emulated.
"""


def stoppable(waits: Callable[[str], None], interrupt: Interrupt) -> Callable[[str], None]:
    """Wrap `waits` so that a signal ends the waiting immediately."""

    def report(reason: str) -> None:
        waits(reason)
        interrupt.stop_by(abandon)

    return report


@contextmanager
def stopped_while_it_waits(interrupt: Interrupt) -> Generator[None]:
    """Raise RtgaugeError if the user ends the run while the block waits for a machine."""
    try:
        yield
    except Abandoned:
        raise RtgaugeError(
            "stopped while waiting for the machine; nothing was measured", EXIT_INTERRUPTED
        ) from None
    finally:
        interrupt.stop_by(None)


@dataclass
class NewRecord:
    """Holds the targets of a run, and begins its record in `out`, or continues the one in `into`.

    A lab guest that does not come up or answer ends the run before anything is measured. Its console is kept
    in a resumable record. `unmeasured` makes that record's run.json; None: keep nothing.
    """

    out: Path
    name: str
    into: Path | None = None
    unmeasured: Callable[[str], Run] | None = None
    with_windows: bool = True
    opener: TargetOpener = field(default_factory=TargetOpener)
    stack: ExitStack = field(default_factory=ExitStack)
    _begun: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun or not isinstance(error, NotUpError | ConnectionBroken):
            self.stack.__exit__(kind, error, trace)
            return
        # After a broken connection, other targets are held for resuming. Here nothing can be resumed.
        final_error = self._keep_console(error)
        with suppress(RtgaugeError):  # a guest that did not come up cannot be booted back either
            self.stack.close()
        raise final_error from None

    def open(self, target: str, run_id: str, label: str, lease_ns: int) -> Target:
        """Open a target and hold it until the end. Raises InputError, MeasureError."""
        return self.stack.enter_context(self.opener.open(target, run_id, label, lease_ns))

    def record(self, host: str) -> RecordWriter:
        """Open the record. A new record has no run.json yet. Raises InputError, MeasureError."""
        writer = self._writer(host)
        self._begun = True
        return writer

    def _writer(self, host: str) -> RecordWriter:
        if self.into is not None:
            return RecordWriter.open_partial(self.into)
        return RecordWriter.create(self.out, host=host, name=self.name, with_windows=self.with_windows)

    def _keep_console(self, error: NotUpError | ConnectionBroken) -> MeasureError:
        """Write a guest's console to a record; return the error that ends the run."""
        name = error.target
        own = isinstance(error, NotUpError)
        text = error.console if own else console(name) if name is not None else None
        if name is None or text is None or self.unmeasured is None:
            return MeasureError(str(error))
        try:
            writer = self._writer(name_in_scheme(name))
            place = writer.write_console(name, text)
            mark = MarkKind.GUEST_NOT_UP.mark(_with_console(error, place.relative_to(writer.path)))
            writer.write_run(self.unmeasured(writer.id).model_copy(update={"marks": [mark]}))
            writer.close_partial()
        except RtgaugeError:
            return MeasureError(str(error))  # the user has to see the first error
        return MeasureError(f"{_with_console(error, place)}{how_to_resume(writer.path)}")


def _with_console(error: NotUpError | ConnectionBroken, place: Path) -> str:
    return (
        error.with_console(place)
        if isinstance(error, NotUpError)
        else f"{error}; its console output is in {place}"
    )


@contextmanager
def console_into(writer: RecordWriter) -> Generator[None]:
    """Write a guest's console to the record, if the guest does not come up inside the block."""
    try:
        yield
    except NotUpError as error:
        if error.console is None:
            raise
        place = writer.write_console(error.target, error.console)
        raise MeasureError(f"{error.with_console(place)}{how_to_resume(writer.path)}") from None


def _deployments(plan: Plan, target: Target, run: RunContext, stack: ExitStack) -> DeploymentStrategy:
    """Return how deployments take effect on a target. A guest that boots for them gets its own boot
    parameters back when `stack` ends.
    """
    if not plan.by_boot or target.name not in plan.targets:
        return LiveDeployments(target)
    guests = guest_kind(target.name)
    assert guests is not None  # noqa: S101 - a plan with deployments by boot has guests only
    boots = cast("BootsDeployments", guests.boot_deployments())
    deployments = boots(target, run.interrupt, run.progress.phase)
    stack.callback(deployments.leave)
    return deployments


def target_contexts(
    plan: Plan,
    run: RunContext,
    stack: ExitStack,
    *,
    kept: bool = True,
    audited: bool = True,
    interrupted: Mapping[str, StepState] | None = None,
    record: Record | None = None,
) -> dict[str, TargetContext]:
    """Return the context of each target by name, after examining its facts, its clocks, and how deployments
    take effect.

    A guest that boots for deployments gets its own boot parameters back when `stack` ends. `kept`: whether
    the record is kept. `audited`: whether the facts include an audit of the settings, which advice needs.
    `interrupted`: steps that still run on their targets; the facts of these targets come from `record`.
    """
    contexts: dict[str, TargetContext] = {}
    deployments = {name: _deployments(plan, target, run, stack) for name, target in run.targets.items()}
    for name, target in run.targets.items():
        step = None if interrupted is None else interrupted.get(name)
        loaded: frozenset[str] = frozenset()
        known = record.system(name) if step is not None and record is not None else None
        if known is not None:
            facts, calibrations = known, known.calibrations
        else:
            with with_cokernels(steps_on(name, plan.steps), target, run.progress.phase) as loaded:
                facts = _facts(target, _peer(steps_on(name, plan.steps)), audited=audited)
            readings = FEWER_READINGS if facts.machine.emulated or not kept else READINGS
            calibrations = _calibrate(target, readings)
        contexts[name] = TargetContext(
            run,
            target,
            facts,
            calibrations,
            deployments[name],
            interrupted_step=step,
            loaded_cokernels=loaded,
        )
    return contexts


def _peer(steps: Iterable[StepKey]) -> str | None:
    """Return the network interface, or the IP address of the other end, that the first step with one uses."""
    peers = ((probe := probes.get(key.probe)).peer(probe.own(key)) for key in steps)
    return next((peer for peer in peers if peer is not None), None)


def _facts(target: Target, peer: str | None, *, audited: bool) -> Facts:
    """Return a target's facts, with the summary of an audit of its settings if `audited` and if an
    extension makes one. If `peer` cannot be reached, the facts have no network interface, and the engine says
    why it cannot measure.
    """
    if (known := auditor()) is None:
        return facts_by(target.read, target.machine).facts
    if peer is not None:
        try:
            peer = known.interface_of(target.read, peer)
        except (InputError, MeasureError):
            peer = None
    if not audited:
        return facts_by(target.read, target.machine, interface=peer).facts
    facts, files = facts_by(target.read, target.machine, known.paths(), peer)
    return facts.model_copy(update={"audit": known.summary(facts, files)})


def _calibrate(target: Target, readings: int) -> list[Calibration]:
    """Measure the resolution and the reading cost of each of the target's clocks."""
    result = StreamResult()
    probe = probes.clock_probe()
    parameters = normalise(probe, {"count": readings}, probe.name)
    program = target.engine(*probe.arguments(parameters, None))
    for text in program.lines(SILENCE_S):
        result.take(parse_line(text))
    program.wait(LAST_WORDS_S)
    return result.calibrations


def to_pick_up(saved: object, target: Target, *, by_boot: bool) -> StepState | None:
    """Return the step that an earlier session began and that still runs on the target, if any. End every
    other program of that session.
    """
    if not target.picked_up:
        return None
    state = read_step_state(saved)
    if state is not None and (by_boot or StepKey.model_validate_json(state["key"]).deployment != AS_IS):
        state = None  # its deployment looks the same as the next step's
    target.end_others(program_folders(state))
    if state is None:
        target.agent("restore")
    return state


def restored_marks(targets: Mapping[str, Target]) -> list[Mark]:
    """Return a mark for each target on which opening it restored settings of an earlier run."""
    marks: list[Mark] = []
    for name, target in targets.items():
        counts = Counter(str(line.get("action")) for line in target.restored_before)
        if counts:
            where = "" if len(targets) == 1 else f" on {name}"
            restored = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
            detail = f"settings that an earlier run had left changed{where} were restored first: {restored}"
            marks.append(MarkKind.RESTORED_BEFORE.mark(detail))
    return marks
