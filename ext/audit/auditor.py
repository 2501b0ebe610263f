# SPDX-License-Identifier: MIT
"""What a run asks an audit for: a summary, an interface's facts, and the settings for rules."""

from __future__ import annotations

from functools import cache

from rtgauge.record.facts import AuditSummary, Facts
from rtgauge.system.deployment.extension_auditor import Auditor, AuditRule
from rtgauge.target.file_batch import Files
from rtgauge_ext.audit import interface_facts
from rtgauge_ext.audit.audit import audit, summarise
from rtgauge_ext.audit.rules import Rule, read_rules, rule_paths
from rtgauge_ext.audit.trial_settings import side_effects, trial_paths, trial_settings


def _rules() -> dict[str, AuditRule]:
    return {rule.id: _for_deployments(rule) for rule in read_rules()}


def _for_deployments(rule: Rule) -> AuditRule:
    trial = rule.trial
    if trial is None:
        return AuditRule(rule.title, rule.remedy)
    boot = tuple((rule.boot or "").split()) if trial.boot else ()
    return AuditRule(rule.title, rule.remedy, boot, bool(trial.set), trial.needs_cpus, trial.needs_program)


def _paths() -> list[str]:
    return rule_paths(read_rules())


def _summary(facts: Facts, files: Files) -> AuditSummary:
    return summarise(audit(read_rules(), facts, files))


AUDITOR = Auditor(
    rules=cache(_rules),
    paths=_paths,
    summary=_summary,
    interface_of=interface_facts.interface_of,
    interface_paths=interface_facts.paths,
    interface_facts=interface_facts.facts,
    trial_paths=trial_paths,
    trial_settings=trial_settings,
    side_effects=side_effects,
)
