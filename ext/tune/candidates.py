# SPDX-License-Identifier: MIT
"""Finds the settings that can be tried on a machine. They come from audit rules that the machine does not
meet, and a journal can undo them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.record.facts import UNKNOWN, Facts
from rtgauge.system.collect_facts import facts_by
from rtgauge.system.deployment.apply import read_machine
from rtgauge.system.deployment.daemons import FOUGHT_BY, running
from rtgauge.system.deployment.definition import kept_cpus, parse_deployment, why_not
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.file_batch import Files
from rtgauge.target.open_target import reader
from rtgauge.units import format_cpu_list, name_cpus, parse_cpu_list, plural
from rtgauge_ext.audit.audit import SEVERITIES, Finding, judge, purpose_of
from rtgauge_ext.audit.checks import CheckedMachine
from rtgauge_ext.audit.protected import interface_of, why_kept
from rtgauge_ext.audit.rules import Rule, Trial, read_rules, rule_paths, tried_rules
from rtgauge_ext.audit.trial_settings import trial_settings
from rtgauge_ext.deploy.boot_parameters import why_not_by_boot

NEVER = (
    "the network connection through which you reach the machine",
    "the console",
    "thermal limits",
    "the disk of the root file system",
)
"""Settings that no rule may change. A test compares the rules with this."""
ISOLATED = "cpu.isolated"
TAKEN_CPUS = "{cpus}"


@dataclass(frozen=True)
class Candidate:
    """A setting to try: its rule, the value found instead, and how to put it into force."""

    rule: Rule
    trial: Trial
    found: str
    part: str
    """The setting as a part of a deployment: `c-states=off`, or `settings=RULE`."""

    @property
    def id(self) -> str:
        """The id of the setting's rule."""
        return self.rule.id

    @property
    def takes_cpus(self) -> bool:
        """Whether the setting takes the real-time CPUs away from everything else."""
        return TAKEN_CPUS in (self.trial.deployment or "")

    def fewer(self, lists: Sequence[str]) -> dict[str, str]:
        """Return variants of the setting that use only these CPUs, as name -> part of a deployment."""
        return {f"{self.id}={cpus}": _part(self.rule, self.trial, cpus) for cpus in lists}


@dataclass(frozen=True)
class NotTried:
    """A rule that the machine does not meet, and the reason why it is not tried."""

    rule: Rule
    why: str


@dataclass(frozen=True)
class Offer:
    """The settings that can be tried on a machine, the most promising first, and the rules that cannot.

    `daemons`: running daemons that would change a value back. `cpus`: the real-time CPUs; None: all. `fewer`:
    lists of fewer CPUs that may be isolated, the fewest first.
    """

    facts: Facts
    candidates: Sequence[Candidate]
    not_tried: Sequence[NotTried]
    daemons: Sequence[str] = ()
    cpus: str | None = None
    fewer: Sequence[str] = ()

    @property
    def interface(self) -> str | None:
        """The only network interface that may be changed; None: every one without a route."""
        return self.facts.network.name


@dataclass(frozen=True)
class AllowedSettings:
    """The settings that the user allows. `cpus`: the real-time CPUs as a list. `isolate`: instead, up to this
    many of the last CPUs. `pid`: the watched program. `only`, `without`: ids of rules. `by_boot`: whether the
    machine may be booted for each set of settings. `interface`: the network interface in use, or the IP
    address of a peer; no other interface is changed.
    """

    cpus: str | None = None
    pid: int | None = None
    only: Collection[str] = ()
    without: Collection[str] = ()
    by_boot: bool = False
    isolate: int | None = None
    interface: str | None = None


def read_offer(target: str, scope: AllowedSettings) -> Offer:
    """Return what can be tried on a target. This reads the target once and changes nothing. Raises
    InputError, MeasureError.
    """
    with reader(target) as (architecture, read):
        facts, files = facts_by(read, architecture, rule_paths(read_rules()), scope.interface)
        machine = read_machine(read, threads=True, rules=[*tried_rules()])
    return offer(facts, files, machine, scope)


def offer(facts: Facts, files: Files, machine: Machine, scope: AllowedSettings) -> Offer:
    """Return what can be tried. `files`: files for the rules' checks. `machine`: files for their trials.

    Raises InputError for an unknown rule, and for CPUs that are not online.
    """
    fewer: list[str] = []
    if scope.isolate is not None:
        *fewer, last = _last_cpus(scope.isolate, machine)
        scope = replace(scope, cpus=last)
    cpus = scope.cpus
    for name in [*scope.only, *scope.without]:
        if name not in tried_rules():
            raise InputError(
                f"'{name}' is not a setting{nearest(name, tried_rules())}; list the settings with --dry-run"
            )
    if cpus is not None and (offline := sorted(set(parse_cpu_list(cpus)) - set(machine.online))):
        raise InputError(
            f"--cpu {cpus}: {name_cpus(offline)} {'is' if len(offline) == 1 else 'are'} not online; choose "
            f"from {format_cpu_list(machine.online)}"
        )
    purpose = purpose_of(facts)
    audited = CheckedMachine(facts, files)
    real_time = parse_cpu_list(cpus) if cpus is not None else machine.online[1:]
    with_isolated = CheckedMachine(_as_isolated(facts, real_time), files)
    candidates: list[Candidate] = []
    not_tried: list[NotTried] = []
    for rule in sorted(read_rules(), key=lambda rule: SEVERITIES.index(rule.severity)):
        trial = rule.trial
        about_cpus = trial is not None and trial.needs_cpus
        # Here, rules about isolated CPUs apply to the real-time CPUs.
        meant = about_cpus or cpus is not None
        applies = any(check.fact == ISOLATED for check in rule.when)
        judged = judge(rule, purpose, with_isolated if meant and applies else audited)
        why = _why_not(rule, judged, machine, scope, facts)
        if trial is not None and why is None:
            count = len(trial_settings([rule.id], machine, cpus, scope.pid, facts.network.name))
            counted = trial.deployment is None and count and (about_cpus or not rule.checks)
            current = f"{count} to change" if counted else judged.found
            part = _part(rule, trial, cpus) if count or trial.deployment is not None else f"boot={rule.id}"
            candidates.append(Candidate(rule, trial, current, part))
        elif why:
            not_tried.append(NotTried(rule, why))
    fighting = {name for each in candidates for name in _fought_by(each)}
    daemons = sorted({thread.name for thread in running(fighting, machine)})
    return Offer(facts, candidates, not_tried, daemons, cpus, fewer)


def _last_cpus(most: int, machine: Machine) -> list[str]:
    """Return the last CPU, the last two, ..., as lists. CPUs of the same core are adjacent."""
    in_order = [cpu for core in machine.cores for cpu in core]
    if not 1 <= most < len(in_order):
        enough = f"; give at most {len(in_order) - 1}" if len(in_order) > 1 else ""
        raise InputError(
            f"--isolate {most}: the machine has {plural(len(in_order), 'CPU')} online, and at least one "
            f"must remain for everything else{enough}"
        )
    return [format_cpu_list(sorted(in_order[-count:])) for count in range(1, most + 1)]


def _fought_by(candidate: Candidate) -> Collection[str]:
    key = candidate.part.partition("=")[0].replace("-", "_")
    return (*candidate.trial.fought_by, *FOUGHT_BY.get(key, ()))


def _as_isolated(facts: Facts, cpus: list[int]) -> Facts:
    """Return the facts as they would be if these CPUs were isolated."""
    update = {"isolated": format_cpu_list(cpus), "isolated_count": len(cpus)}
    return facts.model_copy(update={"cpu": facts.cpu.model_copy(update=update)})


def _part(rule: Rule, trial: Trial, cpus: str | None) -> str:
    if trial.deployment is None:
        return f"settings={rule.id}"
    return trial.deployment.replace(TAKEN_CPUS, cpus or "")


def _why_not(
    rule: Rule, judged: Finding, machine: Machine, scope: AllowedSettings, facts: Facts
) -> str | None:
    """Return why a rule is not tried: None if it is tried, empty if the machine already meets it."""
    trial, cpus = rule.trial, scope.cpus
    if trial is None:
        return _elsewhere(rule) if judged.result == "differs" else ""
    if judged.result == "not-applicable" or (judged.result == "ok" and not (trial.needs_cpus and trial.set)):
        return ""
    if trial.needs_program and scope.pid is None:
        return "the setting applies to a program; name one with --pid"
    if trial.needs_cpus and cpus is None:
        return "the setting applies to the real-time CPUs; name them with --cpu"
    if trial.deployment is not None and trial.needs_cpus and scope.pid is not None:
        return "the program would have to be moved to the isolated CPUs"
    if trial.deployment is not None:
        deployment = parse_deployment(_part(rule, trial, cpus))
        cannot = (
            why_not_by_boot(deployment, machine, facts.kernel.architecture or UNKNOWN)
            if scope.by_boot
            else why_not(deployment, machine)
        )
        if cannot is not None:
            return cannot.reason
        if cpus is not None and not set(parse_cpu_list(cpus)) <= set(kept_cpus(deployment, machine)):
            return f"the setting would take one of the CPUs {cpus} offline"
    elif trial_settings([rule.id], machine, cpus, scope.pid, facts.network.name):
        pass
    elif (kept := _why_kept(trial, machine, facts)) is not None:
        return kept
    elif trial.boot and judged.result == "differs":
        if not scope.by_boot:
            return _elsewhere(rule)
    else:
        lacks = trial.if_missing or "this machine does not have this setting"
        return lacks if judged.result == "differs" and rule.checks else ""
    if scope.only and rule.id not in scope.only:
        return "not in --only"
    return "left out (--without)" if rule.id in scope.without else None


def _why_kept(trial: Trial, machine: Machine, facts: Facts) -> str | None:
    """Return why the named network interface is not changed; None if the trial is about something else."""
    name = facts.network.name
    about_network = any(interface_of(setting.file or "") for setting in trial.set)
    return why_kept(name, machine.files) if name is not None and about_network else None


def _elsewhere(rule: Rule) -> str:
    if rule.boot is None:
        return rule.remedy
    return f"the setting takes effect only after a boot with {rule.boot}"
