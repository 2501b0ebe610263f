# SPDX-License-Identifier: MIT
"""Puts deployments into force by booting a guest for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.record.facts import UNKNOWN, Facts
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.runner.context import InForce, Possible
from rtgauge.runner.deployments import as_left_out, cpus_not_given
from rtgauge.runner.interrupt import Abandoned, Interrupt, abandon
from rtgauge.system.collect_facts import facts_by
from rtgauge.system.deployment.apply import Refused, apply, read_machine
from rtgauge.system.deployment.current import read_held
from rtgauge.system.deployment.definition import (
    AS_IS,
    Cannot,
    Deployment,
    isolated_cpus,
    parse_deployment,
)
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.engine_path import installed_engines
from rtgauge.target.kind import BOOT_S, name_in_scheme
from rtgauge.target.open_target import where_now
from rtgauge.units import format_cpu_list
from rtgauge_ext.deploy.boot_parameters import (
    boot_words,
    differs,
    left_to_set,
    not_in_effect,
    other_words,
    why_not_by_boot,
)
from rtgauge_ext.lab.boot_guest import GuestReboots

if TYPE_CHECKING:
    from rtgauge.target.ssh_address import SshAddress
    from rtgauge.target.ssh_target import SshTarget

PLAIN = "no deployment"


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
        self._reboots = GuestReboots(name_in_scheme(target.name), installed_engines(), phase)
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
