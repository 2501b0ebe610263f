# SPDX-License-Identifier: MIT
"""Runs a plan: opens and checks its targets, begins or resumes the record, and measures the steps into it."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.build import commit
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.input_file import real_path
from rtgauge.plan.make_plan import Plan
from rtgauge.probe.explain_parameters import is_explained
from rtgauge.record.facts import UNKNOWN
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import STOPPED_EARLY, Mark, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner.choice import Choice, check_watching, choose, refuse_wrong_input
from rtgauge.runner.context import Progress, RunContext, StepState, TargetContext, how_to_resume, now_utc
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.step_loop import More, RunOutcome, expected_s, measure_run, remaining_steps
from rtgauge.runner.targets import (
    NewRecord,
    console_into,
    restored_marks,
    stoppable,
    stopped_while_it_waits,
    target_contexts,
    to_pick_up,
)
from rtgauge.system.priorities import Controller
from rtgauge.target.guard import LEASE_NS
from rtgauge.target.open_target import TargetOpener, hold_places
from rtgauge.target.target_protocol import Target
from rtgauge.units import NS_PER_S

HOLD_S = (60.0, 15 * 60.0)
"""The shortest and the longest default (s) for `hold_ns`. A run of short steps is soon repeated, so it must
not hold its target for long.
"""


@dataclass(frozen=True)
class RunOptions:
    """Where records go (`out`), the command line, and whether the record is kept."""

    out: Path
    command: Sequence[str]
    kept: bool = True
    with_windows: bool = True
    """Whether the record needs its windows, to be judged, drawn or compared, or for the shares within bounds.
    """
    judged: bool = True
    """Whether the record is kept or judged, so that its facts include an audit of the settings."""
    hold_ns: int | None = None
    """After a broken connection, how long (ns) another machine waits to be resumed, beyond its longest step.

    None: as long as the longest step, within HOLD_S.
    """
    wait_s: float = 0.0
    """How long (s) to wait for a machine that another run holds."""


def start_run(
    plan: Plan,
    options: RunOptions,
    progress: Progress,
    interrupt: Interrupt,
    more: More | None = None,
    *,
    into: Path | None = None,
    program: Callable[[], AbstractContextManager[int]] | None = None,
) -> RunOutcome:
    """Measure a plan from its beginning, then the steps that `more` adds.

    `into`: the folder of a record without measurements. `program`: for a plan with one target and steps of
    `watch`, starts the watched program and returns its PID; entered when the target is ready. Raises
    InputError or MeasureError; results up to then are in the `.partial` folder.
    """
    if options.kept and into is None:
        RecordWriter.check_out(options.out)
    identity, label = f"{plan.name}-{secrets.token_hex(4)}", shlex.join(options.command)
    lease_ns = lease_of(plan.steps, plan.load_warm_up_ns, options)
    unmeasured = partial(new_run, plan, options) if options.kept else None
    check = partial(refuse_wrong_input, plan.steps, program_comes=program is not None)
    opener = TargetOpener(options.wait_s, stoppable(progress.waits, interrupt), check)
    with NewRecord(options.out, plan.name, into, unmeasured, options.with_windows, opener=opener) as new:
        # Hold all targets from the beginning, to know before measuring what cannot be measured.
        with stopped_while_it_waits(interrupt):
            hold_places(all_targets(plan), options.wait_s)
            targets = {name: new.open(name, identity, label, lease_ns) for name in all_targets(plan)}
        audited = options.judged or any(is_explained(step.parameters) for step in plan.steps)
        shared = _run_context(plan, targets, progress, interrupt)
        contexts = target_contexts(plan, shared, new.stack, kept=options.kept, audited=audited)
        tries = "never" if program is not None else "always" if options.kept else "unless-alone"
        choice = choose(plan.steps, contexts, tries=tries)
        if not choice.steps:
            raise MeasureError(choice.why_none())
        contexts, steps = choice.contexts, choice.steps
        if program is not None:
            (context,) = contexts.values()
            for key in steps:
                check_watching(key, context)
            number = new.stack.enter_context(program())
            steps = [key.with_parameters(pid=number, program=None) for key in steps]
        writer = new.record(contexts[plan.targets[0]].facts.host or UNKNOWN)
        run = new_run(plan, options, writer.id)
        run.planned, run.left_out = steps, choice.left_out
        run.marks = [*restored_marks(targets), *choice.marks]
        writer.write_run(run)
        with saying_how_to_resume(writer, options):
            return measure_run(writer, run, [], contexts, more)


def resume_run(
    folder: Path,
    options: RunOptions,
    progress: Progress,
    interrupt: Interrupt,
    more: More | None = None,
    *,
    complete: bool = False,
    replaced_keys: Mapping[str, object] | None = None,
) -> RunOutcome:
    """Resume a record whose name ends in `.partial`. Keep finished steps; measure the other steps, and the
    steps that `more` adds. With `complete`, a complete record continues too; `more` must then add steps.
    `replaced_keys`: keys of the plan to replace, if the user allows more time than before.

    A step that continued on another machine, because only the connection or rtgauge ended, is continued.
    Raises as `start_run` does.
    """
    folder = real_path(folder) if folder.is_symlink() else folder
    record = Record.open(folder)
    unfinished = record.run
    locked = RecordWriter(folder, unfinished.id)
    locked.check_folders()
    if unfinished.state == "complete" and folder.name.endswith(PARTIAL):
        # The run ended after writing its state, but before the folder got its new name.
        path = RecordWriter(folder, unfinished.id, unfinished).finish("complete")
        return RunOutcome(path, unfinished, [])
    if unfinished.rtgauge != rtgauge.__version__:
        versions = f"rtgauge {unfinished.rtgauge} began {folder}, but this is {rtgauge.__version__}"
        raise InputError(f"{versions}; resume it with that version, or start a new run")
    plan = plan_of(unfinished)
    if unfinished.state != "complete" and not record.systems:
        # If a guest did not come up, no target was measured.
        return start_run(plan, options, progress, interrupt, more, into=folder)
    lease_ns = lease_of(unfinished.planned, plan.load_warm_up_ns, options)
    label = shlex.join(options.command)
    opener = TargetOpener(options.wait_s, stoppable(progress.waits, interrupt))
    with ExitStack() as stack:
        # Hold the machine before touching the record, because the run may still be active.
        sessions = {name: locked.read_session(name) or {} for name in unfinished.targets}
        with console_into(locked), stopped_while_it_waits(interrupt):
            hold_places(unfinished.targets, options.wait_s)
            targets = {
                name: stack.enter_context(
                    opener.open(name, unfinished.id, label, lease_ns, sessions[name].get("session"))
                )
                for name in unfinished.targets
            }
        writer = RecordWriter.open_partial(folder, complete=complete)
        record = writer.record()
        finished = [step for step in record.steps if step.end_reason not in STOPPED_EARLY]
        run = record.run.model_copy(
            update={
                "steps": [step.id for step in finished],
                "plan": {**record.run.plan, **(replaced_keys or {})},
            }
        )
        interrupted, not_picked_up = _interrupted(targets, sessions, by_boot=plan.by_boot)
        shared = _run_context(plan, targets, progress, interrupt)
        contexts = target_contexts(plan, shared, stack, interrupted=interrupted, record=record)
        choice = _choose_again(run, finished, contexts, interrupted)
        contexts |= choice.contexts
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        resumed = MarkKind.RESUMED.mark(
            f"the run was measured in more than one session; it was resumed at {now_utc()}{not_picked_up}"
        )
        run.marks += [resumed, *_kernel_marks(record, contexts), *restored_marks(targets), *choice.marks]
        writer.write_run(run)
        with saying_how_to_resume(writer, options):
            return measure_run(writer, run, finished, contexts, more)


def _choose_again(
    run: Run,
    finished: list[Step],
    contexts: Mapping[str, TargetContext],
    interrupted: Mapping[str, StepState],
) -> Choice:
    """Leave in `run.planned` what the machine, which may have changed, can still measure. Nothing is tried on
    a target where a step continues. Raises MeasureError if there is nothing to measure.
    """
    free = {name: context for name, context in contexts.items() if name not in interrupted}
    remaining = [key for key in remaining_steps(run, finished) if key.targets["self"] in free]
    choice = choose(remaining, free)
    run.planned = [key for key in run.planned if key not in remaining or key in choice.steps]
    run.left_out += choice.left_out
    if not finished and not run.planned:
        raise MeasureError(choice.why_none())
    return choice


def _interrupted(
    targets: Mapping[str, Target], sessions: Mapping[str, dict[str, Any]], *, by_boot: bool
) -> tuple[dict[str, StepState], str]:
    """Return the steps to continue, by target, and the words for steps that cannot be continued."""
    interrupted: dict[str, StepState] = {}
    not_picked_up = ""
    for name, target in targets.items():
        saved = sessions[name].get("step")
        state = to_pick_up(saved, target, by_boot=by_boot)
        if state is not None:
            interrupted[name] = state
        elif target.picked_up and saved is not None:
            not_picked_up = (
                "; rtgauge does not continue an interrupted step in a deployment, but measures it again, "
                "even if the machine was booted into the deployment"
            )
    return interrupted, not_picked_up


def _kernel_marks(record: Record, contexts: Mapping[str, TargetContext]) -> list[Mark]:
    """Return a mark for each target that no longer runs the kernel in its record."""
    marks: list[Mark] = []
    for name in contexts.keys() & record.systems.keys():
        before, now = record.system(name).kernel.release, contexts[name].facts.kernel.release
        if before != now:
            marks.append(
                MarkKind.KERNEL_CHANGED.mark(
                    f"{name} ran kernel {before} before the run was resumed, and runs kernel {now} now"
                )
            )
    return marks


def _run_context(
    plan: Plan, targets: Mapping[str, Target], progress: Progress, interrupt: Interrupt
) -> RunContext:
    return RunContext(targets, progress, interrupt, plan.load_warm_up_ns / NS_PER_S, plan.controller)


def find_partial(out: Path) -> Path:
    """Return the newest unfinished record under `out`. Raises InputError if there is none."""
    partial_records = sorted(path for path in out.glob("*.partial") if (path / "run.json").is_file())
    if not partial_records:
        raise InputError(
            f"there is nothing to resume, because {out} has no record whose name ends in .partial"
        )
    return partial_records[-1]


@contextmanager
def saying_how_to_resume(writer: RecordWriter, options: RunOptions) -> Generator[None]:
    """Append the way to resume to every error that ends a run early."""
    how = how_to_resume(writer.path) if options.kept else ""
    try:
        yield
    except KeyboardInterrupt:
        raise RtgaugeError(f"stopped at once{how}", EXIT_INTERRUPTED) from None
    except RtgaugeError as error:
        raise error.reword(f"{error}{how}") from None


def lease_of(steps: Sequence[StepKey], load_warm_up_ns: int, options: RunOptions) -> int:
    """Return how long (ns) a target continues without hearing from this run."""
    if not options.kept:
        return LEASE_NS
    longest_s = max((expected_s(key, load_warm_up_ns) for key in steps), default=0.0)
    hold_ns = (
        round(min(max(longest_s, HOLD_S[0]), HOLD_S[1]) * NS_PER_S)
        if options.hold_ns is None
        else options.hold_ns
    )
    # Under load, a study may add a step as long as the longest idle step.
    return round(longest_s * NS_PER_S) + load_warm_up_ns + hold_ns


def all_targets(plan: Plan) -> list[str]:
    """Return all targets that measure steps or are a peer."""
    peers = [key.peer.target for key in plan.steps if key.peer is not None]
    return list(dict.fromkeys([*plan.targets, *peers]))


def new_run(plan: Plan, options: RunOptions, record: str) -> Run:
    """Return a plan's run.json before anything is measured."""
    controller = plan.controller
    return Run(
        id=record,
        created=now_utc(),
        state="partial",
        rtgauge=rtgauge.__version__,
        commit=commit(),
        command=list(options.command),
        plan={
            **plan.written,
            "load-warm-up-ns": plan.load_warm_up_ns,
            **({} if controller is None else {"controller": True, "raise": list(controller.raised)}),
            **({"deployments-by": "boot"} if plan.by_boot else {}),
        },
        targets=all_targets(plan),
        seed=plan.seed,
        requirement=plan.require,
        allow_left_out=plan.allow_left_out,
        planned=list(plan.steps),
    )


def plan_of(run: Run) -> Plan:
    """Return the plan that `new_run` wrote into run.json."""
    return Plan(
        name=str(run.plan.get("name", "run")),
        description="",
        seed=run.seed or 0,
        require=run.requirement,
        cross_check=None,  # its steps are among the run's other steps
        load_warm_up_ns=run.plan.get("load-warm-up-ns", 0),
        controller=controller_of(run),
        targets=list(dict.fromkeys(key.targets["self"] for key in run.planned)),
        steps=run.planned,
        written=run.plan,
        by_boot=run.plan.get("deployments-by") == "boot",
        allow_left_out=run.allow_left_out,
    )


def controller_of(run: Run) -> Controller | None:
    """Return the controller's settings from run.json."""
    raised = run.plan.get("raise", [])
    return Controller(tuple(raised)) if run.plan.get("controller") or raised else None
