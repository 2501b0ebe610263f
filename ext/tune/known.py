# SPDX-License-Identifier: MIT
"""Collects the facts about one setting: the advice for and against it, and earlier measurements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rtgauge.errors import InputError, RecordError
from rtgauge.nearest_name import nearest
from rtgauge.record.reader import Record
from rtgauge.report.table import Column, Table
from rtgauge_ext.audit.rules import Rule, read_rules
from rtgauge_ext.tune.gain import format_gain, format_gains
from rtgauge_ext.tune.result import TestFigures, TuneResult
from rtgauge_ext.tune.tuning_options import KEY


def rule_of(name: str) -> Rule:
    """Return the rule with this id. Raises InputError if there is none."""
    rules = {rule.id: rule for rule in read_rules()}
    if name not in rules:
        raise InputError(
            f"'{name}' is not a setting{nearest(name, rules)}; list the settings with: rtgauge tune --dry-run"
        )
    return rules[name]


def advice(rule: Rule) -> list[str]:
    """Return a line for each fact that is known without measuring."""
    trial = rule.trial
    lines = [
        f"{rule.id}: {rule.title}",
        f"For this setting: {rule.why} ({rule.source})",
        f"How much: {rule.how_much}",
        f"How: {rule.remedy}",
    ]
    if trial is None:
        how = (
            f"the setting takes effect only after a boot with {rule.boot}"
            if rule.boot is not None
            else ("tune cannot change and restore this setting")
        )
        return [*lines, f"tune does not try it, because {how}"]
    if trial.boot:
        how = "To set it, boot with" if not trial.set else "To set it at boot, boot with"
        lines.append(f"{how}: {rule.boot} (rtgauge tune --boot each-deployment tries this on a lab guest)")
    lines.append(
        f"Against this setting: {trial.against}"
        if trial.against
        else "rtgauge does not know any advice against this setting"
    )
    lines.append(f"Costs: {trial.cost}")
    if trial.conflicts:
        lines.append(f"Not tried together with: {', '.join(trial.conflicts)}")
    if trial.fought_by:
        lines.append(f"These daemons undo the setting: {', '.join(trial.fought_by)}")
    if trial.lasting:
        lines.append("The effect outlasts the setting, so measurements soon afterwards may still show it")
    return lines


def measured(rule: Rule, folder: Path) -> Table | None:
    """Return every test of this setting, alone or with others, from the records in a folder; None if there is
    none.
    """
    rows = [
        [
            record.path.name,
            ", ".join(test.changed),
            format_gain(test.gain),
            "" if test.low is None or test.high is None else format_gains(test.low, test.high),
            str(test.pairs),
            test.found.value,
        ]
        for record in _tunings(folder)
        for test in _tests(record)
        if rule.id in test.changed
    ]
    columns = [
        Column("record", "nowrap"),
        Column("settings", "prose", drop_rank=2),
        Column("gain", "number"),
        Column("95 % interval", "number", drop_rank=1),
        Column("pairs", "number"),
        Column("shows"),
    ]
    return Table(f"Measured here, in {folder}", columns, rows) if rows else None


def _tunings(folder: Path) -> Iterator[Record]:
    for path in sorted(folder.glob(f"*-{KEY}-*")):
        with suppress(RecordError, OSError):
            yield Record.open(path)


def _tests(record: Record) -> list[TestFigures]:
    try:
        return TuneResult.of(record).tests
    except (InputError, RecordError):
        return []
