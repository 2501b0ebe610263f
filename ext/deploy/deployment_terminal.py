# SPDX-License-Identifier: MIT
"""Prints which deployments a machine supports, and which settings were applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from rtgauge.record.model import DeploymentReport
from rtgauge.report.restored import print_line
from rtgauge.report.table import Table, texts
from rtgauge.report.terminal_table import rich_table
from rtgauge.system.deployment.apply import Applied, explain_refusal
from rtgauge.system.deployment.current import Held
from rtgauge.system.deployment.definition import Cannot, Deployment
from rtgauge.system.deployment.stages import Action, Gather, Note, Write
from rtgauge.units import plural

YES_NO = {"on": "yes", "off": "no", "all": "yes", "1": "no"}


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
        print_line(console, f"{held.name} is applied ({settings}); undo it with: rtgauge restore --applied")


def print_settings(
    deployment: Deployment, cannot: Cannot | None, actions: Sequence[Action], console: Console
) -> None:
    """Print every setting that a deployment would make on this machine, in order."""
    print_line(console, f"{deployment.name}: {deployment.words}", "bold")
    if cannot is not None:
        print_line(
            console, f"This machine does not support this deployment: {cannot.reason}; {cannot.remedy}."
        )
        return
    noted = 0
    for action in actions:
        if isinstance(action, Note):
            noted += len(action.paths)
        elif isinstance(action, Gather):
            print_line(console, f"  rtgauge would move every task that can be moved to {action.group}")
        else:
            for setting in action.settings:
                refusable = "" if setting.essential else "   (may be refused)"
                print_line(console, f"  {setting.path} = {setting.value}{refusable}")
    if not any(isinstance(action, Write) for action in actions):
        print_line(console, "  nothing would change: the machine is already in this state")
    if noted:
        also = f"{plural(noted, 'setting')} that may change when CPUs go offline or tasks are moved"
        print_line(console, f"  rtgauge would also save and restore {also}")


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
    accepted = [setting for setting in report.settings if setting.error is None]
    made = f"{plural(len(accepted), 'setting')}, {plural(report.moved, 'task')} moved"
    print_line(console, f"{report.name} is applied ({made}). Undo it with: rtgauge restore --applied{where}")
    for line in refusals(report):
        print_line(console, f"  {line}")
    if applied.group is not None:
        reached = "`rtgauge run` measures on it; move a shell to it with:"
        print_line(console, f"CPU {report.isolated} is reserved: {reached}")
        print_line(console, f"  echo $$ > {applied.group}/cgroup.procs")
        left = "The tick, RCU callbacks and managed interrupts stay there. Only boot parameters move them: "
        print_line(console, f"{left}rtgauge deploy cmdline {report.name}{where}")
