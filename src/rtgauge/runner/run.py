# SPDX-License-Identifier: MIT
"""A plan on its targets becomes a record: the targets are opened and checked, the record is begun or resumed,
and the steps are measured into it.
"""

from __future__ import annotations

import secrets
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import rtgauge
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.lab.boot_error import BootError
from rtgauge.plan.plan import Plan
from rtgauge.probe import registry as probes
from rtgauge.probe.explain_parameters import is_explained
from rtgauge.record.model import Calibration, LeftOut, Mark, Run, Severity, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.stream import StreamResult, parse_line
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner.context import (
    STOPPED_EARLY,
    Abandoned,
    DeploymentStrategy,
    Progress,
    RunContext,
    abandon,
    is_emulated,
    now_utc,
)
from rtgauge.runner.deploy_live import LiveDeployments, held_deployment, isolated_in, with_rtai
from rtgauge.runner.engine_stream import LAST_WORDS_S, SILENCE_S
from rtgauge.runner.feasibility import (
    accepted_steps,
    check_watching,
    is_tried_by_measuring,
    on_target,
    possible_steps,
    refuse_wrong_input,
)
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.resume_state import StepState, program_folders, read_step_state
from rtgauge.runner.runtime_choice import on_chosen_runtime
from rtgauge.runner.schedule import (
    RunOptions,
    all_targets,
    how_to_resume,
    lease_of,
    new_run,
    plan_of,
    remaining_steps,
    steps_on,
)
from rtgauge.runner.step_loop import More, measure_run, saying_how_to_resume
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.system.facts import facts_by
from rtgauge.target.address import LAB
from rtgauge.target.factory import console
from rtgauge.target.opener import TargetOpener
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Target
from rtgauge.units import NS_PER_S, format_cpu_list

NOT_UP = "guest-not-up"
READINGS, FEWER_READINGS = 100_000, 1_000
"""Of each clock, to calibrate it.

100,000 take 0.15 s: fewer on an emulated machine, whose costs are the emulator's, and where no record is
kept.
"""


def start_run(
    plan: Plan,
    options: RunOptions,
    progress: Progress,
    interrupt: Interrupt,
    more: More | None = None,
    *,
    into: Path | None = None,
    program: Callable[[], AbstractContextManager[int]] | None = None,
) -> tuple[Path, Run, list[Step]]:
    """Measure a plan from its beginning, and then the steps that `more` adds.

    Gives the record's folder, its run.json and its steps. Raises InputError or MeasureError; what was
    measured until then is in the folder
    whose name ends in `.partial`. `into`: the folder of a record in which nothing is measured yet. `program`:
    of a plan with one target and steps of
    `watch`: starts the program that they watch, and gives its number. It is entered once the target is ours
    and nothing refuses to measure.
    """
    identity, label = f"{plan.name}-{secrets.token_hex(4)}", shlex.join(options.command)
    lease_ns = lease_of(plan.steps, plan.load_warm_up_ns, options)
    unmeasured = partial(new_run, plan, options) if options.kept else None
    check = partial(refuse_wrong_input, plan.steps, program_comes=program is not None)
    opener = TargetOpener(options.wait_s, _stoppable(progress.waits, interrupt), check)
    with _NewRecord(options.out, plan.name, into, unmeasured, options.with_windows, opener=opener) as new:
        # All are held from the beginning: what cannot be measured is known before anything is.
        with _stopped_while_it_waits(interrupt):
            targets = {name: new.open(name, identity, label, lease_ns) for name in all_targets(plan)}
        audited = (
            options.kept or options.with_windows or any(is_explained(step.parameters) for step in plan.steps)
        )
        contexts: dict[str, RunContext] = {}
        steps: list[StepKey] = []
        left_out: list[LeftOut] = []
        deployments = {
            name: _deployments(plan, target, progress, interrupt, new.stack)
            for name, target in targets.items()
        }
        for name, target in targets.items():
            possible, missing = possible_steps(steps_on(name, plan.steps), target, deployments[name])
            steps += possible
            left_out += [on_target(part, name, targets) for part in missing]
        for missing in left_out:
            progress.left_out(missing)
        if not steps:
            raise MeasureError(
                f"no step of the plan can be measured here: {left_out[0].reason}; {left_out[0].remedy}"
            )
        for name in targets:
            contexts[name] = replace(
                _context(
                    name,
                    targets,
                    plan,
                    deployments[name],
                    progress,
                    interrupt,
                    kept=options.kept,
                    audited=audited,
                ),
                late_imports=options.late_imports,
            )
        held: list[Mark] = []
        accepted: list[StepKey] = []
        for name, context in list(contexts.items()):
            contexts[name], marks = _in_held_deployment(steps_on(name, steps), context)
            held += marks
            chosen, why = on_chosen_runtime(steps_on(name, steps), contexts[name])
            held += why
            if program is not None or (not options.kept and is_tried_by_measuring(chosen)):
                accepted += chosen
                continue
            takeable, refused, arming_s = accepted_steps(chosen, contexts[name])
            contexts[name] = replace(contexts[name], arming_s=arming_s)
            accepted += takeable
            for missing in refused:
                left_out.append(on_target(missing, name, targets))
                progress.left_out(left_out[-1])
        if not accepted:
            raise MeasureError(f"{left_out[-1].what}: {left_out[-1].reason}; {left_out[-1].remedy}")
        if program is not None:
            (name,) = targets
            for key in accepted:
                check_watching(key, contexts[name])
            number = new.stack.enter_context(program())
            accepted = [
                key.model_copy(update={"parameters": key.parameters | {"pid": number, "program": None}})
                for key in accepted
            ]
        writer = new.record(str(contexts[plan.targets[0]].facts.get("host", "machine")))
        run = new_run(plan, options, writer.id)
        run.planned, run.left_out, run.marks = accepted, left_out, [*_restored_marks(targets), *held]
        writer.write_run(run)
        with saying_how_to_resume(writer, options):
            return measure_run(writer, run, [], contexts, more)


def resume_run(
    folder: Path, options: RunOptions, progress: Progress, interrupt: Interrupt, more: More | None = None
) -> tuple[Path, Run, list[Step]]:
    """Resume a record whose name ends in `.partial`: finished steps stay as they are, the others, and those
    that `more` adds, are measured.

    What went on by itself on another machine, where only the connection or rtgauge had ended, is picked up.
    Gives and raises as `start_run` does.
    """
    folder = folder.resolve() if folder.is_symlink() else folder
    record = Record.open(folder)
    unfinished = record.run
    if unfinished.state == "complete" and folder.name.endswith(PARTIAL):
        # It ended between writing its state and getting its new name.
        return RecordWriter(folder, unfinished.id, unfinished).finish("complete"), unfinished, []
    if unfinished.rtgauge != rtgauge.__version__:
        versions = f"{folder} was begun with rtgauge {unfinished.rtgauge}, this is {rtgauge.__version__}"
        raise InputError(f"{versions}: resume it with that version, or start a new run")
    plan = plan_of(unfinished)
    if unfinished.state != "complete" and not record.systems:
        # A guest did not come up: no target was measured yet.
        return start_run(plan, options, progress, interrupt, more, into=folder)
    lease_ns = lease_of(unfinished.planned, plan.load_warm_up_ns, options)
    label = shlex.join(options.command)
    locked = RecordWriter(folder, unfinished.id)
    opener = TargetOpener(options.wait_s, _stoppable(progress.waits, interrupt))
    with ExitStack() as stack:
        # The machine is locked before the record is touched: the run that is resumed may be going on.
        sessions = {name: locked.read_session(name) or {} for name in unfinished.targets}
        with _console_into(locked), _stopped_while_it_waits(interrupt):
            targets = {
                name: stack.enter_context(
                    opener.open(name, unfinished.id, label, lease_ns, sessions[name].get("session"))
                )
                for name in unfinished.targets
            }
        writer = RecordWriter.open_partial(folder)
        record = writer.record()
        finished = [step for step in record.steps if step.end_reason not in STOPPED_EARLY]
        run = record.run.model_copy(update={"steps": [step.id for step in finished]})
        contexts: dict[str, RunContext] = {}
        held: list[Mark] = []
        again = ""
        for name, target in targets.items():
            interrupted_step = _to_pick_up(sessions[name].get("step"), target, by_boot=plan.by_boot)
            if target.picked_up and interrupted_step is None and sessions[name].get("step") is not None:
                again = "; a step in a deployment, or by booting, is not picked up: it is measured again"
            deployments = _deployments(plan, target, progress, interrupt, stack)
            # A target that measures at this moment is not examined again.
            known = record.system(name) if interrupted_step is not None else None
            context = _context(name, targets, plan, deployments, progress, interrupt, known)
            contexts[name] = replace(context, interrupted_step=interrupted_step)
        for name, context in list(contexts.items()):
            if context.interrupted_step is None:
                remaining = steps_on(name, remaining_steps(run, finished))
                contexts[name], marks = _in_held_deployment(remaining, context)
                held += marks
                accepted, refused, arming_s = accepted_steps(remaining, contexts[name])
                contexts[name] = replace(contexts[name], arming_s=arming_s)
                # What was possible when the run began, and is not now.
                run.planned = [key for key in run.planned if key not in remaining or key in accepted]
                for missing in refused:
                    run.left_out.append(on_target(missing, name, targets))
                    progress.left_out(run.left_out[-1])
        if not finished and not run.planned:
            raise MeasureError(
                f"{run.left_out[-1].what}: {run.left_out[-1].reason}; {run.left_out[-1].remedy}"
            )
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        resumed = Mark(
            name="resumed",
            severity=Severity.NOTE,
            detail=f"measured in more than one session; resumed {now_utc()}{again}",
        )
        run.marks += [resumed, *_restored_marks(targets), *held]
        writer.write_run(run)
        with saying_how_to_resume(writer, options):
            return measure_run(writer, run, finished, contexts, more)


def _stoppable(waits: Callable[[str], None], interrupt: Interrupt) -> Callable[[str], None]:
    """`waits`, after which a signal ends the waiting at once."""

    def tell(reason: str) -> None:
        waits(reason)
        interrupt.stop_by(abandon)

    return tell


@contextmanager
def _stopped_while_it_waits(interrupt: Interrupt) -> Generator[None]:
    """Raises RtgaugeError where the user ends the run while it waits for a machine."""
    try:
        yield
    except Abandoned:
        raise RtgaugeError(
            "stopped while it waited for the machine: nothing was measured", EXIT_INTERRUPTED
        ) from None
    finally:
        interrupt.stop_by(None)


def find_partial(out: Path) -> Path:
    """The newest record under `out` that was not finished. Raises InputError."""
    partial_records = sorted(path for path in out.glob("*.partial") if (path / "run.json").is_file())
    if not partial_records:
        raise InputError(f"nothing to resume: {out} holds no record whose name ends in .partial")
    return partial_records[-1]


@dataclass
class _NewRecord:
    """Holds the targets of a run, and begins its record in `out`, or in the folder `into` that was begun
    before.

    A guest of the lab that does not come up, or does not answer, ends the run before there is anything to
    write. Its console is kept all the
    same, in a record that can be resumed; `unmeasured` makes its run.json, None: nothing of this run is kept.
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
        if self._begun or not isinstance(error, BootError | ConnectionBroken):
            self.stack.__exit__(kind, error, trace)
            return
        # Where the connection to one breaks, what the others hold is left to be resumed. Here there is
        # nothing yet that could be.
        final_error = self._keep_console(error)
        with suppress(RtgaugeError):  # a guest that does not come up cannot be left as it was found either
            self.stack.close()
        raise final_error from None

    def open(self, target: str, run_id: str, label: str, lease_ns: int) -> Target:
        """Open and hold a target until the end. Raises InputError, MeasureError."""
        return self.stack.enter_context(self.opener.open(target, run_id, label, lease_ns))

    def record(self, host: str) -> RecordWriter:
        """The record, without its run.json where it is a new one. Raises InputError, MeasureError."""
        writer = self._writer(host)
        self._begun = True
        return writer

    def _writer(self, host: str) -> RecordWriter:
        if self.into is not None:
            return RecordWriter.open_partial(self.into)
        return RecordWriter.create(self.out, host=host, name=self.name, with_windows=self.with_windows)

    def _keep_console(self, error: BootError | ConnectionBroken) -> MeasureError:
        """The error that ends the run: with the guest's console in a record, where it is a guest that ended
        it.
        """
        name = LAB + error.guest if isinstance(error, BootError) else error.target
        text = error.console if isinstance(error, BootError) else console(name) if name is not None else None
        if name is None or text is None or self.unmeasured is None:
            return MeasureError(str(error))
        try:
            writer = self._writer(name.removeprefix(LAB))
            place = writer.write_console(name, text)
            mark = Mark(
                name=NOT_UP,
                severity=Severity.NOTE,
                detail=_with_console(error, place.relative_to(writer.path)),
            )
            writer.write_run(self.unmeasured(writer.id).model_copy(update={"marks": [mark]}))
            writer.close_partial()
        except RtgaugeError:
            return MeasureError(str(error))  # what came first is what the user has to know
        return MeasureError(f"{_with_console(error, place)}{how_to_resume(writer.path)}")


def _with_console(error: BootError | ConnectionBroken, place: Path) -> str:
    return (
        error.with_console(place) if isinstance(error, BootError) else f"{error}; its console is in {place}"
    )


@contextmanager
def _console_into(writer: RecordWriter) -> Generator[None]:
    """While a record's targets are opened again: the console of a guest that does not come up goes into the
    record.
    """
    try:
        yield
    except BootError as error:
        if error.console is None:
            raise
        place = writer.write_console(LAB + error.guest, error.console)
        raise MeasureError(f"{error.with_console(place)}{how_to_resume(writer.path)}") from None


def _deployments(
    plan: Plan, target: Target, progress: Progress, interrupt: Interrupt, stack: ExitStack
) -> DeploymentStrategy:
    """How deployments come into force on a target; a guest that is booted for them is left as it was found
    when `stack` ends.
    """
    if not plan.by_boot or target.name not in plan.targets:
        return LiveDeployments(target)
    from rtgauge.runner.deploy_boot import BootDeployments
    from rtgauge.target.ssh import SshTarget

    assert isinstance(target, SshTarget)  # noqa: S101 - a plan with deployments by boot has guests only
    deployments = BootDeployments(target, interrupt, progress.phase)
    stack.callback(deployments.leave)
    return deployments


def _context(
    name: str,
    targets: Mapping[str, Target],
    plan: Plan,
    deployments: DeploymentStrategy,
    progress: Progress,
    interrupt: Interrupt,
    known: Mapping[str, Any] | None = None,
    *,
    kept: bool = True,
    audited: bool = True,
) -> RunContext:
    """What the steps of one target share.

    `known`: its facts and calibrations as a record has them, which are then not read and measured again.
    `kept`: whether the record is.
    `audited`: whether the facts have what an audit of the machine's settings says, which advice is made from.
    """
    target = targets[name]
    if known is not None:
        facts: Mapping[str, Any] = {fact: value for fact, value in known.items() if fact != "calibrations"}
        calibrations = [Calibration.model_validate(written) for written in known.get("calibrations", [])]
    else:
        with with_rtai(steps_on(name, plan.steps), target, progress.phase):
            facts = _audited_facts(target) if audited else facts_by(target.read, target.machine)[0]
        calibrations = _calibrate(target, FEWER_READINGS if is_emulated(facts) or not kept else READINGS)
    return RunContext(
        target,
        targets,
        facts,
        calibrations,
        progress,
        interrupt,
        plan.load_warm_up_ns / NS_PER_S,
        plan.controller,
        deployments,
    )


def _audited_facts(target: Target) -> dict[str, Any]:
    """The facts of a target, and what an audit of its settings says in short."""
    from rtgauge.system.audit import AUDIT, audit, summarise
    from rtgauge.system.rules import read_rules, rule_paths

    rules = read_rules()
    facts, files = facts_by(target.read, target.machine, rule_paths(rules))
    return {**facts, AUDIT: summarise(audit(rules, facts, files)).model_dump()}


def _calibrate(target: Target, readings: int) -> list[Calibration]:
    """Resolution and reading cost of every clock of the target."""
    result = StreamResult()
    program = target.engine(*probes.clock_probe().arguments({"count": readings}, None))
    for text in program.lines(SILENCE_S):
        result.take(parse_line(text))
    program.wait(LAST_WORDS_S)
    return result.calibrations


def _in_held_deployment(steps: Sequence[StepKey], context: RunContext) -> tuple[RunContext, list[Mark]]:
    """The context in the deployment that `deploy apply` holds, where it holds one, and a mark for it.

    Raises MeasureError where a step is for another one.
    """
    held = held_deployment(steps, context.target)
    if held is None:
        return context, []
    isolated = isolated_in(held, context.target)
    where = f", on CPU {format_cpu_list(isolated)}" if isolated else ""
    mark = Mark(
        name="deployment-held",
        severity=Severity.NOTE,
        detail=f"measured in the deployment {held.name}, which `deploy apply` holds{where}",
    )
    return replace(context, group=held.group, isolated=isolated), [mark]


def _to_pick_up(saved: object, target: Target, *, by_boot: bool) -> StepState | None:
    """The step that goes on by itself on a target since an earlier session, to be picked up; every other
    program of that session is ended there.
    """
    if not target.picked_up:
        return None
    state = read_step_state(saved)
    if state is not None and (by_boot or StepKey.model_validate_json(state["key"]).deployment != AS_IS):
        state = None  # its deployment could not be told from the next one's: it is measured again
    target.end_others(program_folders(state))
    if state is None:
        target.agent("restore")
    return state


def _restored_marks(targets: Mapping[str, Target]) -> list[Mark]:
    marks: list[Mark] = []
    for name, target in targets.items():
        counts = Counter(str(line.get("action")) for line in target.restored_before)
        if counts:
            where = "" if len(targets) == 1 else f" on {name}"
            restored = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
            detail = f"settings that an earlier run had left{where} were put back first: {restored}"
            marks.append(Mark(name="restored-before", severity=Severity.NOTE, detail=detail))
    return marks
