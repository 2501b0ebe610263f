# SPDX-License-Identifier: MIT
"""Puts deployments into force on a target, by settings on the running machine or by booting a lab guest for
each. It also finds the deployments that a target does not support.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.record.facts import UNKNOWN, Facts
from rtgauge.record.model import DeploymentReport, LeftOut, StepKey
from rtgauge.runner.context import Abandoned, InForce, Interrupt, Possible, abandon
from rtgauge.system.deployment.apply import Applied, Refused, apply, read_machine
from rtgauge.system.deployment.boot_parameters import (
    boot_words,
    differs,
    left_to_set,
    not_in_effect,
    other_words,
    why_not_by_boot,
)
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
from rtgauge.system.facts import facts_by
from rtgauge.target.engine_path import installed_engines
from rtgauge.target.file_batch import cpu_list
from rtgauge.target.kind import guest_kind, name_in_scheme
from rtgauge.target.open_target import console, where_now
from rtgauge.target.target import Target
from rtgauge.units import format_cpu_list, parse_cpu_list

if TYPE_CHECKING:
    from rtgauge.target.ssh import SshTarget
    from rtgauge.target.ssh_address import SshAddress

PLAIN = "no deployment"
BOOT_S = 12.0
"""About how long an emulated guest takes to reboot (s)."""


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
        f"this deployment measures on CPU {format_cpu_list(given)}, not on CPU {format_cpu_list(missing)}",
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


class NotBooted(Refused):
    """The guest did not come up, or came up in another deployment than it was booted for."""

    remedy = "read its console output in the record (console.log)"


@dataclass(frozen=True)
class _Boot:
    """The guest's current boot: its deployment, its boot parameters, and its facts."""

    name: str
    words: list[str]
    facts: Facts


class BootDeployments:
    """Boots a guest for each deployment of a run. A DeploymentStrategy."""

    sets_as_is = True

    def __init__(self, target: SshTarget, interrupt: Interrupt, phase: Callable[[str], None]) -> None:
        """Boot the guest without any deployment's parameters, unless it already runs without them: only then
        can a run choose the deployments. Other parameters stay.

        `phase` is called with each phase's name. Raises MeasureError if the guest does not come up, or if a
        boot would undo a deployment that `deploy apply` holds.
        """
        self._target = target
        self._interrupt = interrupt
        self._phase = phase
        self.not_put_back: list[str] = []
        self._failed: dict[str, NotBooted] = {}
        self._current: _Boot | None = None
        self._consoles: list[bytes] = []
        self._booted_for = "what was found"
        self._refuse_held()
        guests = guest_kind(target.name)
        assert guests is not None  # noqa: S101 - a plan with deployments by boot has guests only
        self._reboots = guests.reboots(name_in_scheme(target.name), installed_engines(), phase)
        self._found = self._reboots.append
        try:
            self._kept = other_words(self._found.split())
            if self._kept != self._found.split():
                self._boot(PLAIN, self._kept)
            self._machine: Machine = read_machine(target.read)
            self._architecture = facts_by(target.read, target.machine).facts.kernel.architecture or UNKNOWN
        except BaseException:
            self.leave()
            raise

    def _refuse_held(self) -> None:
        held = read_held(self._target.read)
        if held is not None:
            name = self._target.name
            raise MeasureError(
                f"{name}: the deployment {held.name} is already applied; undo it first: rtgauge restore "
                f"--applied --target {name}"
            )

    def possible(self, steps: Sequence[StepKey]) -> Possible:
        """Return the steps for whose deployment the guest can boot, and the others with their reasons."""
        possible: list[StepKey] = []
        missing: dict[str, LeftOut] = {}
        for key in steps:
            cannot = None if key.deployment == AS_IS else self._why_not(key, parse_deployment(key.deployment))
            if cannot is None:
                possible.append(key)
            else:
                missing.setdefault(key.deployment, as_left_out(key.deployment, cannot))
        return Possible(possible, list(missing.values()))

    def _why_not(self, key: StepKey, deployment: Deployment) -> Cannot | None:
        return why_not_by_boot(deployment, self._machine, self._architecture) or cpus_not_given(
            key, deployment, self._machine
        )

    def forget(self) -> None:
        """Make the next step boot the guest."""
        self._current = None

    def check(self) -> None:
        """Do nothing, because each boot checks that the guest is held."""

    def expected_s(self, before: str | None, name: str) -> float:
        """Return how long (s) a boot takes if the deployment changes, otherwise 0."""
        return 0.0 if before == name else BOOT_S

    def bring_about(self, name: str) -> InForce:
        """Boot the guest for a deployment, and set what boot parameters cannot set. Return what was done, and
        the new facts.

        Raises NotBooted if the guest does not come up in the deployment, Abandoned if the user ends the run.
        """
        deployment = parse_deployment(name)
        boot = self._booted(name, deployment)
        self._target.check()
        applied = apply(left_to_set(deployment), self._target)
        applied.deployment = deployment
        applied.isolated = isolated_cpus(deployment, self._machine)
        # Only a thread's affinity can place it on CPUs that boot parameters isolate.
        applied.group = f"cpus:{format_cpu_list(applied.isolated)}" if applied.isolated else None
        report = applied.report
        report.words, report.by, report.boot_words = deployment.words, "boot", " ".join(boot.words)
        report.recognised = boot.facts.deployment.name or UNKNOWN
        report.isolated = format_cpu_list(applied.isolated)
        report.not_in_effect = not_in_effect(boot.words, boot.facts.cpu)
        return InForce(applied, boot.facts)

    def _booted(self, name: str, deployment: Deployment) -> _Boot:
        if name in self._failed:
            raise self._failed[name]
        if self._current is not None and self._current.name == name:
            return self._current
        words = (
            self._found.split()
            if name == AS_IS
            else [*self._kept, *boot_words(deployment, self._machine, self._architecture)]
        )
        try:
            self._boot(name, words)
            facts = facts_by(self._target.read, self._target.machine).facts
            wrong = differs(deployment, self._machine, facts.cpu)
            if wrong is not None:
                raise MeasureError(f"booted with '{' '.join(words)}': {wrong}")
        except MeasureError as error:
            self._failed[name] = NotBooted(str(error))
            raise self._failed[name] from None
        self._current = _Boot(name, words, facts)
        return self._current

    def _boot(self, name: str, words: Sequence[str]) -> None:
        """Boot the guest and hold it again. Raises MeasureError or Abandoned."""

        def reboot() -> SshAddress:
            self._consoles.append(self._last_console())
            self._booted_for = name
            self._interrupt.stop_by(abandon)
            try:
                if self._interrupt.requested:
                    raise Abandoned
                self._reboots.boot(" ".join(words))
            finally:
                self._interrupt.stop_by(None)
            return where_now(self._target.name)

        self._current = None
        self._phase(f"boots for {name}")
        self._target.begin_anew(reboot)

    def _last_console(self) -> bytes:
        return f"--- booted for {self._booted_for}\n".encode() + self._reboots.console()

    def console(self) -> bytes:
        """Return the guest's console output from all boots."""
        return b"\n".join([*self._consoles, self._last_console()])

    def leave(self) -> None:
        """Restore the guest's own boot parameters, and release the guest.

        Raises MeasureError if it does not come up.
        """
        self._target.close()
        self._phase("booting with its old parameters")
        self._reboots.leave()
