# SPDX-License-Identifier: MIT
"""Prints which deployments a machine supports, and which settings were applied and restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from rtgauge.record.model import DeploymentReport
from rtgauge.report.table import Table, texts
from rtgauge.report.terminal_table import rich_table
from rtgauge.report.text import printable
from rtgauge.system.deployment.apply import WHY, Applied, explain_refusal
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
            _line(console, f"  rtgauge would move every task that can be moved to {action.group}")
        else:
            for setting in action.settings:
                refusable = "" if setting.essential else "   (may be refused)"
                _line(console, f"  {setting.path} = {setting.value}{refusable}")
    if not any(isinstance(action, Write) for action in actions):
        _line(console, "  nothing would change: the machine is already in this state")
    if noted:
        changed = (
            f"{plural(noted, 'setting')} that these changes may also affect {'is' if noted == 1 else 'are'}"
        )
        _line(console, f"  {changed} saved before and restored afterwards")


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
    _line(console, f"{report.name} is applied ({made}). Undo it with: rtgauge restore --applied{where}")
    for line in refusals(report):
        _line(console, f"  {line}")
    if applied.group is not None:
        reached = "`rtgauge run` measures on it; move a shell to it with:"
        _line(console, f"CPU {report.isolated} is reserved: {reached}")
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
    _line(console, done or "nothing had to be restored")
    return failed
