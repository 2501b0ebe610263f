# SPDX-License-Identifier: MIT
"""What of a plan can be measured on its targets, and what is left out and why: deployments, loads and other
tools, then the engine itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence

from rtgauge.errors import EXIT_INPUT, MeasureError, RtgaugeError
from rtgauge.load import registry as loads
from rtgauge.probe import registry as probes
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.record.stream import StreamResult, parse_line
from rtgauge.runner import autotune_step, cross_check, instrument_step, peer_step
from rtgauge.runner.context import DeploymentStrategy, NotHere, NotOnCokernel, RunContext
from rtgauge.runner.deploy_live import in_deployment, left_out, with_modules
from rtgauge.runner.engine_start import check_engine_starts, start_engine
from rtgauge.runner.engine_stream import arm_and_stop, as_exception
from rtgauge.runner.schedule import steps_on
from rtgauge.system.deployment.apply import Refused
from rtgauge.system.kernel_modules import NoModules
from rtgauge.target.address import LOCAL
from rtgauge.target.target import Target

BY_OTHERS = ("cpu-offline", "cpu-not-allowed")
"""The engine's codes for what another run's deployment may cause."""


def possible_steps(
    steps: Sequence[StepKey], target: Target, deployments: DeploymentStrategy
) -> tuple[list[StepKey], list[LeftOut]]:
    """The steps whose deployment, load and tool this target can take, and what is left out and why."""
    in_deployments, missing_deployments = deployments.possible(steps)
    known_missing = {missing.what: missing for missing in missing_deployments}
    missing_loads = {
        name: loads.get(name).left_out(target) for name in dict.fromkeys(key.load for key in in_deployments)
    }
    tools = dict.fromkeys(
        (key.tool, key.space == "kernel")
        for key in in_deployments
        if key.tool != "rtgauge" and missing_loads[key.load] is None
    )
    missing_tools = {
        (tool, in_kernel): cross_check.left_out(tool, target, in_kernel=in_kernel)
        for tool, in_kernel in tools
    }
    possible: list[StepKey] = []
    for key in in_deployments:
        missing = missing_loads[key.load] or missing_tools.get((key.tool, key.space == "kernel"))
        if missing is None:
            possible.append(key)
        else:
            known_missing[missing.what] = missing
    return possible, list(known_missing.values())


def accepted_steps(
    steps: Sequence[StepKey], context: RunContext
) -> tuple[list[StepKey], list[LeftOut], float]:
    """The steps that the engine accepts, each kind of which is armed and stopped again; what this machine, or
    its co-kernel, lacks; and how long the
    arming of one took, in s.

    Raises InputError, also where the co-kernel has nothing of the plan, or a tool that checks cannot measure
    its step, and MeasureError.
    """
    refused: dict[str, LeftOut | None] = {}
    not_on_cokernel: NotOnCokernel | None = None
    arming_s: list[float] = []
    for runtime in dict.fromkeys(key.rt for key in steps if key.rt != "linux"):
        try:
            check_engine_starts(runtime, context.target)
        except MeasureError as error:
            raise _naming_target(error, context.target.name) from None
    for key in steps:
        if key.tool != "rtgauge":
            cross_check.check(key, context)
        kind = f"{key.probe} {key.parameters}"
        if kind not in refused and key.tool == "rtgauge":
            refused[kind] = None
            began_s = time.monotonic()
            try:
                with with_modules(key, context):
                    _arm_and_stop(key, context)
                arming_s.append(time.monotonic() - began_s)
            except NoModules as error:
                refused[kind] = left_out(key.deployment, error)
            except NotOnCokernel as error:
                not_on_cokernel = not_on_cokernel or error
                refused[kind] = LeftOut(what=key.probe, reason=error.reason, remedy=error.remedy)
            except NotHere as error:
                refused[kind] = LeftOut(
                    what=f"{key.probe}, {error.what}", reason=error.reason, remedy=error.remedy
                )
            except RtgaugeError as error:
                raise _naming_target(error, context.target.name) from None
    accepted = [key for key in steps if refused.get(f"{key.probe} {key.parameters}") is None]
    if not_on_cokernel is not None and not accepted:
        raise _naming_target(not_on_cokernel, context.target.name) from None
    left_out_by_engine = list(
        {
            (missing.what, missing.reason): missing for missing in refused.values() if missing is not None
        }.values()
    )
    return accepted, left_out_by_engine, statistics.median(arming_s) if arming_s else 0.0


def is_tried_by_measuring(steps: Sequence[StepKey]) -> bool:
    """Whether nothing is gained by arming first: a single step of Linux on this machine without a load, which
    arms at once what it measures with.
    """
    if len(steps) != 1:
        return False
    (key,) = steps
    own = (
        key.tool == "rtgauge"
        and key.rt == "linux"
        and key.space == "user"
        and key.peer is None
        and instrument_step.instrument_of(key) is None
    )
    return own and key.load == "idle" and set(key.targets.values()) == {LOCAL}


def refuse_wrong_input(steps: Sequence[StepKey], target: Target, *, program_comes: bool = False) -> None:
    """Raise InputError for steps with input that this target refuses.

    Nothing is armed, so it may be held by another run.

    What depends on that run is left to the time when the target is free. `program_comes`: the watched program
    is not started yet.
    """
    kinds = {
        f"{key.probe} {key.parameters}": key
        for key in steps_on(target.name, steps)
        if key.tool == "rtgauge" and key.rt == "linux"
    }
    for key in kinds.values():
        probe = probes.get(key.probe)
        if probe.measures_clocks or key.peer is not None:
            continue
        later = program_comes or key.load != "idle"
        arguments = probe.arguments(probe.untraced(key.parameters) if later else key.parameters, None)
        result = StreamResult()
        for text in target.try_engine(*arguments, "--check").splitlines():
            result.take(parse_line(text))
        if (
            result.error is not None
            and result.error.status == EXIT_INPUT
            and result.error.code not in BY_OTHERS
        ):
            raise _naming_target(as_exception(result.error, target), target.name)


def check_watching(key: StepKey, context: RunContext) -> None:
    """Arm a step of `watch` with all that it records, before its program is started: the target's guard
    stands for that.

    Raises InputError, MeasureError.
    """
    parameters = key.parameters | {"pid": context.target.controllers[-1], "program": None, "threads": None}
    try:
        with in_deployment(key, context) as (own, _):
            _arm(key, own, probes.get(key.probe).arguments(parameters, None))
    except Refused as error:
        missing = left_out(key.deployment, error)
        raise MeasureError(f"{missing.reason}; {missing.remedy}") from None


def _arm_and_stop(key: StepKey, context: RunContext) -> None:
    """Raises InputError or MeasureError for what the engine refuses."""
    if key.peer is not None:
        peer_step.arm_and_stop_both(key, context)
        return
    if instrument_step.instrument_of(key) is not None:
        instrument_step.check_instrument_and_arm(key, context)
        return
    if autotune_step.calibrates(key):
        autotune_step.find_autotune(context.target)
    probe = probes.get(key.probe)
    # the tracefs instance is made for the step itself; a co-kernel's engine refuses to trace
    parameters = probe.untraced(key.parameters) if key.rt == "linux" else key.parameters
    _arm(key, context, probe.arguments(parameters, None))


def _arm(key: StepKey, context: RunContext, arguments: Sequence[str]) -> None:
    """Raises InputError or MeasureError."""
    refused, status = arm_and_stop(start_engine(key, context, arguments), context.target)
    if refused is not None:
        raise refused
    if status:
        raise MeasureError(
            f"the engine ended at once with status {status}; run `rtgauge probe {key.probe}` to see why"
        )


def _naming_target(error: RtgaugeError, name: str) -> RtgaugeError:
    """The error with the name of its machine, where that is not this one."""
    return error if name == LOCAL or name in str(error) else error.reword(f"{name}: {error}")


def on_target(missing: LeftOut, name: str, targets: Mapping[str, Target]) -> LeftOut:
    """`missing` with the name of its target, in a run on several."""
    return missing if len(targets) == 1 else missing.model_copy(update={"what": f"{missing.what} on {name}"})
