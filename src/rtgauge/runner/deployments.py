# SPDX-License-Identifier: MIT
"""Puts deployments into force on a target by settings on the running machine, and finds the deployments that
it does not support.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.record.model import DeploymentReport, LeftOut, StepKey
from rtgauge.runner.context import InForce, Possible
from rtgauge.system.deployment.apply import Applied, Refused, apply, read_machine
from rtgauge.system.deployment.current import Held, read_held
from rtgauge.system.deployment.definition import (
    AS_IS,
    Cannot,
    Deployment,
    isolated_cpus,
    kept_cpus,
    parse_deployment,
    why_not,
)
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.file_batch import cpu_list
from rtgauge.target.open_target import console
from rtgauge.target.target_protocol import Target
from rtgauge.units import name_cpus, parse_cpu_list

if TYPE_CHECKING:
    pass


def as_left_out(name: str, cause: Cannot | Refused) -> LeftOut:
    """Return the report that the target cannot apply the deployment `name`, or another setting that a step
    needs.
    """
    what = None if isinstance(cause, Cannot) else cause.what
    return LeftOut(what=what or f"deployment {name}", reason=cause.reason, remedy=cause.remedy)


def cpus_not_given(key: StepKey, deployment: Deployment, machine: Machine) -> Cannot | None:
    """Return why a step that names its CPUs cannot be measured in a deployment that gives it other CPUs."""
    cpus = key.parameters.get("cpu")
    if not isinstance(cpus, str):
        return None
    given = isolated_cpus(deployment, machine) or kept_cpus(deployment, machine)
    missing = sorted(set(parse_cpu_list(cpus)) - set(given))
    if not missing:
        return None
    return Cannot(
        f"this deployment measures on {name_cpus(given)}, not on {name_cpus(missing)}",
        "leave cpu out, because the deployment determines the CPUs",
    )


def nothing_set() -> Applied:
    """Return the applied deployment of a step that sets nothing."""
    deployment = parse_deployment(AS_IS)
    return Applied(deployment, DeploymentReport(name=deployment.name, words=deployment.words))


class LiveDeployments:
    """Sets a run's deployments on the running machine, and restores the settings after each step."""

    sets_as_is = False

    def __init__(self, target: Target) -> None:
        self._target = target
        self.not_put_back: list[str] = []

    def possible(self, steps: Sequence[StepKey]) -> Possible:
        """Return the steps whose deployment this machine supports, and the others with their reasons."""
        names = {key.deployment for key in steps} - {AS_IS}
        if not names:
            return Possible(list(steps), [])
        machine = read_machine(self._target.read)
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
                missing.setdefault(key.deployment, as_left_out(key.deployment, cannot))
        return Possible(possible, list(missing.values()))

    def bring_about(self, name: str) -> InForce:
        """Set the deployment. The facts stay the same. Raises Refused if the machine does not accept it."""
        # as-is sets nothing, so there is no need to read the machine.
        applied = nothing_set() if name == AS_IS else apply(parse_deployment(name), self._target)
        return InForce(applied, None)

    def forget(self) -> None:
        """Do nothing, because each step sets and restores its deployment anyway."""

    def check(self) -> None:
        """Raise MeasureError if this run no longer holds the target."""
        self._target.check()

    def expected_s(self, before: str | None, name: str) -> float:  # noqa: ARG002 - of every strategy
        """Return 0: every step's overhead includes setting the deployment."""
        return 0.0

    def console(self) -> bytes | None:
        """Return a lab guest's console output; None for any other target."""
        return console(self._target.name)


def held_deployment(steps: Sequence[StepKey], target: Target) -> Held | None:
    """Return the deployment that `deploy apply` holds on the target. Steps with `as-is` measure in it.

    Raises MeasureError if a step requires another deployment.
    """
    held = read_held(target.read)
    if held is not None and any(key.deployment != AS_IS for key in steps):
        raise MeasureError(
            f"the deployment {held.name} is already applied; undo it first: rtgauge restore --applied"
        )
    return held


def isolated_in(held: Held, target: Target) -> list[int]:
    """Return the isolated CPUs of a held deployment; empty if no CPU is isolated."""
    if held.group is None:
        return []
    names = [f"{held.group}/cpuset.cpus", f"{held.group}/cpus"]
    files = target.read(names)
    lists = (cpu_list(files.text(name)) for name in names)
    return next((cpus for cpus in lists if cpus), list[int]())
