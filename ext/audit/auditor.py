# SPDX-License-Identifier: MIT
"""Summarises an audit for the facts of a record."""

from __future__ import annotations

from rtgauge.record.facts import AuditSummary, Facts
from rtgauge.system.auditor import Auditor
from rtgauge.system.rules import read_rules, rule_paths
from rtgauge.target.file_batch import Files
from rtgauge_ext.audit.audit import audit, summarise


def _paths() -> list[str]:
    return rule_paths(read_rules())


def _summary(facts: Facts, files: Files) -> AuditSummary:
    return summarise(audit(read_rules(), facts, files))


AUDITOR = Auditor(_paths, _summary)
