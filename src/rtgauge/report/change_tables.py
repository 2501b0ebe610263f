# SPDX-License-Identifier: MIT
"""Tabulates which settings rtgauge changed for a step, and what else changed on the target during it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from rtgauge.record.model import (
    Changes,
    DeploymentReport,
    Growth,
    NumberChange,
    SettingMade,
    Step,
    TableLine,
    TextChange,
)
from rtgauge.report.table import Cell, Column, Table, applying
from rtgauge.report.text import NONE, quantity, value, words
from rtgauge.system.deployment.apply import why_refused
from rtgauge.units import format_count, plural

SHOWN = 12
"""The most changes of a kind that are listed. The rest is counted."""
PLACES = 8
"""The most CPUs that are named for one change."""


@dataclass(frozen=True)
class _Counted:
    """A counter: its name, its total gain, its gain in each place, and a size to sort by, if known."""

    name: str
    total: str
    places: str
    size: float | None


def _number(number: float | str | None) -> str:
    if number is None:
        return "unknown"
    return format_count(number) if isinstance(number, int) else value(number)


def _places(per_cpu: Mapping[str, int | None]) -> str:
    pairs = list(per_cpu.items())
    named = [f"{'CPU ' + key if key.isdigit() else key}: {_number(number)}" for key, number in pairs[:PLACES]]
    return ", ".join([*named, "…"] if len(pairs) > PLACES else named)


def _counted(key: str, name: str, item: TableLine | NumberChange | TextChange | int | str | None) -> _Counted:
    """Make a counter from an entry of the kind `key`."""
    if isinstance(item, TableLine):
        size = None if item.total is None else abs(item.total)
        return _Counted(f"{name} {item.name}".strip(), _number(item.total), _places(item.per_cpu), size)
    if isinstance(item, NumberChange | TextChange):
        before, after = quantity(key, item.before)[1], quantity(key, item.after)[1]
        differs = abs(item.after - item.before) if isinstance(item, NumberChange) else before != after
        return _Counted(name, f"{before} → {after}" if before != after else before, "", float(differs))
    return _Counted(name, _number(item), "", abs(item) if isinstance(item, int) else None)


def _cpu_times(times: Mapping[str, Growth]) -> list[_Counted]:
    """Return a counter per kind of CPU time, in ms. `times`: CPU -> kind -> ns."""
    rows: list[_Counted] = []
    for kind in dict.fromkeys(kind for of in times.values() for kind in of):
        ns = {cpu: of.get(kind) for cpu, of in times.items()}
        known = [number for number in ns.values() if number is not None]
        total = sum(known) if len(known) == len(ns) else None
        ms = {cpu: None if number is None else number // 10**6 for cpu, number in ns.items() if number != 0}
        text = f"{_number(total // 10**6)} ms" if total is not None else "unknown"
        rows.append(_Counted(kind, text, _places(ms), total))
    return rows


def change_tables(step: Step) -> list[Table]:
    """Return a table for each kind of change. The last table has the values that are not in a group, such as
    the clock source.
    """
    tables: list[Table] = []
    alone: list[_Counted] = []
    for kind in Changes.model_fields:
        entry = getattr(step.changes, kind)
        if kind == "cpu_time_ns" and entry:
            tables.append(_table("CPU time", _cpu_times(entry)))
        elif isinstance(entry, dict) and entry:
            parts = cast("dict[str, TableLine | NumberChange | int | str | None]", entry)
            title = quantity(kind, 0)[0] if kind.endswith("_khz") else words(kind)
            shown = words if kind == "counters" else str
            tables.append(_table(title, [_counted(kind, shown(name), part) for name, part in parts.items()]))
        elif isinstance(entry, TextChange | str):
            alone.append(_counted(kind, words(kind), entry))
    if alone:
        tables.append(_table("Other", alone))
    return tables


def _table(title: str, entries: list[_Counted]) -> Table:
    by_size = sorted(entries, key=lambda entry: float("-inf") if entry.size is None else -entry.size)
    moved = [entry for entry in by_size if entry.size != 0]
    rest: list[str] = []
    if len(moved) > SHOWN:
        rest.append(f"step.json also has {plural(len(moved) - SHOWN, 'smaller change')}")
    if len(moved) < len(entries):
        unmoved = (f"{entry.name} {entry.total}" for entry in entries if entry.size == 0)
        still = [text.removesuffix(" 0").removesuffix(" 0 ms") for text in unmoved]
        rest.append(f"unchanged: {', '.join(still[:SHOWN])}{', …' if len(still) > SHOWN else ''}")
    rows = [[entry.name, entry.total, entry.places] for entry in moved[:SHOWN]]
    columns = [Column(), Column("", "number"), Column("", "places")]
    return Table(title, columns, rows, ["; ".join(rest)] if rest else [] if entries else [NONE])


PUT_BACK = {
    None: "not yet, when the record was written",
    "restored": "yes",
    "gone": "no: the control group or thread no longer exists",
    "left-changed-by-other": "no: another program has changed it since",
    "left-under-another": "no: a later run also set it",
    "dropped-after-reboot": "by a reboot",
    "failed": "failed",
}
"""Words for the outcomes of the engine's `restore` (docs/formats/agent.md)."""
KEPT_BACK = {"restored", "gone", "dropped-after-reboot"}
"""Outcomes that leave the setting as it was before."""


@dataclass(frozen=True)
class DeploymentTable:
    """A step's deployment: a summary, a table of settings, whether a setting is still changed, and notes."""

    report: DeploymentReport
    summary: str
    settings: Table
    left: bool
    notes: list[str]


def _is_left(setting: SettingMade) -> bool:
    """Return whether the setting still differs from its value before the step."""
    untouched = setting.error is not None and setting.put_back is None
    return not untouched and setting.put_back not in KEPT_BACK


def _setting(setting: SettingMade) -> list[str]:
    outcome = "set" if setting.error is None else Cell(f"refused: {why_refused(setting)}", "alarm")
    before = "unknown" if setting.old is None else setting.old or "empty"
    if setting.error is not None and setting.put_back is None:
        back = "it was not changed"
    else:
        back = PUT_BACK.get(setting.put_back, setting.put_back or "")
    return [setting.path, before, setting.wanted, outcome, Cell(back, "alarm" if _is_left(setting) else "")]


SETTING_COLUMNS = (
    *(
        Column("setting", "path"),
        Column("before", "value", drop_rank=1),
        Column("wanted", "value", drop_rank=2),
    ),
    *(Column("result", "prose"), Column("put back")),
)


def deployment_table(report: DeploymentReport) -> DeploymentTable:
    """Return a step's deployment for display."""
    settings_made = len(report.settings) - len(report.refused)
    parts = [f"{plural(settings_made, 'setting')} made", f"{len(report.refused)} refused"]
    if report.moved or report.not_moved_count:
        parts.append(f"{plural(report.moved, 'task')} moved, {report.not_moved_count} could not be moved")
    left = bool(report.not_put_back) or any(map(_is_left, report.settings))
    parts += ["not all put back" if left else "all put back"]
    parameters = f"with {report.boot_words}" if report.boot_words else "without any parameters"
    booted = (
        f"rtgauge booted the machine for this deployment, {parameters}. After the boot, the machine was in "
        f"{f'the deployment {report.recognised}' if report.recognised else 'none of the six deployments'}."
    )
    noted = (
        f"rtgauge saved and restored {plural(report.noted, 'setting')} that may change when CPUs go offline "
        "or tasks are moved."
    )
    without = f"{', '.join(report.not_found)} {'does' if len(report.not_found) == 1 else 'do'}"
    also = "The priorities of the controller, other real-time threads and IRQ threads were also set."
    notes = applying(
        (report.by == "boot", booted),
        (report.not_in_effect, f"This kernel was built without {', '.join(report.not_in_effect)}."),
        (report.isolated, f"rtgauge reserved CPU {report.isolated} for measuring."),
        (report.noted, noted),
        (report.controller, also),
        (report.not_found, f"{without} not have an IRQ thread whose priority could be raised."),
    )
    rows = [_setting(setting) for setting in report.settings]
    settings = Table("Settings of the deployment", SETTING_COLUMNS, rows)
    return DeploymentTable(report, ", ".join(parts), settings, left, notes)
