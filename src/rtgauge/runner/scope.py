# SPDX-License-Identifier: MIT
"""Applies the settings of one step and undoes them after it, so that each step begins from the same state.
Settings are the deployment, the controller's priorities, kernel tracing and kernel modules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from rtgauge.errors import MeasureError
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import TRACE_INSTANCE
from rtgauge.probe.explain_parameters import EXPLAIN_INSTANCE, is_explained
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Step, StepKey
from rtgauge.runner.context import StepContext, TargetContext, step_context
from rtgauge.runner.deployments import nothing_set
from rtgauge.system.deployment.apply import WHY, Applied, Refused, apply_actions, put_back
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.system.deployment.stages import Setting, Write
from rtgauge.system.loadable_modules import OWN_HELP, ModuleKernel, NoModules, refusal
from rtgauge.system.priorities import CONTROLLER_PATHS, LINE_NAMES, controller_actions, line_actions
from rtgauge.system.program_symbols import own_place, place_on
from rtgauge.system.runtime import runtime_of
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.target_protocol import Target

MAX_PRIORITY = 99
TIMERLAT_SETTINGS = (
    "timerlat_period_us",
    "cpus",
    "stop_tracing_us",
    "stop_tracing_total_us",
    "print_stack",
    "workload",
)
"""The tracer's settings that the engine changes (docs/formats/agent.md, `osnoise:`). They apply to the whole
machine. Older kernels lack the last two.
"""


class CannotTrace(Refused):
    """The kernel cannot record the events that the step needs."""

    what = "the kernel's events"
    remedy = "run as root on a kernel with CONFIG_FTRACE"


class NoParts(CannotTrace):
    """The parts of a response time cannot be traced."""

    what = "trace-parts"
    remedy = "measure without --trace-parts, or as root on a kernel with CONFIG_FTRACE"


class NoTimerlat(CannotTrace):
    """The kernel has no usable timerlat tracer, which a step in kernel space needs."""

    what = "space kernel"
    remedy = (
        "measure in user space (--space user), or boot a kernel with CONFIG_TIMERLAT_TRACER, such as "
        "Debian's PREEMPT_RT kernels"
    )


WHY_NO_TIMERLAT = {
    "ENOENT": "this kernel has no timerlat tracer",
    "ENODEV": "this kernel has no tracefs",
    "EACCES": "this user may not use the kernel's timerlat tracer; run as root",
    "EPERM": "this user may not use the kernel's timerlat tracer; run as root, outside of a container",
}


def _set_controller(key: StepKey, context: TargetContext, applied: Applied) -> None:
    """Set the controller's priorities, if the run has one."""
    controller = context.run.controller
    if controller is None:
        return
    priority = key.parameters.get("priority")
    measured = (
        priority if isinstance(priority, int) and key.parameters.get("policy") != "other" else MAX_PRIORITY
    )
    actions, missing = controller_actions(
        controller,
        context.target.read(CONTROLLER_PATHS),
        own=context.target.controllers,
        measured=measured,
    )
    apply_actions(actions, applied, context.target)
    applied.report.controller = True
    applied.report.not_found = missing


def _raise_lines(target: Target, applied: Applied) -> None:
    """Raise the IRQ threads of the GPIO lines that the armed probe is watching."""
    actions = line_actions(target.read(CONTROLLER_PATHS))
    apply_actions(actions, applied, target)
    if not actions:
        applied.report.not_found.append(LINE_NAMES[1])


def _note(paths: Sequence[str], applied: Applied, target: Target) -> None:
    """Note in the journal the settings that the probe itself will change, so that `restore` restores them.

    Raises MeasureError if a setting's value cannot be saved.
    """
    for answer in target.agent("set", "--note", "--", *paths):
        error = answer.get("error")
        if error is not None:
            raise MeasureError(
                f"the value of {answer.get('path')} on {target.name} cannot be saved, so it could not be "
                f"restored later: {WHY.get(str(error), str(error))}"
            )
        applied.report.noted += 1


def prepare_tracing(
    traces: Literal["tracepoints", "timerlat"], applied: Applied, target: Target, *, optional: bool = False
) -> None:
    """Create the tracefs instance, which `restore` removes. For timerlat, first note the tracer's settings.

    `optional`: whether the probe can measure without it too. Raises CannotTrace if the kernel refuses.
    """
    if traces == "timerlat":
        _note_timerlat(applied, target)
    try:
        apply_actions([Write((Setting(f"trace:{TRACE_INSTANCE}", "present"),))], applied, target)
    except Refused as error:
        if traces == "timerlat":
            raise NoTimerlat(f"the timerlat tracer cannot be used here: {error}") from None
        raise (NoParts if optional else CannotTrace)(
            f"the kernel's events cannot be recorded here: {error}"
        ) from None


def prepare_points(points: Mapping[str, tuple[str, str]], applied: Applied, target: Target) -> None:
    """Make an event in the kernel at each point of a program, which `restore` removes. The instance that
    records them must be made later, so that it is removed earlier.

    Raises InputError if a program has no such point, CannotTrace if the kernel refuses.
    """
    places = {event: place_on(target, binary, symbol) for event, (binary, symbol) in points.items() if binary}
    own = own_place(target, stepped=any(place.stepped for place in places.values()))
    settings = tuple(
        Setting(f"point:{event}", f"{binary}:{places[event].text}" if binary else own)
        for event, (binary, _) in points.items()
    )
    try:
        apply_actions([Write(settings)], applied, target)
    except Refused as error:
        raise CannotTrace(f"the kernel cannot record events at points of a program here: {error}") from None


def prepare_explain(applied: Applied, target: Target) -> str | None:
    """Create the tracefs instance for kernel events, which `restore` removes.

    Return the reason if this fails, otherwise None. The step is measured in either case.
    """
    try:
        apply_actions([Write((Setting(f"trace:{EXPLAIN_INSTANCE}", "present"),))], applied, target)
    except Refused as error:
        return str(error)
    return None


def _note_timerlat(applied: Applied, target: Target) -> None:
    answers = target.agent("set", "--note", "--", *(f"osnoise:{name}" for name in TIMERLAT_SETTINGS))
    error = answers[0].get("error")
    if error is not None:
        raise NoTimerlat(
            WHY_NO_TIMERLAT.get(str(error), f"the kernel's timerlat tracer cannot be used ({error})")
        )
    applied.report.noted += sum(answer.get("error") is None for answer in answers)


@dataclass(frozen=True)
class Needs:
    """What a step needs in addition to its deployment."""

    modules: tuple[str, ...] = ()
    """rtgauge's own kernel modules that the step needs."""
    cokernel: str | None = None
    """The co-kernel whose own modules must be loaded."""
    traces: Literal["tracepoints", "timerlat"] | None = None
    changes: tuple[str, ...] = ()
    """Settings that the probe changes itself."""
    explained: bool = False
    points: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    @property
    def has_modules(self) -> bool:
        """Whether kernel modules must be loaded."""
        return self.cokernel is not None or bool(self.modules)


def needs_of(key: StepKey) -> Needs:
    """Return what a step needs. Another tool applies its own settings, except for a co-kernel's modules.

    Raises InputError if no extension knows the step's co-kernel.
    """
    cokernel = key.rt if key.rt != "linux" and runtime_of(key.rt).core_module is not None else None
    if key.tool != "rtgauge":
        return Needs(cokernel=cokernel)
    probe = probes.get(key.probe)
    parameters = probe.own(key)
    return Needs(
        probe.modules(parameters),
        cokernel,
        probe.traces(parameters),
        probe.changes(parameters),
        is_explained(parameters),
        probe.points(parameters),
    )


def _insert_modules(key: StepKey, context: TargetContext, applied: Applied) -> None:
    """Load the step's kernel modules; `restore` removes them. Raises NoModules if loading fails."""
    needs, notify = needs_of(key), context.run.progress.phase
    if needs.cokernel is not None:
        insert_cokernel(key, context.target, context.facts, notify, applied)
    if needs.modules:
        probe = probes.get(key.probe)
        files = probe.module_files(probe.own(key), context.target, notify)
        notify("loading kernel modules")
        _load(files, context.target, applied)


def insert_cokernel(
    key: StepKey, target: Target, facts: Facts, notify: Callable[[str], None], applied: Applied
) -> None:
    """Load the own modules of the step's co-kernel unless they are loaded.

    Raises NoModules if they are missing, if the kernel refuses them, or if they are loaded already in a way
    that the step cannot use.
    """
    runtime = runtime_of(key.rt)
    files, phase = runtime.modules(key, target, facts)
    if files:
        notify(phase)
        _load(files, target, applied, runtime.module_help)


def _load(files: Sequence[str], target: Target, applied: Applied, module_help: str = OWN_HELP) -> None:
    """Load modules from files. `module_help`: where the user reads how to build them. Raises NoModules if the
    kernel refuses one.
    """
    try:
        apply_actions([Write(tuple(Setting(f"module:{file}", "present") for file in files))], applied, target)
    except Refused:
        refused = next(
            made
            for made in applied.report.settings
            if made.error is not None and made.path.startswith("module:")
        )
        kernel = ModuleKernel.of(target)
        raise refusal(refused.error or "", refused.path, kernel, module_help) from None


@contextmanager
def with_modules(key: StepKey, context: TargetContext) -> Generator[None]:
    """Load the step's kernel modules for the block. Raises NoModules if loading fails."""
    if not needs_of(key).has_modules:
        yield
        return
    applied = nothing_set()
    try:
        _insert_modules(key, context, applied)
        yield
    finally:
        put_back(applied, context.target)


@contextmanager
def with_loaded(files: Sequence[str], target: Target, module_help: str) -> Generator[None]:
    """Load modules of a co-kernel from files for the block. Raises NoModules if the kernel refuses one."""
    applied = nothing_set()
    try:
        _load(files, target, applied, module_help)
        yield
    finally:
        put_back(applied, target)


@contextmanager
def with_cokernels(
    steps: Sequence[StepKey], target: Target, notify: Callable[[str], None]
) -> Generator[frozenset[str]]:
    """Load the co-kernels of the steps for the block, if they load, so that the facts include them. Yields
    the co-kernels whose core this loaded.

    Raises InputError if no extension knows a step's co-kernel.
    """
    names = dict.fromkeys(key.rt for key in steps if key.rt not in ("linux", "auto"))
    to_load = [runtime for runtime in map(runtime_of, names) if runtime.core_module is not None]
    if not to_load:
        yield frozenset()
        return
    applied = nothing_set()
    try:
        for runtime in to_load:
            key = runtime.step_for_facts([key for key in steps if key.rt == runtime.name])
            with suppress(NoModules):  # the step itself reports the error when it is tried
                insert_cokernel(key, target, Facts(), notify, applied)
        made = [setting.path for setting in applied.report.settings if setting.error is None]
        yield frozenset(
            runtime.name for runtime in to_load if any(f"/{runtime.core_module}.ko" in path for path in made)
        )
    finally:
        put_back(applied, target)


def _put_back(key: StepKey, context: TargetContext, applied: Applied) -> None:
    context.run.progress.phase(f"deployment {key.deployment} is put back")
    put_back(applied, context.target)
    context.deployments.not_put_back += applied.report.not_put_back


@contextmanager
def in_deployment(key: StepKey, context: TargetContext) -> Generator[tuple[StepContext, Applied | None]]:
    """Put the step's deployment and other settings into force for the block.

    Yields the step's own context, and what was set (None: nothing). Raises Refused if the machine refuses a
    setting that seemed possible.
    """
    needs, step = needs_of(key), step_context(key, context)
    controller = context.run.controller
    if (
        key.deployment == AS_IS
        and controller is None
        and not context.deployments.sets_as_is
        and needs == Needs()
    ):
        yield step, None
        return
    context.run.progress.phase(f"deployment {key.deployment}")
    applied, facts = context.deployments.bring_about(key.deployment)
    if facts is not None:
        context = replace(context, facts=facts)
        step = replace(step, on=context, facts=facts)
    try:
        if applied.group is not None:
            step = replace(step, group=applied.group, isolated=applied.isolated)
        _set_controller(key, context, applied)
        if needs.points:
            prepare_points(needs.points, applied, context.target)
        if needs.traces is not None:
            prepare_tracing(
                needs.traces, applied, context.target, optional=bool(key.parameters.get("trace_parts"))
            )
        if needs.has_modules:
            _insert_modules(key, context, applied)
        if needs.changes:
            _note(needs.changes, applied, context.target)
        if needs.explained:
            step = replace(step, not_explained=prepare_explain(applied, context.target))
        if controller is not None and str(key.parameters.get("path")).startswith("gpio:"):
            step = replace(step, at_armed=lambda: _raise_lines(context.target, applied))
        yield step, applied
    except ConnectionBroken:
        raise  # the guard on the target restores everything when its lease ends
    except BaseException:
        _put_back(key, context, applied)
        raise
    _put_back(key, context, applied)


def with_deployment(step: Step, applied: Applied | None, left_before: Sequence[str]) -> Step:
    """Return the step with a report of the settings, and marks for settings that were refused, have no
    effect, or could not be restored.

    `left_before`: settings that could not be restored after earlier steps.
    """
    marks = list(step.marks)
    if left_before:
        detail = (
            f"the step did not begin from the run's starting state, because some settings could not be "
            f"restored after an earlier step: {'; '.join(left_before[:3])}"
        )
        marks.append(MarkKind.STARTING_STATE.mark(detail))
    if applied is None:
        return step.model_copy(update={"marks": marks})
    report = applied.report
    refused = [
        setting for setting in report.refused if not setting.path.startswith("trace:")
    ]  # the mark not-explained reports them
    if refused or report.not_moved_count:
        detail = (
            f"deployment {report.name}: the machine refused {len(refused)} of {len(report.settings)} "
            f"settings; number of tasks that could not be moved: {report.not_moved_count}"
        )
        marks.append(MarkKind.DEPLOYMENT_INCOMPLETE.mark(detail))
    if report.not_in_effect:
        detail = (
            f"deployment {report.name} is incomplete, because this kernel was built without "
            f"{', '.join(report.not_in_effect)}"
        )
        marks.append(MarkKind.DEPLOYMENT_INCOMPLETE.mark(detail))
    if report.not_found:
        detail = (
            f"rtgauge could not raise the priority of IRQ threads for {', '.join(report.not_found)}, because "
            "the kernel runs none there; boot with threadirqs, or boot a PREEMPT_RT kernel"
        )
        marks.append(MarkKind.NOTHING_TO_RAISE.mark(detail))
    if report.not_put_back:
        marks.append(
            MarkKind.NOT_PUT_BACK.mark(
                f"some settings could not be restored: {'; '.join(report.not_put_back[:3])}"
            )
        )
    return step.model_copy(update={"deployment": report, "marks": marks})
