# SPDX-License-Identifier: MIT
"""Audits a machine: checks its settings against the rules."""

from __future__ import annotations

import re
import shlex
from typing import Literal, get_args

from pydantic import computed_field

from rtgauge.record.facts import UNKNOWN, AuditSummary, Facts, Purpose
from rtgauge.record.strict_model import Model
from rtgauge.system.kernel import version_tuple
from rtgauge.target.file_batch import Files
from rtgauge_ext.audit.checks import CheckedMachine, CheckResult, Result, as_text, carry_out, combine
from rtgauge_ext.audit.rules import Architecture, AuditSeverity, Check, Rule

ARCHITECTURES: dict[str, Architecture] = {
    "x86_64": "x86-64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "arm": "armhf",
    "armv7l": "armhf",
    "armv8l": "armhf",
    "riscv64": "riscv64",
}

SEVERITIES: tuple[AuditSeverity, ...] = get_args(AuditSeverity)
"""The most severe first."""


class Finding(Model):
    """The result of one rule."""

    rule: str
    title: str
    severity: AuditSeverity
    result: Result
    wanted: str
    found: str
    where: list[str]
    why: str
    source: str
    how_much: str
    remedy: str
    commands: list[str]
    boot: str | None


class AuditDocument(Model):
    """The JSON document of `rtgauge audit --json`."""

    version: Literal[1] = 1
    rtgauge: str
    host: str
    kernel: str
    purpose: Purpose
    purpose_from: Literal["asked", "found"]
    architecture: str
    guest: bool | None
    serious: bool
    counts: dict[Result, int]
    findings: list[Finding]

    @property
    def differing(self) -> list[Finding]:
        """The findings that differ, the most severe first."""
        differing = (finding for finding in self.findings if finding.result == "differs")
        return sorted(differing, key=lambda finding: SEVERITIES.index(finding.severity))

    @computed_field
    @property
    def conclusion(self) -> str:
        """The first line that the terminal prints: "2 serious, 9 minor differences from what preempt-rt
        needs; 3 unknown, 60 as wanted".
        """
        differing = self.differing
        counts = {word: sum(finding.severity == word for finding in differing) for word in SEVERITIES}
        parts = [f"{count} {severity}" for severity, count in counts.items() if count]
        noun = "difference" if len(differing) == 1 else "differences"
        result = (
            f"{', '.join(parts)} {noun} from what {self.purpose} needs" if differing else "nothing differs"
        )
        return f"{result}; {self.counts['unknown']} unknown, {self.counts['ok']} as wanted"


def purpose_of(facts: Facts) -> Purpose:
    """Return the kernel's kind: xenomai (any real-time core), preempt-rt or stock (also if unknown)."""
    if facts.kernel.extension.name in ("Xenomai Cobalt", "EVL", "RTAI"):
        return "xenomai"
    return "preempt-rt" if facts.kernel.preemption.model == "PREEMPT_RT" else "stock"


def architecture_of(facts: Facts) -> str:
    """Return x86-64, arm64, armhf, riscv64, unknown, or the kernel's name for another architecture."""
    name = facts.kernel.architecture or UNKNOWN
    return ARCHITECTURES.get(name, name)


def expected_text(rule: Rule) -> str:
    """Describe in words what the rule's checks expect."""
    return (" or " if rule.enough == "any" else "; ").join(_expected_of(check) for check in rule.checks)


def _expected_of(check: Check) -> str:
    kind, name = check.subject
    test, expected = check.test
    choices = " or ".join(as_text(choice) for choice in check.expected)
    named = f"CONFIG_{name}" if kind == "kernel-option" else name
    if test == "present":
        return named if expected else f"no {named}"
    if test == "is":
        return f"{named} {choices}" if kind == "fact" else f"{named}={choices}"
    words = {"is-not": "not", "has": "with", "has-not": "without"}
    return f"{named} {words.get(test, test.replace('-', ' '))} {choices}"


def _exclusion(rule: Rule, purpose: Purpose, machine: CheckedMachine) -> CheckResult | None:
    """Return why the rule does not apply, or why this is unknown; None if it applies."""
    if purpose not in rule.for_:
        return CheckResult("not-applicable", f"only for {', '.join(rule.for_)}", "")
    architecture = architecture_of(machine.facts)
    if len(rule.architectures) < len(set(ARCHITECTURES.values())):
        if architecture == UNKNOWN:
            return CheckResult("unknown", "the machine's architecture is unknown", "kernel.architecture")
        if architecture not in rule.architectures:
            return CheckResult(
                "not-applicable", f"only on {', '.join(rule.architectures)}", "kernel.architecture"
            )
    if rule.guest is not None:
        virtual = machine.facts.machine.virtual
        if virtual is None:
            return CheckResult(
                "unknown", "it is unknown whether this is a virtual machine", "machine.virtual"
            )
        if virtual != rule.guest:
            where = "in" if rule.guest else "outside"
            return CheckResult("not-applicable", f"only {where} a virtual machine", "machine.virtual")
    if rule.since is not None or rule.until is not None:
        release = version_tuple(machine.facts.kernel.release)
        if release is None:
            return CheckResult("unknown", "the kernel's version is unknown", "kernel.release")
        since, until = version_tuple(rule.since), version_tuple(rule.until)
        if (since and release < since) or (until and release >= until):
            span = f"from {rule.since} " if rule.since else ""
            span += f"before {rule.until}" if rule.until else "on"
            return CheckResult("not-applicable", f"only for Linux {span}", "kernel.release")
    for check in rule.when:
        condition = carry_out(check, machine)
        if condition.result == "unknown":
            return CheckResult(
                "unknown", f"it is unknown whether the rule applies: {condition.text}", condition.where
            )
        if condition.result != "ok":
            return CheckResult("not-applicable", condition.text, condition.where)
    return None


def judge(rule: Rule, purpose: Purpose, machine: CheckedMachine) -> Finding:
    """Check the machine against one rule."""
    exclusion = _exclusion(rule, purpose, machine)
    checks = rule.checks if _is_checked(rule, machine.facts) else []
    results = [exclusion] if exclusion is not None else [carry_out(check, machine) for check in checks]
    result: Result = "differs"  # a rule without a check cannot be judged
    if exclusion is not None or results:
        result = exclusion.result if exclusion else combine([check.result for check in results], rule.enough)
    # Show only the checks that decided the result.
    decisive = [check for check in results if check.result == result] or results
    texts = (
        [_named(check) for check in decisive] if len(decisive) > 1 else [decisive[0].text] if decisive else []
    )
    from_rule = rule.model_dump(
        include={"title", "severity", "why", "source", "how_much", "remedy", "commands", "boot"}
    )
    if rule.interface and machine.facts.network.name is not None:
        name = shlex.quote(machine.facts.network.name)
        from_rule["remedy"] = _with_interface(rule.remedy, name)
        from_rule["commands"] = [_with_interface(command, name) for command in rule.commands]
    return Finding(
        **from_rule,
        rule=rule.id,
        result=result,
        wanted=expected_text(rule),
        found="; ".join(dict.fromkeys(texts)),
        where=list(dict.fromkeys(check.where for check in decisive if check.where)),
    )


def _named(check: CheckResult) -> str:
    """Return what a check found, with the name of the kernel's file if it is a bare value."""
    bare = check.where.startswith(("/proc/sys/", "/sys/")) and re.fullmatch(r"[0-9a-z]{1,20}", check.text)
    return f"{check.where.rpartition('/')[2]} {check.text}" if bare else check.text


def _with_interface(remedy: str, name: str) -> str:
    return remedy.replace("INTERFACE", name).replace("/sys/class/net/*/", f"/sys/class/net/{name}/")


def _is_checked(rule: Rule, facts: Facts) -> bool:
    """Return whether the rule's checks can be carried out: some need the network interface in use."""
    return facts.network.name is not None or not rule.interface


def audit(
    rules: list[Rule],
    facts: Facts,
    files: Files,
    purpose: Purpose | None = None,
    version: str = "",
) -> AuditDocument:
    """Check a machine against all rules.

    `facts` and `files`: from a batch of `fact_paths` and `rule_paths`. `purpose`: the kind of kernel to check
    for, by default the running one. `version`: of rtgauge.
    """
    machine = CheckedMachine(facts, files)
    checked_purpose = purpose or purpose_of(facts)
    checked = [rule for rule in rules if rule.checks and _is_checked(rule, facts)]
    findings = [judge(rule, checked_purpose, machine) for rule in checked]
    counts: dict[Result, int] = {"ok": 0, "differs": 0, "unknown": 0, "not-applicable": 0}
    for finding in findings:
        counts[finding.result] += 1
    return AuditDocument(
        rtgauge=version,
        host=facts.host or UNKNOWN,
        kernel=facts.kernel.release or UNKNOWN,
        purpose=checked_purpose,
        purpose_from="asked" if purpose else "found",
        architecture=architecture_of(facts),
        guest=facts.machine.virtual,
        serious=any(finding.result == "differs" and finding.severity == "serious" for finding in findings),
        counts=counts,
        findings=findings,
    )


def summarise(document: AuditDocument) -> AuditSummary:
    """Return how many rules passed, how many are unknown, and the titles of the rules that differ, by
    severity.
    """
    titles: dict[str, list[str]] = {"serious": [], "moderate": [], "minor": []}
    for finding in document.findings:
        if finding.result == "differs":
            titles[finding.severity].append(finding.title)
    return AuditSummary(
        purpose=document.purpose, **titles, unknown=document.counts["unknown"], ok=document.counts["ok"]
    )
