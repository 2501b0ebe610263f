# SPDX-License-Identifier: MIT
"""Chooses the steps that their targets can measure, and reports why the others are left out.

It replaces `rt = auto`, then checks deployments, loads, other tools and the measurers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from rtgauge.errors import EXIT_INPUT, MeasureError, RtgaugeError
from rtgauge.load import load_registry as loads
from rtgauge.probe import probe_registry as probes
from rtgauge.record.facts import RealTimeCore
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import COKERNELS, LeftOut, Mark, StepKey
from rtgauge.record.stream import StreamResult, parse_line
from rtgauge.runner.context import NotHere, NotOnCokernel, Possible, TargetContext, step_context, steps_on
from rtgauge.runner.deployments import as_left_out, held_deployment, isolated_in
from rtgauge.runner.engine import arm, as_exception, check_engine_starts
from rtgauge.runner.scope import in_deployment, with_modules
from rtgauge.runner.step import SINGLE_ENGINE, measurer_of
from rtgauge.system.deployment.apply import Refused
from rtgauge.system.loadable_modules import NoModules
from rtgauge.system.runtime import runtimes
from rtgauge.target.address import LOCAL
from rtgauge.target.target_protocol import Target
from rtgauge.units import format_cpu_list, plural

BY_OTHERS = ("cpu-offline", "cpu-not-allowed")
"""The engine's error codes that another run's deployment can cause."""
AUTO = "auto"
Tries = Literal["always", "unless-alone", "never"]


@dataclass
class Choice:
    """The steps to measure, and the ones left out."""

    contexts: dict[str, TargetContext]
    """The targets by name. If `deploy apply` holds a deployment, the target's context is in it."""
    steps: list[StepKey] = field(default_factory=list[StepKey])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    marks: list[Mark] = field(default_factory=list[Mark])
    tried: bool = False
    """Whether a step was left to try after the checks that need no trying."""

    def why_none(self) -> str:
        """Return the reason why no step can be measured."""
        missing = self.left_out[-1 if self.tried else 0]
        what = missing.what if self.tried else "none of the plan's steps can be measured here"
        return f"{what}: {missing.reason}; {missing.remedy}"


def choose(
    steps: Sequence[StepKey],
    contexts: Mapping[str, TargetContext],
    *,
    tries: Tries = "always",
    planned: Sequence[StepKey] = (),
) -> Choice:
    """Choose the steps that can be measured in a new run, a resumed one, or one that a study extends. Steps
    that are left out are reported to `progress`.

    `tries`: whether to arm each measurer first; `unless-alone` skips this for a single step that is measured
    just as fast. `planned`: steps of an earlier run, which are not chosen again. Raises InputError or
    MeasureError for errors in the plan as a whole.
    """
    choice = Choice(dict(contexts))
    known = set(planned)
    possible: dict[str, list[StepKey]] = {}
    for name, context in contexts.items():
        chosen = _on_chosen_runtime(steps_on(name, steps), context, choice.marks)
        new = [key for key in chosen if key not in known]
        possible[name], missing = _possible_steps(new, context)
        _leave_out(choice, missing, context)
    choice.tried = any(possible.values())
    for name, chosen in possible.items():
        context = contexts[name]
        if not planned:
            context = _in_held_deployment(chosen, context, choice.marks)
        if tries == "always" or (tries == "unless-alone" and not _is_tried_by_measuring(chosen)):
            accepted = _accepted_steps(chosen, context)
            context = replace(context, arming_s=accepted.arming_s)
            _leave_out(choice, accepted.left_out, context)
            choice.steps += accepted.steps
        else:
            choice.steps += chosen
        choice.contexts[name] = context
    # Keep the plan's order if several targets alternate.
    order = {_of_any_runtime(key): number for number, key in enumerate(steps)}
    choice.steps.sort(key=lambda key: order[_of_any_runtime(key)])
    return choice


def _of_any_runtime(key: StepKey) -> str:
    return key.id_without("rt")


def _leave_out(choice: Choice, left_out: Sequence[LeftOut], context: TargetContext) -> None:
    for missing in left_out:
        choice.left_out.append(on_target(missing, context))
        context.run.progress.left_out(choice.left_out[-1])


class ChosenRuntime(NamedTuple):
    """The chosen runtime (linux or a co-kernel), and the reason."""

    name: str
    why: str


def choose_runtime(core: RealTimeCore, machine: str, *, loaded: Container[str] = ()) -> ChosenRuntime:
    """Choose the runtime for a target with this co-kernel and this `uname -m`.

    `loaded`: the co-kernels that rtgauge itself loaded, for other steps of the plan.
    """
    known = runtimes()
    runtime = next((runtime for runtime in known if runtime.core == core.name), None)
    if runtime is None:
        names = " or ".join(COKERNELS[runtime.name] for runtime in known)
        why = (
            f"its kernel does not have {names}" if known else "no installed extension measures on a co-kernel"
        )
        return ChosenRuntime("linux", why)
    why_not = runtime.why_not_chosen(core, loaded=runtime.name in loaded)
    if why_not is not None:
        return ChosenRuntime("linux", why_not)
    try:
        runtime.engine(machine)
    except MeasureError as error:
        return ChosenRuntime("linux", f"its kernel has {core.name}, but {error}")
    version = f" {core.version}" if core.version else ""
    return ChosenRuntime(runtime.name, f"its kernel has {core.name}{version}")


def _on_chosen_runtime(steps: Sequence[StepKey], context: TargetContext, marks: list[Mark]) -> list[StepKey]:
    """Replace `auto` in one target's steps, and add a mark that reports the runtime."""
    if all(key.rt != AUTO for key in steps):
        return list(steps)
    runtime, why = choose_runtime(
        context.facts.kernel.extension, context.target.machine, loaded=context.loaded_cokernels
    )
    chosen = [key.with_parameters(rt=runtime) if key.rt == AUTO else key for key in steps]
    once = list(dict.fromkeys(chosen))
    detail = (
        f"with rt auto, {context.target.name} was measured on {COKERNELS.get(runtime, 'Linux')}, because "
        f"{why}"
    )
    if len(once) < len(chosen):
        same = plural(len(chosen) - len(once), "step")
        detail += f"; {same} of the plan became the same as another step, so rtgauge measured each only once"
    marks.append(MarkKind.RUNTIME_CHOSEN.mark(detail))
    return once


def _possible_steps(steps: Sequence[StepKey], context: TargetContext) -> Possible:
    """Return the steps whose deployment, load and tool this target supports, and the others with their
    reasons.
    """
    target = context.target
    in_deployments, left_out = context.deployments.possible(steps)
    missing_loads = {
        name: loads.get(name).left_out(target) for name in dict.fromkeys(key.load for key in in_deployments)
    }
    missing_tools: dict[tuple[str, str], LeftOut | None] = {}
    known_missing = {missing.what: missing for missing in left_out}
    possible: list[StepKey] = []
    for key in in_deployments:
        missing = missing_loads[key.load]
        if missing is None:
            kind = key.tool, key.space
            if kind not in missing_tools:
                missing_tools[kind] = measurer_of(key).why_not(key, target)
            missing = missing_tools[kind]
        if missing is None:
            possible.append(key)
        else:
            known_missing[missing.what] = missing
    return Possible(possible, list(known_missing.values()))


def _in_held_deployment(steps: Sequence[StepKey], context: TargetContext, marks: list[Mark]) -> TargetContext:
    """Return the context in the deployment that `deploy apply` holds, if any, and add a mark that reports it.

    Raises MeasureError if a step requires another deployment.
    """
    held = held_deployment(steps, context.target)
    if held is None:
        return context
    isolated = isolated_in(held, context.target)
    where = f", on CPU {format_cpu_list(isolated)}" if isolated else ""
    detail = (
        f"the run was measured in the deployment {held.name}, which `rtgauge deploy apply` had set{where}"
    )
    marks.append(MarkKind.DEPLOYMENT_HELD.mark(detail))
    return replace(context, group=held.group, isolated=isolated)


class AcceptedSteps(NamedTuple):
    """The accepted steps, what the target or its co-kernel lacks for the others, and the median time of
    arming (s).
    """

    steps: list[StepKey]
    left_out: list[LeftOut]
    arming_s: float


def _accepted_steps(steps: Sequence[StepKey], context: TargetContext) -> AcceptedSteps:
    """Try each kind of step, and return the steps that the target accepts.

    Raises InputError if the co-kernel supports nothing in the plan, a tool cannot measure its step, or the
    engine refuses the input, and MeasureError if trying fails.
    """
    refused: dict[str, LeftOut | None] = {}
    not_on_cokernel: NotOnCokernel | None = None
    arming_s: list[float] = []
    name = context.target.name
    for runtime in dict.fromkeys(key.rt for key in steps if key.rt != "linux"):
        try:
            check_engine_starts(runtime, context.target)
        except MeasureError as error:
            raise _naming_target(error, name) from None
    for key in steps:
        kind = key.without_load
        if kind in refused:
            continue
        measurer = measurer_of(key)
        refused[kind] = None
        began_s = time.monotonic()
        try:
            with with_modules(key, context) if measurer.arms else nullcontext():
                measurer.try_arm(step_context(key, context))
            if measurer.arms:
                arming_s.append(time.monotonic() - began_s)
        except NoModules as error:
            refused[kind] = as_left_out(key.deployment, error)
        except NotOnCokernel as error:
            not_on_cokernel = not_on_cokernel or error
            refused[kind] = LeftOut(what=key.probe, reason=error.reason, remedy=error.remedy)
        except NotHere as error:
            refused[kind] = LeftOut(
                what=f"{key.probe}, {error.what}", reason=error.reason, remedy=error.remedy
            )
        except RtgaugeError as error:
            raise _naming_target(error, name) from None
    accepted = [key for key in steps if refused.get(key.without_load) is None]
    if not_on_cokernel is not None and not accepted:
        raise _naming_target(not_on_cokernel, name) from None
    left_out = {
        (missing.what, missing.reason): missing for missing in refused.values() if missing is not None
    }
    return AcceptedSteps(accepted, list(left_out.values()), statistics.median(arming_s) if arming_s else 0.0)


def _is_tried_by_measuring(steps: Sequence[StepKey]) -> bool:
    """Return whether arming first gains nothing, because a single Linux step without a load on this machine
    is armed immediately anyway.
    """
    if len(steps) != 1:
        return False
    (key,) = steps
    own = measurer_of(key) is SINGLE_ENGINE and key.rt == "linux" and key.space == "user"
    return own and key.load == "idle" and set(key.targets.values()) == {LOCAL}


def refuse_wrong_input(steps: Sequence[StepKey], target: Target, *, program_comes: bool = False) -> None:
    """Raise InputError if this target refuses a step's input.

    Nothing is armed, so another run may hold the target. Anything that depends on that run is checked later.
    `program_comes`: the watched program is not started yet.
    """
    kinds = {
        key.without_load: key
        for key in steps_on(target.name, steps)
        if key.tool == "rtgauge" and key.rt == "linux"
    }
    for key in kinds.values():
        probe = probes.get(key.probe)
        if probe.measures_clocks or key.peer is not None:
            continue
        later = program_comes or key.load != "idle"
        parameters = probe.own(key)
        arguments = probe.trial_arguments(parameters) if later else probe.arguments(parameters, None)
        result = StreamResult()
        for text in target.try_engine(*arguments, "--check").splitlines():
            result.take(parse_line(text))
        if (
            result.error is not None
            and result.error.status == EXIT_INPUT
            and result.error.code not in BY_OTHERS
        ):
            raise _naming_target(as_exception(result.error, target), target.name)


def check_watching(key: StepKey, context: TargetContext) -> None:
    """Check that the engine can arm a step of `watch`, before its program starts.

    The engine arms everything that the step records, but watches the target's guard instead of the program.

    Raises InputError or MeasureError if the engine refuses.
    """
    guard = key.with_parameters(pid=context.target.controllers[-1], program=None, threads=None)
    probe = probes.get(key.probe)
    try:
        with in_deployment(key, context) as (own, _):
            arm(own, probe.arguments(probe.own(guard), None))
    except Refused as error:
        missing = as_left_out(key.deployment, error)
        raise MeasureError(f"{missing.reason}; {missing.remedy}") from None


def _naming_target(error: RtgaugeError, name: str) -> RtgaugeError:
    """Add the machine's name to the error unless it is this machine."""
    return error if name in (LOCAL, error.on) else error.reword(f"{name}: {error}")


def on_target(missing: LeftOut, context: TargetContext) -> LeftOut:
    """Add the target's name to `missing` if the run has several targets."""
    if len(context.run.targets) == 1:
        return missing
    return missing.model_copy(update={"what": f"{missing.what} on {context.target.name}"})
