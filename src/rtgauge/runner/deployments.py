# SPDX-License-Identifier: MIT
"""Deployments by settings while the machine runs, and what of them a machine cannot take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtgauge.errors import MeasureError
from rtgauge.record.model import DeploymentReport, LeftOut, StepKey
from rtgauge.system.deployment.ability import Cannot, isolated_cpus, kept_cpus, why_not
from rtgauge.system.deployment.apply import Applied, Refused, apply, read_machine
from rtgauge.system.deployment.current import Held, read_held
from rtgauge.system.deployment.definition import AS_IS, Deployment, parse_deployment
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.system.file_batch import cpu_list
from rtgauge.target.factory import console
from rtgauge.target.target import Target
from rtgauge.units import format_cpu_list, parse_cpu_list


def as_left_out(name: str, cause: Cannot | Refused) -> LeftOut:
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


def nothing_set() -> Applied:
    """A deployment that changes nothing."""
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
                missing.setdefault(key.deployment, as_left_out(key.deployment, cannot))
        return possible, list(missing.values())

    def bring_about(self, name: str) -> tuple[Applied, Mapping[str, Any] | None]:
        """Set the deployment; the facts stay. Raises Refused."""
        # as-is sets nothing: the machine is not read for it
        return (nothing_set() if name == AS_IS else apply(parse_deployment(name), self._target)), None

    def forget(self) -> None:
        """Nothing: each step sets its deployment, and puts it back."""

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
