# SPDX-License-Identifier: MIT
"""What of a plan can be measured on its targets, and what is left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rtgauge.errors import RtgaugeError
from rtgauge.load import registry as loads
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.runner import cross_check, deploy_live
from rtgauge.runner.context import Context, NotHere
from rtgauge.runner.deploy_boot import Boots
from rtgauge.runner.target_check import check_permission
from rtgauge.target.address import LOCAL
from rtgauge.target.target import Target


def possible_steps(steps: Sequence[StepKey], target: Target, boots: Boots | None) -> tuple[list[StepKey], list[LeftOut]]:
    """The steps that this target can take, and what is left out and why."""
    takeable, missing_deployments = deploy_live.possible(steps, target) if boots is None else boots.possible(steps)
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


def check_all(steps: Sequence[StepKey], context: Context) -> tuple[list[StepKey], list[LeftOut]]:
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


def on_target(what: LeftOut, name: str, targets: Mapping[str, Target]) -> LeftOut:
    """Says where, in a run on several machines."""
    return what if len(targets) == 1 else what.model_copy(update={"what": f"{what.what} on {name}"})
