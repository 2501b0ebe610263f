# SPDX-License-Identifier: MIT
"""A plan on its target becomes a record."""

from __future__ import annotations

import re
import secrets
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.load import registry as loads
from rtgauge.plan.plan import Plan
from rtgauge.probe import registry as probes
from rtgauge.record.model import Calibration, LeftOut, Mark, Run, Severity, Step, StepKey
from rtgauge.record.names import clean_name
from rtgauge.record.reader import Record
from rtgauge.record.writer import PARTIAL, RecordWriter
from rtgauge.runner import cross_check, deployed
from rtgauge.runner.beginning import Beginning, console_into
from rtgauge.runner.booted import BOOT_S, Boots
from rtgauge.runner.context import STOPPED_EARLY, Abandoned, Context, LoadFailed, NotHere, now_utc
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.kept import Kept, kept_folders, read_kept
from rtgauge.runner.machine_marks import machine_marks
from rtgauge.runner.progress import Progress
from rtgauge.runner.step import measure_step
from rtgauge.runner.trial import calibrate, check_permission
from rtgauge.system.controller import Controller
from rtgauge.system.deployment.apply import Refused
from rtgauge.system.deployment.words import AS_IS
from rtgauge.system.whole import facts_by
from rtgauge.target.address import LOCAL
from rtgauge.target.base import Target
from rtgauge.target.lease import LEASE_NS
from rtgauge.target.opening import console, open_target
from rtgauge.target.ssh import SshTarget
from rtgauge.units import format_cpu_list

More = Callable[[Record], Sequence[StepKey]]
"""What a study asks next, from what the record holds already; nothing: it is done. No step may take longer than the longest one that was planned."""
STEP_OVERHEAD_S = 0.6
DEPLOYMENT_S = 0.3


@dataclass(frozen=True)
class RunOptions:
    """Where a run goes, how it was asked for, and whether its record is kept."""

    out: Path
    command: Sequence[str]
    kept: bool = True
    wait_ns: int = 15 * 60 * 10**9
    """How long another machine goes on and waits, beyond its longest step, where the connection broke and nobody resumes."""


def expected_s(key: StepKey, load_warm_up_ns: int) -> float:
    """How long a step takes, about, in s."""
    measured = (probes.get(key.probe).expected_ns(key.parameters) or 0) / 1e9
    deploying = 0.0 if key.deployment == AS_IS else DEPLOYMENT_S
    return measured + STEP_OVERHEAD_S + deploying + (0.0 if key.load == "idle" else load_warm_up_ns / 1e9 + STEP_OVERHEAD_S)


def _possible(steps: Sequence[StepKey], target: Target, boots: Boots | None) -> tuple[list[StepKey], list[LeftOut]]:
    """The steps that this target can take, and what is left out and why."""
    takeable, missing_deployments = deployed.possible(steps, target) if boots is None else boots.possible(steps)
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
    several = len({key.targets["self"] for key in steps}) > 1
    names: list[str] = []
    for number, key in enumerate(steps, 1):
        parts = [
            f"{number:02d}",
            *([clean_name(key.targets["self"].removeprefix("ssh://"))] if several else []),
            key.probe,
            re.sub(r"[^A-Za-z0-9]+", "-", key.load)[:60].strip("-"),
        ]
        parts += [re.sub(r"[^A-Za-z0-9]+", "-", key.deployment)[:60]] if key.deployment != AS_IS else []
        parts += [key.tool] if key.tool != "rtgauge" else []
        parts += [f"r{key.repeat}"] if repeats else []
        names.append("-".join(parts))
    return names


def _lease_ns(steps: Sequence[StepKey], load_warm_up_ns: int, options: RunOptions) -> int:
    """How long a target may hear nothing of this run."""
    longest_s = max((expected_s(key, load_warm_up_ns) for key in steps), default=0.0)
    return round(longest_s * 1e9) + options.wait_ns if options.kept else LEASE_NS


def _of(steps: Sequence[StepKey], name: str) -> list[StepKey]:
    """The steps on that target."""
    return [key for key in steps if key.targets["self"] == name]


def start_run(
    plan: Plan, options: RunOptions, progress: Progress, interrupt: Interrupt, more: More | None = None, *, into: Path | None = None
) -> tuple[Path, Run, list[Step]]:
    """Measure a plan from its beginning, and then what `more` asks for.

    Gives the record's folder, its run.json and its steps. Raises InputError or MeasureError; what was measured until then is in the folder
    whose name ends in `.partial`. `into`: the folder of a record in which nothing is measured yet.
    """
    identity, label = f"{plan.name}-{secrets.token_hex(4)}", shlex.join(options.command)
    lease_ns = _lease_ns(plan.steps, plan.load_warm_up_ns, options)
    unmeasured = partial(_new_run, plan, options) if options.kept else None
    with Beginning(options.out, plan.name, into, unmeasured) as beginning:
        # All are held from the beginning: what cannot be measured is known before anything is.
        targets = {name: beginning.open(name, identity, label, lease_ns) for name in _all_targets(plan)}
        boots = {
            name: _boots(target, progress, interrupt, beginning.stack) if plan.by_boot and name in plan.targets else None for name, target in targets.items()
        }
        steps: list[StepKey] = []
        left_out: list[LeftOut] = []
        for name, target in targets.items():
            possible, missing = _possible(_of(plan.steps, name), target, boots[name])
            steps += possible
            left_out += [_on(what, name, targets) for what in missing]
        for what in left_out:
            progress.left_out(what)
        if not steps:
            raise MeasureError(f"no step of the plan can be measured here: {left_out[0].reason}; {left_out[0].remedy}")
        contexts = {name: _context(target, plan.load_warm_up_ns, progress, interrupt) for name, target in targets.items()}
        held: list[Mark] = []
        checked: list[StepKey] = []
        for name, context in contexts.items():
            context.controller, context.boots, context.targets = plan.controller, boots[name], targets
            held += _held_marks(_of(steps, name), context)
            takeable, not_here = _check_all(_of(steps, name), context)
            checked += takeable
            for what in not_here:
                left_out.append(_on(what, name, targets))
                progress.left_out(left_out[-1])
        steps = checked
        if not steps:
            raise MeasureError(f"{left_out[-1].what}: {left_out[-1].reason}; {left_out[-1].remedy}")
        writer = beginning.record(_host(contexts[plan.targets[0]].facts))
        run = _new_run(plan, options, writer.id)
        run.planned, run.left_out, run.marks = steps, left_out, [*_restored_marks(targets), *held]
        writer.write_run(run)
        with _saying_how_to_go_on(writer, options):
            return _go_on(writer, run, [], contexts, more)


def _all_targets(plan: Plan) -> list[str]:
    """Those that have steps, and those that are the other end of one."""
    return list(dict.fromkeys([*plan.targets, *(key.peer[1] for key in plan.steps if key.peer is not None)]))


def _new_run(plan: Plan, options: RunOptions, record: str) -> Run:
    """What run.json says of a plan of which nothing is measured yet."""
    return Run(
        id=record,
        created=now_utc(),
        state="partial",
        rtgauge=rtgauge.__version__,
        command=list(options.command),
        plan={**plan.written, "load-warm-up-ns": plan.load_warm_up_ns, **_controller_keys(plan.controller), **_boot_keys(by_boot=plan.by_boot)},
        targets=_all_targets(plan),
        seed=plan.seed,
        requirement=plan.require,
        planned=list(plan.steps),
    )


def _plan_of(run: Run) -> Plan:
    """The plan that `_new_run` was told."""
    return Plan(
        name=str(run.plan.get("name", "run")),
        description="",
        seed=run.seed or 0,
        require=run.requirement,
        cross_check=None,  # its steps are among the others
        load_warm_up_ns=run.plan.get("load-warm-up-ns", 0),
        controller=_controller_of(run),
        targets=list(dict.fromkeys(key.targets["self"] for key in run.planned)),
        steps=run.planned,
        written=run.plan,
        by_boot=run.plan.get("deployments-by") == "boot",
    )


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
        return start_run(_plan_of(found), options, progress, interrupt, more, into=folder)
    load_warm_up_ns = found.plan.get("load-warm-up-ns", 0)
    lease_ns = _lease_ns(found.planned, load_warm_up_ns, options)
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
        controller = _controller_of(run)
        by_boot = run.plan.get("deployments-by") == "boot"
        contexts: dict[str, Context] = {}
        held: list[Mark] = []
        for name, target in targets.items():
            earlier = _to_pick_up(sessions[name].get("step"), target, by_boot=by_boot)
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
                remaining = _of(_remaining(run, finished), name)
                held += _held_marks(remaining, context)
                _check_all(remaining, context)
        for step in record.steps:
            if step not in finished:
                writer.remove_step(step.id)
        resumed = Mark(name="resumed", severity=Severity.NOTE, detail=f"measured in more than one session; gone on {now_utc()}")
        run.marks += [resumed, *_restored_marks(targets), *held]
        writer.write_run(run)
        with _saying_how_to_go_on(writer, options):
            return _go_on(writer, run, finished, contexts, more)


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
        target.hand("restore")
    return earlier


def _remaining(run: Run, finished: Sequence[Step]) -> list[StepKey]:
    done = {step.key.model_dump_json() for step in finished}
    return [key for key in run.planned if key.model_dump_json() not in done]


def _host(facts: dict[str, Any]) -> str:
    return str(facts.get("host", "machine"))


def _context(target: Target, load_warm_up_ns: int, progress: Progress, interrupt: Interrupt) -> Context:
    context = Context(target, facts_by(target.read, target.machine)[0], progress, interrupt, load_warm_up_ns / 1e9)
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
            except RtgaugeError as error:
                raise _said_where(error, context.target.name) from None
    possible = [key for key in steps if refused.get(f"{key.probe} {key.parameters}") is None]
    return possible, [what for what in refused.values() if what is not None]


def _said_where(error: RtgaugeError, name: str) -> RtgaugeError:
    """What the engine refuses on another machine is not taken for a fault of this one."""
    return error if name == LOCAL or name in str(error) else type(error)(f"{name}: {error}", error.status)


def _on(what: LeftOut, name: str, targets: Mapping[str, Target]) -> LeftOut:
    """Says where, in a run on several machines."""
    return what if len(targets) == 1 else what.model_copy(update={"what": f"{what.what} on {name}"})


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


def _controller_keys(controller: Controller | None) -> dict[str, Any]:
    """What a resumed run has to know of the controller."""
    return {} if controller is None else {"controller": True, "raise": list(controller.raised)}


def _controller_of(run: Run) -> Controller | None:
    raised = run.plan.get("raise", [])
    return Controller(tuple(raised)) if run.plan.get("controller") or raised else None


def _boot_keys(*, by_boot: bool) -> dict[str, Any]:
    """What a resumed run has to know of how its deployments are brought about."""
    return {"deployments-by": "boot"} if by_boot else {}


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


def _keep_sessions(writer: RecordWriter, contexts: Mapping[str, Context]) -> None:
    """Write down, and keep up to date, what another process needs to go on with what runs on other machines."""
    for name, context in contexts.items():
        if context.target.session is None:
            continue

        def keep(kept: Kept | None, name: str = name, target: Target = context.target) -> None:
            writer.write_session(name, {"session": target.session, "step": kept})

        context.keep = keep
        keep(context.earlier)


@contextmanager
def _consoles_kept(writer: RecordWriter, contexts: Mapping[str, Context]) -> Generator[None]:
    """However the measuring ends: what the lab's guests wrote on their consoles is in the record."""
    try:
        yield
    finally:
        for name, context in contexts.items():
            said = console(name) if context.boots is None else context.boots.consoles
            if said is not None:
                writer.write_console(name, said)


def _of_machines(key: StepKey, contexts: Mapping[str, Context]) -> list[Mark]:
    """Marks for what the machines of a step are; each once."""
    marks = [mark for name in key.targets.values() for mark in machine_marks(name, contexts[name].facts)]
    return list({mark.name: mark for mark in marks}.values())


def _measure(writer: RecordWriter, run: Run, remaining: Sequence[StepKey], contexts: Mapping[str, Context], finished: Sequence[Step]) -> list[Step]:
    """Measure the remaining steps, each written as soon as it is done; gives all that are done."""
    targets = {name: context.target for name, context in contexts.items()}
    any_context = next(iter(contexts.values()))
    progress, interrupt = any_context.progress, any_context.interrupt
    ids = dict(zip((key.model_dump_json() for key in run.planned), _step_ids(run.planned), strict=True))
    steps = list(finished)
    for number, key in enumerate(remaining):
        if interrupt.asked:
            break
        context = contexts[key.targets["self"]]
        for name in key.targets.values():
            if contexts[name].boots is None:
                targets[name].check()
        progress.step_begins(number, key)
        step_id = ids[key.model_dump_json()]
        folder = writer.step_folder(step_id)
        try:
            measure = measure_step if key.tool == "rtgauge" else cross_check.measure
            left_before = list(context.not_put_back)
            with deployed.deployed(key, context) as applied:
                step, windows = measure(step_id, key, context, folder)
            step = deployed.with_deployment(step, applied, left_before)
            step.marks += _of_machines(key, contexts)
            writer.commit_step(step, windows)
        except Abandoned:
            break
        except LoadFailed as error:
            how = f"try it alone: rtgauge probe {key.probe} --load {key.load} --duration 2s"
            _leave_out(writer, _on(LeftOut(what=f"load {key.load}", reason=str(error), remedy=how), context.target.name, targets), progress)
            continue
        except Refused as error:
            _leave_out(writer, _on(deployed.left_out(key.deployment, error), context.target.name, targets), progress)
            continue
        finally:
            writer.drop_step(step_id)
        context.keep(None)
        steps.append(step)
        progress.step_ends(step)
    return steps


def _asked_next(writer: RecordWriter, more: More | None, contexts: Mapping[str, Context]) -> list[StepKey]:
    """What the study asks next, written down as planned. What is in the plan already is not measured again."""
    run = writer.run
    if more is None or run is None:
        return []
    known = {key.model_dump_json() for key in run.planned}
    new = [key for key in more(writer.record()) if key.model_dump_json() not in known]
    targets = {name: context.target for name, context in contexts.items()}
    asked: list[StepKey] = []
    missing: list[LeftOut] = []
    for name, context in contexts.items():
        possible, not_here = _check_all(_of(new, name), context)
        asked += possible
        missing += [_on(what, name, targets) for what in not_here]
    writer.write_run(run.model_copy(update={"planned": [*run.planned, *asked]}))
    for what in missing:
        _leave_out(writer, what, next(iter(contexts.values())).progress)
    return asked


def _go_on(writer: RecordWriter, run: Run, finished: Sequence[Step], contexts: Mapping[str, Context], more: More | None) -> tuple[Path, Run, list[Step]]:
    """Measure what is planned and not done, and what is asked after that. Ends early, in order, when the user asks; the record then keeps its `.partial`."""
    for name, context in contexts.items():
        writer.write_system(name, {**context.facts, "calibrations": [one.model_dump() for one in context.calibrations]})
    _keep_sessions(writer, contexts)
    any_context = next(iter(contexts.values()))
    progress, interrupt = any_context.progress, any_context.interrupt
    remaining = _remaining(run, finished)
    steps = list(finished)
    with _consoles_kept(writer, contexts):
        # A record whose planned steps are all there may still be asked for more, so that the loop is entered with nothing to do.
        while remaining or (not interrupt.asked and (remaining := _asked_next(writer, more, contexts))):
            expected = [expected_s(key, round(any_context.load_warm_up_s * 1e9)) for key in remaining]
            progress.run_begins(remaining, [one + boot for one, boot in zip(expected, _boot_s(remaining, contexts), strict=True)])
            steps = _measure(writer, writer.run or run, remaining, contexts, steps)
            remaining = []
    for name in contexts:
        writer.write_session(name, None)
    planned = (writer.run or run).planned
    whole = len(steps) == len(planned) and all(step.end_reason not in STOPPED_EARLY for step in steps) and more is None
    if not interrupt.asked or whole:
        path = writer.finish("complete")
    else:
        writer.close_partial()
        path = writer.path
    final = writer.run
    return path, final if final is not None else run, steps


def _boot_s(steps: Sequence[StepKey], contexts: Mapping[str, Context]) -> list[float]:
    """How long the boot before each step takes, about, in s."""
    before: dict[str, str] = {}
    times: list[float] = []
    for key in steps:
        name = key.targets["self"]
        boots = contexts[name].boots is not None and before.get(name) != key.deployment
        before[name] = key.deployment
        times.append(BOOT_S if boots else 0.0)
    return times


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
