# SPDX-License-Identifier: MIT
"""A plan on its targets becomes a record: the targets are opened and checked, the record is begun or resumed,
and the steps are measured into it.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import rtgauge
from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.plan import Plan
from rtgauge.probe.explain_parameters import is_explained
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Run, Step
from rtgauge.record.reader import Record
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner.choice import check_watching, choose, refuse_wrong_input
from rtgauge.runner.context import STOPPED_EARLY, Progress, RunContext, now_utc
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.resume_state import StepState
from rtgauge.runner.schedule import (
    RunOptions,
    all_targets,
    lease_of,
    new_run,
    plan_of,
    remaining_steps,
)
from rtgauge.runner.step_loop import More, measure_run, saying_how_to_resume
from rtgauge.runner.targets import (
    NewRecord,
    console_into,
    restored_marks,
    stoppable,
    stopped_while_it_waits,
    target_contexts,
    to_pick_up,
)
from rtgauge.target.opener import TargetOpener
from rtgauge.target.target import Target
from rtgauge.units import NS_PER_S


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
    opener = TargetOpener(options.wait_s, stoppable(progress.waits, interrupt), check)
    with NewRecord(options.out, plan.name, into, unmeasured, options.with_windows, opener=opener) as new:
        # All are held from the beginning: what cannot be measured is known before anything is.
        with stopped_while_it_waits(interrupt):
            targets = {name: new.open(name, identity, label, lease_ns) for name in all_targets(plan)}
        audited = (
            options.kept or options.with_windows or any(is_explained(step.parameters) for step in plan.steps)
        )
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
            steps = [
                key.model_copy(update={"parameters": key.parameters | {"pid": number, "program": None}})
                for key in steps
            ]
        writer = new.record(str(contexts[plan.targets[0]].facts.get("host", "machine")))
        run = new_run(plan, options, writer.id)
        run.planned, run.left_out = steps, choice.left_out
        run.marks = [*restored_marks(targets), *choice.marks]
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
    opener = TargetOpener(options.wait_s, stoppable(progress.waits, interrupt))
    with ExitStack() as stack:
        # The machine is locked before the record is touched: the run that is resumed may be going on.
        sessions = {name: locked.read_session(name) or {} for name in unfinished.targets}
        with console_into(locked), stopped_while_it_waits(interrupt):
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
        interrupted: dict[str, StepState] = {}
        not_picked_up = ""
        for name, target in targets.items():
            saved = sessions[name].get("step")
            state = to_pick_up(saved, target, by_boot=plan.by_boot)
            if state is not None:
                interrupted[name] = state
            elif target.picked_up and saved is not None:
                not_picked_up = (
                    "; a step in a deployment, or by booting, is not picked up: it is measured again"
                )
        shared = _run_context(plan, targets, progress, interrupt)
        contexts = target_contexts(plan, shared, stack, interrupted=interrupted, record=record)
        # What was possible when the run began may not be now; nothing is tried where a step goes on.
        free = {name: context for name, context in contexts.items() if name not in interrupted}
        remaining = [key for key in remaining_steps(run, finished) if key.targets["self"] in free]
        choice = choose(remaining, free)
        contexts |= choice.contexts
        run.planned = [key for key in run.planned if key not in remaining or key in choice.steps]
        run.left_out += choice.left_out
        if not finished and not run.planned:
            raise MeasureError(choice.why_none())
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        resumed = MarkKind.RESUMED.mark(
            f"measured in more than one session; resumed {now_utc()}{not_picked_up}"
        )
        run.marks += [resumed, *restored_marks(targets), *choice.marks]
        writer.write_run(run)
        with saying_how_to_resume(writer, options):
            return measure_run(writer, run, finished, contexts, more)


def _run_context(
    plan: Plan, targets: Mapping[str, Target], progress: Progress, interrupt: Interrupt
) -> RunContext:
    return RunContext(
        targets,
        progress,
        interrupt,
        plan.load_warm_up_ns / NS_PER_S,
        plan.controller,
    )


def find_partial(out: Path) -> Path:
    """The newest record under `out` that was not finished. Raises InputError."""
    partial_records = sorted(path for path in out.glob("*.partial") if (path / "run.json").is_file())
    if not partial_records:
        raise InputError(f"nothing to resume: {out} holds no record whose name ends in .partial")
    return partial_records[-1]
