# SPDX-License-Identifier: MIT
"""A plan on its target becomes a record."""

from __future__ import annotations

import re
import secrets
import shlex
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.load import registry as loads
from rtgauge.plan.plan import Plan
from rtgauge.probe import registry as probes
from rtgauge.record.model import LeftOut, Mark, Run, Severity, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner import cross_check, deployed
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.progress import Progress
from rtgauge.runner.step import STOPPED_EARLY, Abandoned, Context, LoadFailed, NotHere, calibrate, check_permission, measure_step, now_utc
from rtgauge.system.controller import Controller
from rtgauge.system.deployment.apply import Refused
from rtgauge.system.deployment.words import AS_IS
from rtgauge.system.facts import FACT_PATHS, facts, more_fact_paths
from rtgauge.target.base import Target
from rtgauge.target.local import LocalTarget
from rtgauge.units import format_cpu_list

STEP_OVERHEAD_S = 0.6
DEPLOYMENT_S = 0.3


@dataclass(frozen=True)
class RunOptions:
    """Where a run goes, how it was asked for, and whether its record is kept."""

    out: Path
    command: Sequence[str]
    kept: bool = True


def expected_s(key: StepKey, load_warm_up_ns: int) -> float:
    """How long a step takes, about, in s."""
    measured = (probes.get(key.probe).expected_ns(key.parameters) or 0) / 1e9
    deploying = 0.0 if key.deployment == AS_IS else DEPLOYMENT_S
    return measured + STEP_OVERHEAD_S + deploying + (0.0 if key.load == "idle" else load_warm_up_ns / 1e9 + STEP_OVERHEAD_S)


def _possible(steps: Sequence[StepKey], target: LocalTarget) -> tuple[list[StepKey], list[LeftOut]]:
    """The steps that this target can take, and what is left out and why."""
    takeable, missing_deployments = deployed.possible(steps, target)
    left_out: dict[str, LeftOut] = {one.what: one for one in missing_deployments}
    possible: list[StepKey] = []
    for key in takeable:
        missing = loads.left_out(loads.get(key.load), target)
        if missing is None and key.tool != "rtgauge":
            missing = cross_check.left_out(key.tool, target)
        if missing is None:
            possible.append(key)
        else:
            left_out[missing.what] = missing
    return possible, list(left_out.values())


def _step_ids(steps: Sequence[StepKey]) -> list[str]:
    """A folder name a step: number, probe, load, and what else tells it from the others."""
    repeats = max((key.repeat for key in steps), default=1) > 1
    names: list[str] = []
    for number, key in enumerate(steps, 1):
        parts = [f"{number:02d}", key.probe, key.load]
        parts += [re.sub(r"[^A-Za-z0-9]+", "-", key.deployment)[:60]] if key.deployment != AS_IS else []
        parts += [key.tool] if key.tool != "rtgauge" else []
        parts += [f"r{key.repeat}"] if repeats else []
        names.append("-".join(parts))
    return names


def start_run(plan: Plan, options: RunOptions, progress: Progress, interrupt: Interrupt) -> tuple[Path, Run, list[Step]]:
    """Measure a plan from its beginning.

    Gives the record's folder, its run.json and its steps. Raises InputError or MeasureError; what was measured until then is in the folder
    whose name ends in `.partial`.
    """
    with LocalTarget(f"{plan.name}-{secrets.token_hex(4)}", shlex.join(options.command)) as target:
        steps, left_out = _possible(plan.steps, target)
        for what in left_out:
            progress.left_out(what)
        if not steps:
            raise MeasureError(f"no step of the plan can be measured here: {left_out[0].reason}; {left_out[0].remedy}")
        context = _context(target, plan.load_warm_up_ns, progress, interrupt)
        context.controller = plan.controller
        held = _held_marks(steps, context)
        steps, not_here = _check_all(steps, context)
        for what in not_here:
            progress.left_out(what)
        left_out += not_here
        if not steps:
            raise MeasureError(f"{left_out[-1].what}: {left_out[-1].reason}; {left_out[-1].remedy}")
        writer = RecordWriter.create(options.out, host=_host(context.facts), name=plan.name)
        run = Run(
            id=writer.id,
            created=now_utc(),
            state="partial",
            rtgauge=rtgauge.__version__,
            command=list(options.command),
            plan={**plan.written, "load-warm-up-ns": plan.load_warm_up_ns, **_controller_keys(plan.controller)},
            targets=[target.name],
            seed=plan.seed,
            requirement=plan.require,
            planned=steps,
            left_out=left_out,
            marks=[*_restored_marks(target), *held],
        )
        writer.write_run(run)
        with _saying_how_to_go_on(writer, options):
            return _go_on(writer, run, [], context)


def resume_run(folder: Path, options: RunOptions, progress: Progress, interrupt: Interrupt) -> tuple[Path, Run, list[Step]]:
    """Go on with a record whose name ends in `.partial`: finished steps stay as they are, the others are measured."""
    found = Record.open(folder).run
    if found.state == "complete" and folder.name.endswith(PARTIAL):
        # It ended between its last word and its new name.
        return RecordWriter(folder, found.id, found).finish("complete"), found, []
    # The machine is locked before the record is touched: the run that is resumed may be going on.
    with LocalTarget(found.id, shlex.join(options.command)) as target:
        writer = RecordWriter.open_partial(folder)
        record = writer.record()
        finished = [step for step in record.steps if step.end_reason not in STOPPED_EARLY]
        run = record.run.model_copy(update={"steps": [step.id for step in finished]})
        context = _context(target, run.plan.get("load-warm-up-ns", 0), progress, interrupt)
        raised = run.plan.get("raise", [])
        context.controller = Controller(tuple(raised)) if run.plan.get("controller") or raised else None
        held = _held_marks(_remaining(run, finished), context)
        _check_all(_remaining(run, finished), context)
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        run.marks += [
            Mark(name="resumed", severity=Severity.NOTE, detail=f"measured in more than one session; gone on {now_utc()}"),
            *_restored_marks(target),
            *held,
        ]
        writer.write_run(run)
        with _saying_how_to_go_on(writer, options):
            return _go_on(writer, run, finished, context)


def _remaining(run: Run, finished: Sequence[Step]) -> list[StepKey]:
    done = {step.key.model_dump_json() for step in finished}
    return [key for key in run.planned if key.model_dump_json() not in done]


def read_facts(target: Target) -> dict[str, Any]:
    """The facts of a target: what it is and how it is set."""
    files = dict(target.read(FACT_PATHS))
    files |= target.read(more_fact_paths(files))
    return dict(facts(files))


def _host(facts: dict[str, Any]) -> str:
    return str(facts.get("host", "machine"))


def _context(target: LocalTarget, load_warm_up_ns: int, progress: Progress, interrupt: Interrupt) -> Context:
    context = Context(target, read_facts(target), progress, interrupt, load_warm_up_ns / 1e9)
    context.calibrations = calibrate(target)
    return context


def _check_all(steps: Sequence[StepKey], context: Context) -> tuple[list[StepKey], list[LeftOut]]:
    """Let the engine refuse each kind of step before anything is measured; gives the steps that it takes, and what this machine cannot do."""
    refused: dict[str, LeftOut | None] = {}
    for key in steps:
        kind = f"{key.probe} {key.parameters}"
        if kind not in refused and key.tool == "rtgauge":
            refused[kind] = None
            try:
                check_permission(key, context)
            except NotHere as error:
                reason, _, remedy = str(error).partition("; ")
                refused[kind] = LeftOut(what=f"{key.probe}, {reason.partition(':')[0]}", reason=reason.partition(": ")[2] or reason, remedy=remedy)
    possible = [key for key in steps if refused.get(f"{key.probe} {key.parameters}") is None]
    return possible, [what for what in refused.values() if what is not None]


def _restored_marks(target: LocalTarget) -> list[Mark]:
    counts = Counter(str(line.get("action")) for line in target.restored_before)
    if not counts:
        return []
    detail = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
    return [Mark(name="restored-before", severity=Severity.NOTE, detail=f"settings that an earlier run had left were put back first: {detail}")]


def _controller_keys(controller: Controller | None) -> dict[str, Any]:
    """What a resumed run has to know of the controller."""
    return {} if controller is None else {"controller": True, "raise": list(controller.raised)}


def _held_marks(steps: Sequence[StepKey], context: Context) -> list[Mark]:
    held = deployed.take_over_held(steps, context)
    if held is None:
        return []
    where = f", on CPU {format_cpu_list(context.isolated)}" if context.isolated else ""
    return [Mark(name="deployment-held", severity=Severity.NOTE, detail=f"measured in the deployment {held.name}, which `deploy apply` holds{where}")]


@contextmanager
def _saying_how_to_go_on(writer: RecordWriter, options: RunOptions) -> Generator[None]:
    """Whatever ends a run early says how to go on with it."""
    how = f"; go on with: rtgauge run --resume {shlex.quote(str(writer.path))}" if options.kept else ""
    try:
        yield
    except KeyboardInterrupt:
        raise RtgaugeError(f"stopped at once{how}", EXIT_INTERRUPTED) from None
    except RtgaugeError as error:
        raise type(error)(f"{error}{how}", error.status) from None


def _go_on(writer: RecordWriter, run: Run, finished: Sequence[Step], context: Context) -> tuple[Path, Run, list[Step]]:
    """Measure what is planned and not done. Ends early, in order, when the user asks; the record then keeps its `.partial`."""
    writer.write_system(context.target.name, {**context.facts, "calibrations": [one.model_dump() for one in context.calibrations]})
    ids = dict(zip((key.model_dump_json() for key in run.planned), _step_ids(run.planned), strict=True))
    remaining = _remaining(run, finished)
    steps = list(finished)
    context.progress.run_begins(remaining, [expected_s(key, round(context.load_warm_up_s * 1e9)) for key in remaining])
    for number, key in enumerate(remaining):
        if context.interrupt.asked:
            break
        context.target.check()
        context.progress.step_begins(number, key)
        step_id = ids[key.model_dump_json()]
        folder = writer.step_folder(step_id)
        try:
            measure = measure_step if key.tool == "rtgauge" else cross_check.measure
            left_before = list(context.not_put_back)
            with deployed.deployed(key, context) as applied:
                step, windows = measure(step_id, key, context, folder)
            step = deployed.with_deployment(step, applied, left_before)
            writer.commit_step(step, windows)
        except Abandoned:
            break
        except LoadFailed as error:
            how = f"try it alone: rtgauge probe {key.probe} --load {key.load} --duration 2s"
            _leave_out(writer, LeftOut(what=f"load {key.load}", reason=str(error), remedy=how), context.progress)
            continue
        except Refused as error:
            _leave_out(writer, deployed.left_out(key.deployment, error), context.progress)
            continue
        finally:
            writer.drop_step(step_id)
        steps.append(step)
        context.progress.step_ends(step)
    if not context.interrupt.asked or (len(steps) == len(run.planned) and all(step.end_reason not in STOPPED_EARLY for step in steps)):
        path = writer.finish("complete")
    else:
        writer.close_partial()
        path = writer.path
    final = writer.run
    return path, final if final is not None else run, steps


def _leave_out(writer: RecordWriter, missing: LeftOut, progress: Progress) -> None:
    """A step that cannot be measured is said to be missing; the run goes on."""
    progress.left_out(missing)
    if writer.run is not None and missing not in writer.run.left_out:
        writer.write_run(writer.run.model_copy(update={"left_out": [*writer.run.left_out, missing]}))


def find_partial(out: Path) -> Path:
    """The newest record under `out` that was not finished. Raises InputError."""
    partial = sorted(path for path in out.glob("*.partial") if (path / "run.json").is_file())
    if not partial:
        raise InputError(f"nothing to resume: {out} holds no record whose name ends in .partial")
    return partial[-1]
