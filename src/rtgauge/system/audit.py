# SPDX-License-Identifier: MIT
"""Holds a machine against the rules: what is set as a real-time machine wants it, what differs, what cannot be known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from rtgauge.errors import EXIT_FAILS, EXIT_OK
from rtgauge.system.checks import Found, Machine, Result, as_text, combine, look
from rtgauge.system.kernel import version_tuple
from rtgauge.system.rules import Architecture, AuditSeverity, Purpose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.system.rules import Check, Rule

ARCHITECTURES: dict[str, Architecture] = {"x86_64": "x86-64", "aarch64": "arm64", "arm64": "arm64", "arm": "armhf", "armv7l": "armhf", "armv8l": "armhf"}


class Model(BaseModel):
    """No keys but these."""

    model_config = ConfigDict(extra="forbid")


class Finding(Model):
    """One rule held against the machine."""

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
    mend: str


class AuditDocument(Model):
    """What `rtgauge audit --json` prints."""

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


def purpose_of(facts: Mapping[str, Any]) -> Purpose:
    """What the machine runs now: a real-time core beside Linux, PREEMPT_RT, or neither as far as is known."""
    machine = Machine(facts, {})
    if machine.fact("kernel.extension.name") in ("Xenomai Cobalt", "EVL", "RTAI"):
        return "xenomai"
    return "preempt-rt" if machine.fact("kernel.preemption.model") == "PREEMPT_RT" else "stock"


def architecture_of(facts: Mapping[str, Any]) -> str:
    """x86-64, arm64, armhf, unknown, or another as the kernel calls it."""
    name = str(Machine(facts, {}).fact("kernel.architecture"))
    return ARCHITECTURES.get(name, name)


def wanted(rule: Rule) -> str:
    """The rule's checks in words."""
    return (" or " if rule.enough == "any" else "; ").join(_want(check) for check in rule.checks)


def _want(check: Check) -> str:
    kind, name = check.subject
    test, want = check.test
    choices = " or ".join(as_text(one) for one in (want if isinstance(want, list) else [want]))
    named = f"CONFIG_{name}" if kind == "kernel-option" else name
    if test == "present":
        return named if want else f"no {named}"
    if test == "is":
        return f"{named} {choices}" if kind == "fact" else f"{named}={choices}"
    words = {"is-not": "not", "at-least": "at least", "at-most": "at most", "has": "with", "has-not": "without", "covers": "covers", "avoids": "avoids"}
    return f"{named} {words[test]} {choices}"


def _applies(rule: Rule, purpose: Purpose, machine: Machine) -> Found | None:
    """Why the rule does not apply, or why that is unknown; None where it applies."""
    if purpose not in rule.for_:
        return Found("not-applicable", f"only for {', '.join(rule.for_)}", "")
    architecture = architecture_of(machine.facts)
    if len(rule.architectures) < len(set(ARCHITECTURES.values())):
        if architecture == "unknown":
            return Found("unknown", "the architecture is unknown", "kernel.architecture")
        if architecture not in rule.architectures:
            return Found("not-applicable", f"only on {', '.join(rule.architectures)}", "kernel.architecture")
    if rule.guest is not None:
        virtual = machine.fact("machine.virtual")
        if not isinstance(virtual, bool):
            return Found("unknown", "whether this is a virtual machine is unknown", "machine.virtual")
        if virtual != rule.guest:
            return Found("not-applicable", f"only {'in a' if rule.guest else 'outside of a'} virtual machine", "machine.virtual")
    if rule.since is not None or rule.until is not None:
        release = version_tuple(str(machine.fact("kernel.release")))
        if release is None:
            return Found("unknown", "the kernel's version is unknown", "kernel.release")
        since, until = version_tuple(rule.since), version_tuple(rule.until)
        if (since and release < since) or (until and release >= until):
            span = f"from {rule.since} " if rule.since else ""
            return Found("not-applicable", f"only for Linux {span}{f'before {rule.until}' if rule.until else 'on'}", "kernel.release")
    for check in rule.when:
        found = look(check, machine)
        if found.result == "unknown":
            return Found("unknown", f"whether it applies is unknown: {found.text}", found.where)
        if found.result != "ok":
            return Found("not-applicable", found.text, found.where)
    return None


def judge(rule: Rule, purpose: Purpose, machine: Machine) -> Finding:
    """Hold the machine against one rule."""
    outside = _applies(rule, purpose, machine)
    looked = [outside] if outside is not None else [look(check, machine) for check in rule.checks]
    result = outside.result if outside is not None else combine([found.result for found in looked], rule.enough)
    # of several checks those that decided are shown
    telling = [found for found in looked if found.result == result] or looked
    return Finding(
        rule=rule.id,
        title=rule.title,
        severity=rule.severity,
        result=result,
        wanted=wanted(rule),
        found="; ".join(dict.fromkeys(found.text for found in telling)),
        where=list(dict.fromkeys(found.where for found in telling if found.where)),
        why=rule.why,
        source=rule.source,
        how_much=rule.how_much,
        mend=rule.mend,
    )


def audit(rules: list[Rule], facts: Mapping[str, Any], files: Mapping[str, Any], purpose: Purpose | None = None, version: str = "") -> AuditDocument:
    """Hold a machine against all rules.

    `facts` and `files`: as `facts` makes them out of the batch of FACT_PATHS and `rule_paths`; `purpose`: what the machine is to be good for,
    by default what it runs now; `version`: of rtgauge.
    """
    machine = Machine(facts, files)
    for_what = purpose or purpose_of(facts)
    findings = [judge(rule, for_what, machine) for rule in rules]
    counts: dict[Result, int] = {"ok": 0, "differs": 0, "unknown": 0, "not-applicable": 0}
    for finding in findings:
        counts[finding.result] += 1
    virtual = machine.fact("machine.virtual")
    return AuditDocument(
        rtgauge=version,
        host=str(machine.fact("host")),
        kernel=str(machine.fact("kernel.release")),
        purpose=for_what,
        purpose_from="asked" if purpose else "found",
        architecture=architecture_of(facts),
        guest=virtual if isinstance(virtual, bool) else None,
        serious=any(finding.result == "differs" and finding.severity == "serious" for finding in findings),
        counts=counts,
        findings=findings,
    )


def exit_status(document: AuditDocument) -> int:
    """0 where nothing serious differs, 1 where something does."""
    return EXIT_FAILS if document.serious else EXIT_OK
