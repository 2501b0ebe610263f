# SPDX-License-Identifier: MIT
"""Deployments by settings while the machine runs; and a step in its deployment, however that came into force,
from the same starting state each time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from rtgauge.errors import MeasureError
from rtgauge.probe import registry as probes
from rtgauge.probe.explain_parameters import is_explained
from rtgauge.record.model import DeploymentReport, LeftOut, Mark, Severity, Step, StepKey
from rtgauge.runner.context import RunContext
from rtgauge.runner.rtai_programs import measuring_module, modules_of
from rtgauge.runner.tracing import prepare_explain, prepare_tracing
from rtgauge.system.deployment.ability import Cannot, isolated_cpus, kept_cpus, why_not
from rtgauge.system.deployment.apply import (
    WHY,
    Applied,
    Refused,
    apply,
    apply_actions,
    put_back,
    read_machine,
)
from rtgauge.system.deployment.current import Held, read_held
from rtgauge.system.deployment.definition import AS_IS, Deployment, parse_deployment
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.system.deployment.stages import Setting, Write
from rtgauge.system.file_batch import cpu_list
from rtgauge.system.kernel_modules import Kernel, NoModules, modules_for, refusal
from rtgauge.system.priorities import CONTROLLER_PATHS, LINE_NAMES, controller_actions, line_actions
from rtgauge.system.rtai_modules import calibration_for, rtai_modules
from rtgauge.target.factory import console
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target import Target
from rtgauge.units import format_cpu_list, parse_cpu_list

MAX_PRIORITY = 99


def left_out(name: str, cause: Cannot | Refused) -> LeftOut:
    """The deployment `name`, or what else a step needs to be set, that this machine cannot take."""
    what = None if isinstance(cause, Cannot) else cause.what
    return LeftOut(what=what or f"deployment {name}", reason=cause.reason, remedy=cause.remedy)


def cpus_not_given(key: StepKey, deployment: Deployment, machine: Machine) -> Cannot | None:
    """Why a step that names its CPUs cannot be measured in a deployment: they are not those that the
    deployment gives it.
    """
    cpus = key.parameters.get("cpu")
    if not isinstance(cpus, str):
        return None
    given = isolated_cpus(deployment, machine) or kept_cpus(deployment, machine)
    missing = sorted(set(parse_cpu_list(cpus)) - set(given))
    if not missing:
        return None
    return Cannot(
        f"it measures on CPU {format_cpu_list(given)}, not on CPU {format_cpu_list(missing)}",
        "leave cpu out: the CPUs follow from the deployment",
    )


def _nothing_set() -> Applied:
    deployment = parse_deployment(AS_IS)
    return Applied(deployment, DeploymentReport(name=deployment.name, words=deployment.words))


class LiveDeployments:
    """The deployments of a run, set while the machine runs and put back after each step.

    A DeploymentStrategy.
    """

    sets_as_is = False

    def __init__(self, target: Target) -> None:
        self._target = target
        self.not_put_back: list[str] = []

    def possible(self, steps: Sequence[StepKey]) -> tuple[list[StepKey], list[LeftOut]]:
        """The steps whose deployment this machine can take, and what is left out and why."""
        names = {key.deployment for key in steps} - {AS_IS}
        if not names:
            return list(steps), []
        machine = read_machine(self._target)
        deployments = {name: parse_deployment(name) for name in names}
        possible: list[StepKey] = []
        missing: dict[str, LeftOut] = {}
        for key in steps:
            deployment = deployments.get(key.deployment)
            cannot = None if deployment is None else why_not(deployment, machine)
            if cannot is None and deployment is not None and not machine.offline:
                cannot = cpus_not_given(key, deployment, machine)
            if cannot is None:
                possible.append(key)
            else:
                missing.setdefault(key.deployment, left_out(key.deployment, cannot))
        return possible, list(missing.values())

    def bring_about(self, name: str) -> tuple[Applied, Mapping[str, Any] | None]:
        """Set the deployment; the facts stay. Raises Refused."""
        # as-is sets nothing: the machine is not read for it
        return (_nothing_set() if name == AS_IS else apply(parse_deployment(name), self._target)), None

    def check(self) -> None:
        """Raises MeasureError where the target is no longer held by this run."""
        self._target.check()

    def expected_s(self, before: str | None, name: str) -> float:  # noqa: ARG002 - of every strategy
        """Nothing beyond what every step takes."""
        return 0.0

    def console(self) -> bytes | None:
        """Of a guest of the lab, its console."""
        return console(self._target.name)


def held_deployment(steps: Sequence[StepKey], target: Target) -> Held | None:
    """What `deploy apply` holds on the target: steps as-is measure in it.

    Raises MeasureError where a step is for another deployment.
    """
    held = read_held(target.read)
    if held is not None and any(key.deployment != AS_IS for key in steps):
        raise MeasureError(
            f"the deployment {held.name} is held by `deploy apply`; undo it first: rtgauge restore --applied"
        )
    return held


def isolated_in(held: Held, target: Target) -> list[int]:
    """The isolated CPUs of a held deployment; empty where it isolates none."""
    if held.group is None:
        return []
    names = [f"{held.group}/cpuset.cpus", f"{held.group}/cpus"]
    files = target.read(names)
    lists = (cpu_list(str(files.get(name, {}).get("text", "")).strip()) for name in names)
    return next((cpus for cpus in lists if cpus), list[int]())


def _set_controller(key: StepKey, context: RunContext, applied: Applied) -> None:
    """The controller's priorities, where the run has one."""
    if context.controller is None:
        return
    priority = key.parameters.get("priority")
    measured = (
        priority if isinstance(priority, int) and key.parameters.get("policy") != "other" else MAX_PRIORITY
    )
    actions, missing = controller_actions(
        context.controller,
        context.target.read(CONTROLLER_PATHS),
        own=context.target.controllers,
        measured=measured,
    )
    apply_actions(actions, applied, context.target)
    applied.report.controller = True
    applied.report.not_found = missing


def _raise_lines(target: Target, applied: Applied) -> None:
    """The IRQ threads of the GPIO lines that the armed probe watches."""
    actions = line_actions(target.read(CONTROLLER_PATHS))
    apply_actions(actions, applied, target)
    if not actions:
        applied.report.not_found.append(LINE_NAMES[1])


def _note(paths: Sequence[str], applied: Applied, target: Target) -> None:
    """What the probe itself is going to change, which `restore` puts back.

    Raises MeasureError: nothing may change it then.
    """
    for answer in target.agent("set", "--note", "--", *paths):
        error = answer.get("error")
        if error is not None:
            raise MeasureError(
                f"{answer.get('path')} of {target.name} cannot be put back later: "
                f"{WHY.get(str(error), str(error))}"
            )
        applied.report.noted += 1


def _own_modules(key: StepKey) -> tuple[str, ...]:
    """Those of rtgauge that a step needs."""
    return probes.get(key.probe).modules(key.parameters) if key.tool == "rtgauge" else ()


def needs_modules(key: StepKey) -> bool:
    """Whether kernel modules have to be there for a step: RTAI's, or those of rtgauge."""
    return key.rt == "rtai" or bool(_own_modules(key))


def _insert_modules(key: StepKey, context: RunContext, applied: Applied) -> None:
    """Load the kernel modules of the step, which `restore` removes. Raises NoModules."""
    names = _own_modules(key)
    if key.rt == "rtai":
        insert_rtai(key, context.target, context.facts, context.progress.phase, applied)
    if names:
        files = modules_for(context.target, names, context.progress.phase)
        context.progress.phase("kernel modules are loaded")
        _load(files, context.target, applied)


def insert_rtai(
    key: StepKey, target: Target, facts: Mapping[str, Any], say: Callable[[str], None], applied: Applied
) -> None:
    """Load RTAI's own modules where they are not, calibrated as the step says or as `facts` have it from
    before.

    Raises NoModules.
    """
    calibration = calibration_for(key.parameters, facts)
    files = rtai_modules(target, calibration, modules_of(key))
    if files:
        say(
            "RTAI's modules are loaded"
            if calibration is not None
            else "RTAI's modules are loaded and calibrate themselves"
        )
        _load(files, target, applied)


def _load(files: Sequence[str], target: Target, applied: Applied) -> None:
    """Raises NoModules."""
    try:
        apply_actions([Write(tuple(Setting(f"module:{file}", "present") for file in files))], applied, target)
    except Refused:
        refused = next(
            made
            for made in applied.report.settings
            if made.error is not None and made.path.startswith("module:")
        )
        raise refusal(refused.error or "", refused.path, Kernel.of(target)) from None


@contextmanager
def with_modules(key: StepKey, context: RunContext) -> Generator[None]:
    """The kernel modules of a step are loaded while this is entered. Raises NoModules."""
    if not needs_modules(key):
        yield
        return
    applied = _nothing_set()
    try:
        _insert_modules(key, context, applied)
        yield
    finally:
        put_back(applied, context.target)


@contextmanager
def with_measuring_module(key: StepKey, context: RunContext) -> Generator[None]:
    """A module of RTAI's that measures by itself is loaded while this is entered, where the step's tool is
    one.

    Raises NoModules.
    """
    names = measuring_module(key)
    if not names:
        yield
        return
    applied = _nothing_set()
    try:
        _load(rtai_modules(context.target, None, names), context.target, applied)
        yield
    finally:
        put_back(applied, context.target)


@contextmanager
def with_rtai(steps: Sequence[StepKey], target: Target, say: Callable[[str], None]) -> Generator[None]:
    """RTAI is loaded while this is entered, where a step is measured on it and it can be: for the facts,
    which then have its calibration.
    """
    key = next((key for key in steps if key.rt == "rtai"), None)
    if key is None:
        yield
        return
    applied = _nothing_set()
    try:
        with suppress(NoModules):  # said when the step itself is tried
            insert_rtai(key, target, {}, say, applied)
        yield
    finally:
        put_back(applied, target)


def _put_back(key: StepKey, context: RunContext, applied: Applied) -> None:
    context.progress.phase(f"deployment {key.deployment} is put back")
    put_back(applied, context.target)
    context.deployments.not_put_back += applied.report.not_put_back


@contextmanager
def in_deployment(key: StepKey, context: RunContext) -> Generator[tuple[RunContext, Applied | None]]:
    """The step's deployment is in force while this is entered: gives the step's own context, and what was set
    (None: nothing had to be).

    Raises Refused where the machine refuses it after all.
    """
    traces = probes.get(key.probe).traces(key.parameters) if key.tool == "rtgauge" else None
    modules = needs_modules(key)
    explained = key.tool == "rtgauge" and is_explained(key.parameters)
    changed = probes.get(key.probe).changes(key.parameters) if key.tool == "rtgauge" else ()
    sets_nothing = traces is None and not modules and not explained and not changed
    if (
        key.deployment == AS_IS
        and context.controller is None
        and not context.deployments.sets_as_is
        and sets_nothing
    ):
        yield context, None
        return
    context.progress.phase(f"deployment {key.deployment}")
    applied, facts = context.deployments.bring_about(key.deployment)
    own = replace(context, facts=context.facts if facts is None else facts)
    try:
        if applied.group is not None:
            own = replace(own, group=applied.group, isolated=applied.isolated)
        _set_controller(key, context, applied)
        if traces is not None:
            prepare_tracing(traces, applied, context.target, optional=bool(key.parameters.get("trace_parts")))
        if modules:
            _insert_modules(key, context, applied)
        if changed:
            _note(changed, applied, context.target)
        if explained:
            own = replace(own, not_explained=prepare_explain(applied, context.target))
        if context.controller is not None and str(key.parameters.get("path", "")).startswith("gpio:"):
            own = replace(own, at_armed=lambda: _raise_lines(context.target, applied))
        yield own, applied
    except ConnectionBroken:
        raise  # nothing can be put back from here: the guard does it there when its lease is over
    except BaseException:
        _put_back(key, context, applied)
        raise
    _put_back(key, context, applied)


def with_deployment(step: Step, applied: Applied | None, left_before: Sequence[str]) -> Step:
    """The step with what was set for it, and marks for what was refused.

    `left_before`: what could not be put back after earlier steps.
    """
    marks = list(step.marks)
    if left_before:
        detail = (
            f"it did not begin from the run's starting state: {'; '.join(left_before[:3])} could not be "
            "put back after an earlier step"
        )
        marks.append(Mark(name="starting-state", severity=Severity.DOUBTFUL, detail=detail))
    if applied is None:
        return step.model_copy(update={"marks": marks})
    report = applied.report
    refused = [
        setting for setting in report.refused if not setting.path.startswith("trace:")
    ]  # told by the mark not-explained
    if refused or report.not_moved_count:
        detail = (
            f"{report.name}: {len(refused)} of {len(report.settings)} settings were refused, "
            f"{report.not_moved_count} tasks would not move"
        )
        marks.append(Mark(name="deployment-incomplete", severity=Severity.NOTE, detail=detail))
    if report.not_in_effect:
        detail = f"{report.name}: this kernel was built without {', '.join(report.not_in_effect)}"
        marks.append(Mark(name="deployment-incomplete", severity=Severity.NOTE, detail=detail))
    if report.not_found:
        detail = (
            f"no IRQ thread of {', '.join(report.not_found)} was found to raise: only PREEMPT_RT and "
            "threadirqs have them for every device"
        )
        marks.append(Mark(name="nothing-to-raise", severity=Severity.NOTE, detail=detail))
    if report.not_put_back:
        marks.append(
            Mark(
                name="not-put-back",
                severity=Severity.NOTE,
                detail=f"could not be put back: {'; '.join(report.not_put_back[:3])}",
            )
        )
    return step.model_copy(update={"deployment": report, "marks": marks})
