# SPDX-License-Identifier: MIT
"""What the terminal shows of deployments: which a machine can take, what one changes, what was put back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from rtgauge.report.text import printable
from rtgauge.system.deployment.apply import WHY, explain_refusal
from rtgauge.system.deployment.stages import Gather, Note, Write
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from rtgauge.record.model import DeploymentReport
    from rtgauge.system.deployment.ability import Cannot
    from rtgauge.system.deployment.apply import Applied
    from rtgauge.system.deployment.current import Held
    from rtgauge.system.deployment.definition import Deployment
    from rtgauge.system.deployment.stages import Action

YES_NO = {"on": "yes", "off": "no", "all": "yes", "1": "no"}


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_deployments(
    abilities: Mapping[Deployment, Cannot | None], held: Held | None, console: Console
) -> None:
    """The six, with their features, and whether this machine can take each."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("deployment", "C-states", "SMT", "multicore", "isolated", "here"):
        table.add_column(heading, overflow="fold")
    for deployment, cannot in abilities.items():
        features = [
            YES_NO.get(value or "", value or "")
            for value in (deployment.c_states, deployment.smt, deployment.cores, deployment.isolate)
        ]
        table.add_row(
            deployment.name,
            *features,
            Text(printable("possible" if cannot is None else f"no: {cannot.reason}")),
        )
    console.print(table)
    if held is not None:
        _line(
            console,
            f"{held.name} is held ({plural(held.settings, 'setting')}); undo it with: rtgauge restore "
            f"--applied",
        )


def print_settings(
    deployment: Deployment, cannot: Cannot | None, actions: Sequence[Action], console: Console
) -> None:
    """Everything that a deployment would set on this machine, in order."""
    _line(console, f"{deployment.name}: {deployment.words}", "bold")
    if cannot is not None:
        _line(console, f"This machine cannot take it: {cannot.reason}; {cannot.remedy}.")
        return
    noted = 0
    for action in actions:
        if isinstance(action, Note):
            noted += len(action.paths)
        elif isinstance(action, Gather):
            _line(console, f"  every task goes into {action.group}if it can be moved")
        else:
            for setting in action.settings:
                _line(
                    console,
                    f"  {setting.path} = {setting.value}{'' if setting.essential else '   (may refuse)'}",
                )
    if not any(isinstance(action, Write) for action in actions):
        _line(console, "  nothing: the machine is already in this state")
    if noted:
        _line(
            console,
            f"  {plural(noted, 'setting')} that this may also change: noted before, and put back afterwards",
        )


def refusals(report: DeploymentReport) -> list[str]:
    """What a machine did not do, a line each."""
    parts = [f"refused: {explain_refusal(setting)}" for setting in report.refused]
    if report.not_moved_count:
        more = ", ..." if report.not_moved_count > 5 else ""
        parts.append(
            f"{plural(report.not_moved_count, 'task')} would not move: "
            f"{', '.join(report.not_moved[:5])}{more}"
        )
    return parts


def print_applied(applied: Applied, console: Console, where: str = "") -> None:
    """What is in force now, what refused, and how to go on; `where`: the option that names the machine, with
    a space before it.
    """
    report = applied.report
    done = [setting for setting in report.settings if setting.error is None]
    made = f"{plural(len(done), 'setting')}, {plural(report.moved, 'task')} moved"
    _line(console, f"{report.name} is in force: {made}. Undo it with: rtgauge restore --applied{where}")
    for line in refusals(report):
        _line(console, f"  {line}")
    if applied.group is not None:
        _line(
            console,
            f"CPU {report.isolated} is set aside: `rtgauge run` measures there; a shell gets there with",
        )
        _line(console, f"  echo $$ > {applied.group}/cgroup.procs")


def print_put_back(answers: Iterable[Mapping[str, Any]], console: Console) -> bool:
    """What became of each setting; true where something could not be put back."""
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
    _line(
        console,
        ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
        or "nothing had to be put back",
    )
    return failed
