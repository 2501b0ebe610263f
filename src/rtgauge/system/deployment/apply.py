# SPDX-License-Identifier: MIT
"""Applies a deployment on a target through the engine's journal, and restores the machine afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtgauge.errors import HungError, MeasureError
from rtgauge.record.model import DeploymentReport, SettingMade
from rtgauge.system.deployment.definition import ISOLATED, Deployment, isolated_cpus
from rtgauge.system.deployment.extension_auditor import needed_auditor
from rtgauge.system.deployment.machine_state import MACHINE_PATHS, THREAD_PATHS, Machine, more_paths
from rtgauge.system.deployment.stages import STAGES, Action, Gather, Note, Write, rules_kept
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.target.file_batch import Read
    from rtgauge.target.target_protocol import Target

MOST_AT_ONCE = 1000
"""The most paths per call, because a command line's length is limited."""
WHY = {
    "EACCES": "not allowed; run as root",
    "EPERM": "not allowed; run as root, outside of a container",
    "EROFS": "the setting is read-only, as in a container",
    "EBUSY": "it is busy",
    "ENOENT": "it does not exist",
    "EIO": "the kernel does not allow it",
    "differs": "the kernel set another value",
    "alive": "this program hangs in the kernel and cannot be ended; reboot the machine",
    "in-use": "the module stays loaded, because a program of the run that loaded it is still running",
}


ON_THE_HOST = (
    "apply it on the host, outside of the container (rtgauge deploy apply), and measure as-is in the "
    "container, or make the container privileged"
)


class Refused(MeasureError):  # noqa: N818 - like `Cannot`, a reason
    """The machine refused an essential setting of the deployment. Everything was restored."""

    what: str | None = None
    """What the machine cannot do; None if it is the deployment itself."""
    remedy = "see which setting the machine refuses with: rtgauge deploy show"

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(message or reason)
        self.reason = reason


@dataclass
class Applied:
    """A deployment that was applied.

    `group`: the control group to measure in, or None. `isolated`: the isolated CPUs.
    """

    deployment: Deployment
    report: DeploymentReport
    group: str | None = None
    isolated: list[int] = field(default_factory=list[int])


def read_machine(read: Read, *, threads: bool = False, rules: Iterable[str] = ()) -> Machine:
    """Return a target's present state, read in three batches.

    `threads`: whether to read the threads too. `rules`: ids of the audit's rules whose files are also read.
    """
    names = list(rules)
    trial_paths = needed_auditor(f"the settings {', '.join(names)}").trial_paths(names) if names else []
    paths = [*MACHINE_PATHS, *(THREAD_PATHS if threads else []), *trial_paths]
    files = read(list(dict.fromkeys(paths)))
    files |= read(more_paths(files))
    # With cgroup v2, only now are the controllers known, and with them the groups' paths.
    return Machine(files | read(more_paths(files)))


def why_refused(made: SettingMade) -> str:
    """Return the reason, such as `it is read-only, as in a container`; empty if nothing was refused."""
    managed = made.path.startswith("/proc/irq/") and made.error in ("EPERM", "EIO")
    reason = (
        "the kernel manages this interrupt itself" if managed else WHY.get(made.error or "", made.error or "")
    )
    return reason + (f" ({made.now})" if made.error == "differs" and made.now is not None else "")


def explain_refusal(made: SettingMade) -> str:
    """Return the setting and the reason, such as `/sys/... = 1: it is read-only, as in a container`. A trace
    instance is called `tracefs`, because the user does not know its name.
    """
    setting = "tracefs" if made.path.startswith("trace:") else f"{made.path} = {made.wanted}"
    return f"{setting}: {why_refused(made)}"


class _Actions:
    """Carries out a deployment's actions, and fills in its report."""

    def __init__(self, target: Target, report: DeploymentReport, options: tuple[str, ...]) -> None:
        self._target = target
        self._report = report
        self._options = options

    def all(self, actions: Iterable[Action]) -> None:
        """Carry out the actions. Raises Refused when an essential setting is refused."""
        for action in actions:
            if isinstance(action, Write):
                self._write(action)
            elif isinstance(action, Note):
                self._note(action)
            else:
                self._gather(action)

    def _write(self, action: Write) -> None:
        pairs = [argument for setting in action.settings for argument in (setting.path, setting.value)]
        answers = self._target.agent("set", *self._options, "--", *pairs)
        for setting, answer in zip(action.settings, answers, strict=True):
            made = SettingMade(
                path=setting.path,
                old=answer.get("old"),
                wanted=setting.value,
                now=answer.get("now"),
                error=answer.get("error"),
            )
            self._report.settings.append(made)
            if made.path.startswith("group:") and made.old == "present":
                raise Refused(
                    f"the control group {made.path.removeprefix('group:')} already exists and belongs to "
                    "another program"
                )
            if made.error is not None and setting.essential:
                refused = Refused(explain_refusal(made))
                if made.error == "EROFS":
                    refused.remedy = ON_THE_HOST
                raise refused

    def _note(self, action: Note) -> None:
        for begin in range(0, len(action.paths), MOST_AT_ONCE):
            answers = self._target.agent(
                "set", "--note", *self._options, "--", *action.paths[begin : begin + MOST_AT_ONCE]
            )
            # A thread may have ended after it was listed.
            self._report.noted += sum(answer.get("error") is None for answer in answers)

    def _gather(self, action: Gather) -> None:
        answer: dict[str, Any] = self._target.agent("gather", "--", action.group)[0]
        self._report.moved = int(answer.get("moved", 0))
        self._report.not_moved_count = int(answer.get("refused", 0))
        self._report.not_moved = [
            f"{task.get('name') or task.get('task')}: {task.get('error')}"
            for task in answer.get("refusals", [])
        ]


def apply(deployment: Deployment, target: Target, *, held: bool = False) -> Applied:
    """Apply a deployment, stage by stage.

    `held`: whether it stays when this run ends, as with `rtgauge deploy apply`. Raises Refused if the machine
    refuses an essential setting or a setting hangs. After an error, everything that was set is restored.
    """
    report = DeploymentReport(name=deployment.name, words=deployment.words)
    applied = Applied(deployment, report)
    actions = _Actions(target, report, ("--held",) if held else ())
    try:
        for number, stage in enumerate(STAGES):
            rules = deployment.rules if stage is rules_kept else []
            machine = read_machine(target.read, threads=number == 0, rules=rules)
            actions.all(stage(deployment, machine))
        machine = read_machine(target.read)
        applied.isolated = isolated_cpus(deployment, machine) if machine.cpuset is not None else []
        report.isolated = format_cpu_list(applied.isolated)
        if applied.isolated and machine.cpuset is not None:
            applied.group = f"{machine.cpuset.mount}/{ISOLATED}"
    except HungError as error:
        put_back(applied, target, held=held)
        raise Refused(f"a setting hung: {error}") from None
    except BaseException:
        put_back(applied, target, held=held)
        raise
    return applied


def apply_actions(actions: Iterable[Action], applied: Applied, target: Target) -> None:
    """Carry out further actions of a step, which are reported and restored with its deployment."""
    _Actions(target, applied.report, ()).all(actions)


def put_back(applied: Applied, target: Target, *, held: bool = False) -> None:
    """Restore everything that this run set, newest first, and report each setting's result."""
    answers = [
        answer
        for answer in target.agent("restore", *(("--held",) if held else ()))
        if answer.get("type") == "restore"
    ]
    actions = {(str(answer.get("path")), answer.get("old")): str(answer.get("action")) for answer in answers}
    for made in applied.report.settings:
        made.put_back = actions.get((made.path, made.old), made.put_back)
    failed = [answer for answer in answers if answer.get("error") is not None]
    applied.report.not_put_back = [
        f"{answer.get('path')}: {WHY.get(str(answer.get('error')), answer.get('error'))}" for answer in failed
    ]
