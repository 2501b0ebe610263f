# SPDX-License-Identifier: MIT
"""Shows which deployments a machine supports, and which settings were applied and restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from rtgauge.record.model import DeploymentReport, SettingMade
from rtgauge.report.table import Cell, Column, Table, applying, texts
from rtgauge.report.terminal_table import rich_table
from rtgauge.report.text import printable
from rtgauge.system.deployment.apply import WHY, Applied, explain_refusal, why_refused
from rtgauge.system.deployment.current import Held
from rtgauge.system.deployment.definition import Cannot, Deployment
from rtgauge.system.deployment.stages import Action, Gather, Note, Write
from rtgauge.units import plural

YES_NO = {"on": "yes", "off": "no", "all": "yes", "1": "no"}


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_deployments(
    abilities: Mapping[Deployment, Cannot | None], held: Held | None, console: Console
) -> None:
    """Print the six deployments with their features, and whether this machine supports each."""
    rows: list[list[str]] = []
    for deployment, cannot in abilities.items():
        features = (deployment.c_states, deployment.smt, deployment.cores, deployment.isolate)
        here = "possible" if cannot is None else f"no: {cannot.reason}"
        rows.append([deployment.name, *(YES_NO.get(value or "", value or "") for value in features), here])
    columns = texts("deployment", "C-states", "SMT", "multicore", "isolated", "here")
    console.print(rich_table(Table("", columns, rows), console.width))
    if held is not None:
        settings = plural(held.settings, "setting")
        _line(console, f"{held.name} is applied ({settings}); undo it with: rtgauge restore --applied")


def print_settings(
    deployment: Deployment, cannot: Cannot | None, actions: Sequence[Action], console: Console
) -> None:
    """Print every setting that a deployment would make on this machine, in order."""
    _line(console, f"{deployment.name}: {deployment.words}", "bold")
    if cannot is not None:
        _line(console, f"This machine does not support this deployment: {cannot.reason}; {cannot.remedy}.")
        return
    noted = 0
    for action in actions:
        if isinstance(action, Note):
            noted += len(action.paths)
        elif isinstance(action, Gather):
            _line(console, f"  every task that can be moved goes into {action.group}")
        else:
            for setting in action.settings:
                refusable = "" if setting.essential else "   (may be refused)"
                _line(console, f"  {setting.path} = {setting.value}{refusable}")
    if not any(isinstance(action, Write) for action in actions):
        _line(console, "  nothing: the machine is already in this state")
    if noted:
        changed = f"{plural(noted, 'setting')} that this may also change"
        _line(console, f"  {changed}: saved before and restored afterwards")


def refusals(report: DeploymentReport) -> list[str]:
    """Return a line for each refusal by the machine."""
    parts = [f"refused: {explain_refusal(setting)}" for setting in report.refused]
    if report.not_moved_count:
        names = ", ".join(report.not_moved[:5]) + (", ..." if report.not_moved_count > 5 else "")
        parts.append(f"{plural(report.not_moved_count, 'task')} could not be moved: {names}")
    return parts


def print_applied(applied: Applied, console: Console, where: str = "") -> None:
    """Print the settings in force, refusals, and what to do next. `where`: " --target NAME", or empty."""
    report = applied.report
    done = [setting for setting in report.settings if setting.error is None]
    made = f"{plural(len(done), 'setting')}, {plural(report.moved, 'task')} moved"
    _line(console, f"{report.name} is in force: {made}. Undo it with: rtgauge restore --applied{where}")
    for line in refusals(report):
        _line(console, f"  {line}")
    if applied.group is not None:
        reached = "`rtgauge run` measures there; to move a shell there:"
        _line(console, f"CPU {report.isolated} is set aside: {reached}")
        _line(console, f"  echo $$ > {applied.group}/cgroup.procs")


def print_put_back(answers: Iterable[Mapping[str, Any]], console: Console) -> bool:
    """Print the outcome of each setting; return whether one of them could not be restored."""
    counts: Counter[str] = Counter()
    failed = False
    for answer in answers:
        action = str(answer.get("action"))
        counts[action] += 1
        if answer.get("error") is not None:
            failed = True
            reason = WHY.get(str(answer.get("error")), answer.get("error"))
            _line(console, f"{answer.get('path') or answer.get('text') or 'the journal'}: {reason}", "red")
        elif action.startswith("left-"):
            _line(console, f"{answer.get('path')}: {action.replace('-', ' ')} ({answer.get('now')})")
    done = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
    _line(console, done or "nothing had to be put back")
    return failed


PUT_BACK = {
    None: "not yet, when this was written",
    "restored": "yes",
    "gone": "gone with its group or thread",
    "left-changed-by-other": "no: something else has changed it since",
    "left-under-another": "no: a later run set it too",
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


COLUMNS = (
    *(Column("setting", "path"), Column("before", "value"), Column("wanted", "value")),
    *(Column("result", "prose"), Column("put back")),
)


def deployment_table(report: DeploymentReport) -> DeploymentTable:
    """Return a step's deployment for display."""
    done = len(report.settings) - len(report.refused)
    parts = [f"{plural(done, 'setting')} made", f"{len(report.refused)} refused"]
    if report.moved or report.not_moved_count:
        parts.append(f"{plural(report.moved, 'task')} moved, {report.not_moved_count} could not be moved")
    left = bool(report.not_put_back) or any(map(_is_left, report.settings))
    parts += ["not all put back" if left else "all put back"]
    words = f"with {report.boot_words}" if report.boot_words else "without any parameters"
    booted = f"The machine was booted for it, {words}. Its facts then showed {report.recognised or 'none'}."
    noted = f"{plural(report.noted, 'setting')} that hotplug or moved tasks may also change"
    also = "The priorities of the controller, other real-time threads and IRQ threads were also set."
    notes = applying(
        (report.by == "boot", booted),
        (report.not_in_effect, f"This kernel was built without {', '.join(report.not_in_effect)}."),
        (report.isolated, f"CPU {report.isolated} was set aside for measuring."),
        (report.noted, f"{noted}: saved before and restored afterwards."),
        (report.controller, also),
        (report.not_found, f"No IRQ thread was found to raise for: {', '.join(report.not_found)}."),
    )
    rows = [_setting(setting) for setting in report.settings]
    settings = Table("Settings of the deployment", COLUMNS, rows)
    return DeploymentTable(report, ", ".join(parts), settings, left, notes)
