# SPDX-License-Identifier: MIT
"""What the page shows of a step's deployment: each setting, what the machine made of it, and whether it was
put back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.report.table import Cell, Column, Table
from rtgauge.system.deployment.apply import why_refused
from rtgauge.units import plural

if TYPE_CHECKING:
    from rtgauge.record.model import DeploymentReport, SettingMade

PUT_BACK = {
    None: "not yet, when this was written",
    "restored": "yes",
    "gone": "gone with its group or thread",
    "left-changed-by-other": "no: something else had changed it since",
    "left-under-another": "no: a later run had set it too",
    "dropped-after-reboot": "by a reboot",
    "failed": "failed",
}
"""The words of the engine's `restore` for people (docs/formats/agent.md)."""
KEPT_BACK = {"restored", "gone", "dropped-after-reboot"}
"""After these the setting is as it was."""


@dataclass(frozen=True)
class DeploymentTable:
    """A step's deployment: in one sentence, in words, setting by setting, and the tasks that did not move."""

    name: str
    words: str
    summary: str
    settings: Table
    not_moved: list[str]
    not_moved_more: int
    left: bool
    not_put_back: list[str]
    notes: list[str]


def _is_left(setting: SettingMade) -> bool:
    """Whether it is not as it was before the step."""
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


COLUMNS = (
    *(Column("setting", "path"), Column("before", "value"), Column("wanted", "value")),
    *(Column("what came of it", "prose"), Column("put back")),
)


def deployment_table(report: DeploymentReport) -> DeploymentTable:
    """The table of a step's deployment."""
    done = len(report.settings) - len(report.refused)
    parts = [f"{plural(done, 'setting')} made", f"{len(report.refused)} refused"]
    parts += (
        [f"{plural(report.moved, 'task')} moved, {report.not_moved_count} would not"]
        if report.moved or report.not_moved_count
        else []
    )
    left = bool(report.not_put_back) or any(map(_is_left, report.settings))
    parts += ["not all put back" if left else "all put back"]
    notes: list[str] = []
    if report.by == "boot":
        words = f"with {report.boot_words}" if report.boot_words else "without parameters for it"
        notes.append(
            f"The machine was booted for it, {words}. Its facts then said {report.recognised or 'nothing'}."
        )
    if report.not_in_effect:
        notes.append(f"This kernel was built without {', '.join(report.not_in_effect)}.")
    if report.isolated:
        notes.append(f"CPU {report.isolated} was set aside for measuring.")
    if report.noted:
        notes.append(
            f"{plural(report.noted, 'setting')} that hotplug or moved tasks may also change: noted before, "
            f"and put back afterwards."
        )
    if report.controller:
        notes.append(
            "The priorities of the controller, other real-time threads and IRQ threads were also set."
        )
    if report.not_found:
        notes.append(f"No IRQ thread was found to raise for: {', '.join(report.not_found)}.")
    return DeploymentTable(
        name=report.name,
        words=report.words.replace(",", ", "),
        summary=", ".join(parts),
        settings=Table(
            "Settings of the deployment", COLUMNS, [_setting(setting) for setting in report.settings]
        ),
        not_moved=list(report.not_moved),
        not_moved_more=max(0, report.not_moved_count - len(report.not_moved)),
        left=left,
        not_put_back=list(report.not_put_back),
        notes=notes,
    )
