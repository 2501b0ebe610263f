# SPDX-License-Identifier: MIT
"""A step in its deployment: brought about before it, put back after it, so that every step begins from the same state."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rtgauge.errors import MeasureError
from rtgauge.probe.response import TRACE_INSTANCE
from rtgauge.record.model import LeftOut, Mark, Severity, Step, StepKey
from rtgauge.runner.context import TRACE_PARTS, Context
from rtgauge.system.deployment.ability import Cannot, isolated_cpus, kept_cpus, why_not
from rtgauge.system.deployment.apply import Applied, Refused, apply, apply_actions, put_back, read_machine
from rtgauge.system.deployment.current import BOOT_ID, JOURNAL, Held, find_held
from rtgauge.system.deployment.definition import AS_IS, Deployment, parse_deployment
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.system.deployment.stages import Setting, Write
from rtgauge.system.file_batch import cpu_list
from rtgauge.system.priorities import CONTROLLER_PATHS, LINE_NAMES, controller_actions, line_actions
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Target
from rtgauge.units import format_cpu_list, parse_cpu_list

MOST_PRIORITY = 99


class NoTracepoints(Refused):
    """The kernel's tracepoints cannot be recorded here."""

    remedy = "measure without trace-parts, or as root on a kernel with CONFIG_FTRACE"


def left_out(name: str, cannot: Cannot | Refused) -> LeftOut:
    """A deployment, or what else a step needs to be set, that this machine cannot take."""
    if isinstance(cannot, NoTracepoints):
        return LeftOut(what="trace-parts", reason=str(cannot), remedy="measure without trace-parts, or as root on a kernel with CONFIG_FTRACE")
    return LeftOut(what=f"deployment {name}", reason=cannot.reason if isinstance(cannot, Cannot) else str(cannot), remedy=cannot.remedy)


def _wrong_cpus(key: StepKey, deployment: Deployment, machine: Machine) -> Cannot | None:
    """The step names CPUs that its deployment does not give it."""
    asked = key.parameters.get("cpu")
    if not isinstance(asked, str) or machine.offline:
        return None
    given = isolated_cpus(deployment, machine) or kept_cpus(deployment, machine)
    missing = sorted(set(parse_cpu_list(asked)) - set(given))
    if not missing:
        return None
    return Cannot(f"it measures on CPU {format_cpu_list(given)}, not on CPU {format_cpu_list(missing)}", "leave cpu out: the CPUs follow from the deployment")


def possible(steps: Sequence[StepKey], target: Target) -> tuple[list[StepKey], list[LeftOut]]:
    """The steps whose deployment this machine can take, and what is left out and why."""
    names = {key.deployment for key in steps} - {AS_IS}
    if not names:
        return list(steps), []
    machine = read_machine(target)
    found = {name: parse_deployment(name) for name in names}
    good: list[StepKey] = []
    missing: dict[str, LeftOut] = {}
    for key in steps:
        deployment = found.get(key.deployment)
        cannot = (why_not(deployment, machine) or _wrong_cpus(key, deployment, machine)) if deployment is not None else None
        if cannot is None:
            good.append(key)
        else:
            missing.setdefault(key.deployment, left_out(key.deployment, cannot))
    return good, list(missing.values())


def take_over_held(steps: Sequence[StepKey], context: Context) -> Held | None:
    """What `deploy apply` holds: steps as-is measure in it, on its isolated CPUs. Raises MeasureError where a step wants another."""
    files = context.target.read([JOURNAL, BOOT_ID])
    held = find_held(files, str(files.get(BOOT_ID, {}).get("text", "")).strip() or None)
    if held is None:
        return None
    if any(key.deployment != AS_IS for key in steps):
        raise MeasureError(f"the deployment {held.name} is held by `deploy apply`; take it back first: rtgauge deploy restore")
    if held.group is not None:
        names = [f"{held.group}/cpuset.cpus", f"{held.group}/cpus"]
        texts = context.target.read(names)
        context.group = held.group
        context.isolated = next((cpus for name in names if (cpus := cpu_list(texts.get(name, {}).get("text", "").strip()))), [])
    return held


def _control(key: StepKey, context: Context, applied: Applied) -> None:
    """The controller's priorities, where they were asked for."""
    if context.controller is None:
        return
    priority = key.parameters.get("priority")
    measured = priority if isinstance(priority, int) and key.parameters.get("policy") != "other" else MOST_PRIORITY
    actions, missing = controller_actions(context.controller, context.target.read(CONTROLLER_PATHS), own=context.target.controllers, measured=measured)
    apply_actions(actions, applied, context.target)
    applied.report.controller = True
    applied.report.not_found = missing


def _raise_lines(context: Context, applied: Applied) -> None:
    """The IRQ threads of the GPIO lines that the armed probe watches."""
    actions = line_actions(context.target.read(CONTROLLER_PATHS))
    apply_actions(actions, applied, context.target)
    if not actions:
        applied.report.not_found.append(LINE_NAMES[1])


def _trace(applied: Applied, context: Context) -> None:
    """An instance of tracefs for the step, which `restore` removes. Raises NoTracepoints."""
    try:
        apply_actions([Write((Setting(f"trace:{TRACE_INSTANCE}", "present"),))], applied, context.target)
    except Refused as error:
        raise NoTracepoints(f"the kernel's tracepoints cannot be recorded here: {error}") from None


def _end(key: StepKey, context: Context, applied: Applied, before: tuple[str | None, list[int]]) -> None:
    context.group, context.isolated = before
    context.at_armed = None
    context.progress.phase(f"deployment {key.deployment} is put back")
    put_back(applied, context.target)
    context.not_put_back += applied.report.not_put_back


@contextmanager
def deployed(key: StepKey, context: Context) -> Generator[Applied | None]:
    """The step's deployment is in force while this is entered. Raises Refused where the machine refuses it after all."""
    traced = bool(key.parameters.get(TRACE_PARTS))
    if key.deployment == AS_IS and context.controller is None and context.boots is None and not traced:
        yield None
        return
    context.progress.phase(f"deployment {key.deployment}")
    before = context.group, context.isolated
    if context.boots is None:
        applied = apply(parse_deployment(key.deployment), context.target)
    else:
        applied, context.facts = context.boots.bring_about(key.deployment)
    try:
        if applied.group is not None:
            context.group, context.isolated = applied.group, applied.isolated
        _control(key, context, applied)
        if traced:
            _trace(applied, context)
        if context.controller is not None and str(key.parameters.get("path", "")).startswith("gpio:"):
            context.at_armed = lambda: _raise_lines(context, applied)
        yield applied
    except ConnectionBroken:
        raise  # nothing can be put back from here: the guard does it there when its lease is over
    except BaseException:
        _end(key, context, applied, before)
        raise
    _end(key, context, applied, before)


def with_deployment(step: Step, applied: Applied | None, left_before: Sequence[str]) -> Step:
    """The step with what was set for it, and marks for what refused. `left_before`: what earlier steps could not put back."""
    marks = list(step.marks)
    if left_before:
        detail = f"it did not begin from the run's starting state: {'; '.join(left_before[:3])} could not be put back after an earlier step"
        marks.append(Mark(name="starting-state", severity=Severity.DOUBTFUL, detail=detail))
    if applied is None:
        return step.model_copy(update={"marks": marks})
    report = applied.report
    if report.refused or report.not_moved_count:
        detail = f"{report.name}: {len(report.refused)} of {len(report.settings)} settings were refused, {report.not_moved_count} tasks would not move"
        marks.append(Mark(name="deployment-incomplete", severity=Severity.NOTE, detail=detail))
    if report.not_in_effect:
        detail = f"{report.name}: this kernel was built without {', '.join(report.not_in_effect)}"
        marks.append(Mark(name="deployment-incomplete", severity=Severity.NOTE, detail=detail))
    if report.not_found:
        detail = f"no IRQ thread of {', '.join(report.not_found)} was found to raise: only PREEMPT_RT and threadirqs have them for every device"
        marks.append(Mark(name="nothing-to-raise", severity=Severity.NOTE, detail=detail))
    if report.not_put_back:
        marks.append(Mark(name="not-put-back", severity=Severity.NOTE, detail=f"could not be put back: {'; '.join(report.not_put_back[:3])}"))
    return step.model_copy(update={"deployment": report, "marks": marks})
