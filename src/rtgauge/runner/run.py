# SPDX-License-Identifier: MIT
"""A plan on its targets becomes a record."""

from __future__ import annotations

import secrets
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.plan import Plan
from rtgauge.record.model import Calibration, LeftOut, Mark, Run, Severity, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner import deploy_live
from rtgauge.runner.context import STOPPED_EARLY, Context, now_utc
from rtgauge.runner.deploy_boot import Boots
from rtgauge.runner.feasibility import check_all, on_target, possible_steps
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.machine_marks import emulated
from rtgauge.runner.planned_steps import RunOptions, all_targets, controller_of, lease_of, new_run, of_target, plan_of, remaining_steps
from rtgauge.runner.progress import Progress
from rtgauge.runner.resume_state import Kept, kept_folders, read_kept
from rtgauge.runner.session import Beginning, console_into
from rtgauge.runner.step_loop import More, go_on, saying_how_to_go_on
from rtgauge.runner.target_check import calibrate
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.system.facts import facts_by
from rtgauge.target.factory import open_target
from rtgauge.target.ssh import SshTarget
from rtgauge.target.target import Target
from rtgauge.units import format_cpu_list


def start_run(
    plan: Plan, options: RunOptions, progress: Progress, interrupt: Interrupt, more: More | None = None, *, into: Path | None = None
) -> tuple[Path, Run, list[Step]]:
    """Measure a plan from its beginning, and then what `more` asks for.

    Gives the record's folder, its run.json and its steps. Raises InputError or MeasureError; what was measured until then is in the folder
    whose name ends in `.partial`. `into`: the folder of a record in which nothing is measured yet.
    """
    identity, label = f"{plan.name}-{secrets.token_hex(4)}", shlex.join(options.command)
    lease_ns = lease_of(plan.steps, plan.load_warm_up_ns, options)
    unmeasured = partial(new_run, plan, options) if options.kept else None
    with Beginning(options.out, plan.name, into, unmeasured) as beginning:
        # All are held from the beginning: what cannot be measured is known before anything is.
        targets = {name: beginning.open(name, identity, label, lease_ns) for name in all_targets(plan)}
        boots = {
            name: _boots(target, progress, interrupt, beginning.stack) if plan.by_boot and name in plan.targets else None for name, target in targets.items()
        }
        steps: list[StepKey] = []
        left_out: list[LeftOut] = []
        for name, target in targets.items():
            possible, missing = possible_steps(of_target(plan.steps, name), target, boots[name])
            steps += possible
            left_out += [on_target(what, name, targets) for what in missing]
        for what in left_out:
            progress.left_out(what)
        if not steps:
            raise MeasureError(f"no step of the plan can be measured here: {left_out[0].reason}; {left_out[0].remedy}")
        contexts = {name: _context(target, plan.load_warm_up_ns, progress, interrupt) for name, target in targets.items()}
        held: list[Mark] = []
        checked: list[StepKey] = []
        for name, context in contexts.items():
            context.controller, context.boots, context.targets = plan.controller, boots[name], targets
            held += _held_marks(of_target(steps, name), context)
            takeable, not_here = check_all(of_target(steps, name), context)
            checked += takeable
            for what in not_here:
                left_out.append(on_target(what, name, targets))
                progress.left_out(left_out[-1])
        steps = checked
        if not steps:
            raise MeasureError(f"{left_out[-1].what}: {left_out[-1].reason}; {left_out[-1].remedy}")
        writer = beginning.record(_host(contexts[plan.targets[0]].facts))
        run = new_run(plan, options, writer.id)
        run.planned, run.left_out, run.marks = steps, left_out, [*_restored_marks(targets), *held]
        writer.write_run(run)
        with saying_how_to_go_on(writer, options):
            return go_on(writer, run, [], contexts, more)


def resume_run(folder: Path, options: RunOptions, progress: Progress, interrupt: Interrupt, more: More | None = None) -> tuple[Path, Run, list[Step]]:
    """Go on with a record whose name ends in `.partial`: finished steps stay as they are, the others, and what `more` asks for, are measured.

    What went on by itself on another machine, where only the connection or rtgauge had ended, is picked up.
    """
    record = Record.open(folder)
    found = record.run
    if found.state == "complete" and folder.name.endswith(PARTIAL):
        # It ended between its last word and its new name.
        return RecordWriter(folder, found.id, found).finish("complete"), found, []
    if found.rtgauge != rtgauge.__version__:
        raise InputError(f"{folder} was begun with rtgauge {found.rtgauge}, this is {rtgauge.__version__}: resume it with that version, or start a new run")
    if found.state != "complete" and not record.systems:
        # A guest did not come up: nothing was asked of any target yet.
        return start_run(plan_of(found), options, progress, interrupt, more, into=folder)
    load_warm_up_ns = found.plan.get("load-warm-up-ns", 0)
    lease_ns = lease_of(found.planned, load_warm_up_ns, options)
    label = shlex.join(options.command)
    kept = RecordWriter(folder, found.id)
    with ExitStack() as stack:
        # The machine is locked before the record is touched: the run that is resumed may be going on.
        sessions = {name: kept.read_session(name) or {} for name in found.targets}
        with console_into(kept):
            targets = {
                name: stack.enter_context(open_target(name, found.id, label, lease_ns=lease_ns, session=sessions[name].get("session")))
                for name in found.targets
            }
        writer = RecordWriter.open_partial(folder)
        record = writer.record()
        finished = [step for step in record.steps if step.end_reason not in STOPPED_EARLY]
        run = record.run.model_copy(update={"steps": [step.id for step in finished]})
        controller = controller_of(run)
        by_boot = run.plan.get("deployments-by") == "boot"
        contexts: dict[str, Context] = {}
        held: list[Mark] = []
        again = ""
        for name, target in targets.items():
            earlier = _to_pick_up(sessions[name].get("step"), target, by_boot=by_boot)
            if target.picked_up and earlier is None and sessions[name].get("step") is not None:
                again = "; a step in a deployment, or by booting, is not picked up: it is measured again"
            measured = any(key.targets["self"] == name for key in run.planned)
            boots = _boots(target, progress, interrupt, stack) if by_boot and measured else None
            if earlier is not None:
                # It measures at this moment, and is not asked again what it has said before.
                known = record.system(name)
                calibrations = [Calibration.model_validate(one) for one in known.pop("calibrations", [])]
                contexts[name] = Context(target, known, progress, interrupt, load_warm_up_ns / 1e9, calibrations, earlier=earlier)
            else:
                contexts[name] = _context(target, load_warm_up_ns, progress, interrupt)
            contexts[name].controller, contexts[name].boots, contexts[name].targets = controller, boots, targets
        for name, context in contexts.items():
            if context.earlier is None:
                remaining = of_target(remaining_steps(run, finished), name)
                held += _held_marks(remaining, context)
                check_all(remaining, context)
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        resumed = Mark(name="resumed", severity=Severity.NOTE, detail=f"measured in more than one session; gone on {now_utc()}{again}")
        run.marks += [resumed, *_restored_marks(targets), *held]
        writer.write_run(run)
        with saying_how_to_go_on(writer, options):
            return go_on(writer, run, finished, contexts, more)


def _boots(target: Target, progress: Progress, interrupt: Interrupt, stack: ExitStack) -> Boots:
    """What boots a target for its deployments; when the run is over it is left as it was found."""
    assert isinstance(target, SshTarget)  # noqa: S101 - a plan with deployments by boot has guests only
    boots = Boots(target, interrupt, progress.phase)
    stack.callback(boots.leave)
    return boots


def _to_pick_up(kept: Any, target: Target, *, by_boot: bool) -> Kept | None:
    """What goes on by itself on a target of an earlier session, to be followed; what is not followed is ended there."""
    if not target.picked_up:
        return None
    earlier = read_kept(kept)
    if earlier is not None and (by_boot or StepKey.model_validate_json(earlier["key"]).deployment != AS_IS):
        earlier = None  # its deployment would have to be told apart from the next one's: it is measured again
    target.end_others(kept_folders(earlier))
    if earlier is None:
        target.agent("restore")
    return earlier


def _host(facts: dict[str, Any]) -> str:
    return str(facts.get("host", "machine"))


def _context(target: Target, load_warm_up_ns: int, progress: Progress, interrupt: Interrupt) -> Context:
    context = Context(target, facts_by(target.read, target.machine)[0], progress, interrupt, load_warm_up_ns / 1e9)
    context.calibrations = calibrate(target, emulated=emulated(context.facts))
    return context


def _restored_marks(targets: Mapping[str, Target]) -> list[Mark]:
    marks: list[Mark] = []
    for name, target in targets.items():
        counts = Counter(str(line.get("action")) for line in target.restored_before)
        if counts:
            where = "" if len(targets) == 1 else f" on {name}"
            what = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
            detail = f"settings that an earlier run had left{where} were put back first: {what}"
            marks.append(Mark(name="restored-before", severity=Severity.NOTE, detail=detail))
    return marks


def _held_marks(steps: Sequence[StepKey], context: Context) -> list[Mark]:
    held = deploy_live.take_over_held(steps, context)
    if held is None:
        return []
    where = f", on CPU {format_cpu_list(context.isolated)}" if context.isolated else ""
    return [Mark(name="deployment-held", severity=Severity.NOTE, detail=f"measured in the deployment {held.name}, which `deploy apply` holds{where}")]


def find_partial(out: Path) -> Path:
    """The newest record under `out` that was not finished. Raises InputError."""
    partial = sorted(path for path in out.glob("*.partial") if (path / "run.json").is_file())
    if not partial:
        raise InputError(f"nothing to resume: {out} holds no record whose name ends in .partial")
    return partial[-1]
