# SPDX-License-Identifier: MIT
"""Makes files that keep a tuning's settings after a boot, for sysctl.d, systemd and tuned. Each has its undo.

They are made from the values that were written, according to the record, and the earlier values.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from rtgauge.units import plural
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.writable import CPUS, is_writable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rtgauge.record.model import DeploymentReport, SettingMade
    from rtgauge.record.reader import Record
    from rtgauge_ext.tune.result import TuneResult

NAME = "rtgauge-tune"
SYSCTL_FILE, UNIT_FILE = f"{NAME}.conf", f"{NAME}.service"
SLICE_FILE = "rtgauge.slice"
"""The slice whose control group is a partition of isolated CPUs. A dash would put it into another slice, but
only a group at the top can be a partition.
"""
TUNED_FILE = "tuned.conf"
SYSCTL = "/proc/sys/"
SUM = "# rtgauge tune wrote the lines below. Their SHA-256: "
"""Begins the first line of a file. `rtgauge restore --applied` removes only a file whose sum is right."""


class Value(NamedTuple):
    """A kernel file, the value that is kept, and the earlier value."""

    path: str
    wanted: str
    old: str

    @property
    def can_be_kept(self) -> bool:
        """Whether rtgauge itself can write this value to a file that exists after the next boot too. Anybody
        may have written the record.
        """
        return is_writable(self.path, self.wanted, self.old)

    def __str__(self) -> str:
        """Return the setting for the user."""
        return f"{self.path} = {self.wanted} (before: {self.old})"


def keep_files(result: TuneResult, record: Record) -> Mapping[str, str]:
    """Return the text of each file by name; empty if the tuning did not show that its settings help."""
    if not result.helps:
        return {}
    made = [Value(each.path, each.wanted, each.old or "") for each in _made(result, record)]
    lasting = [each for each in made if each.can_be_kept]
    files = {**files_with(lasting), TUNED_FILE: _profile(lasting)} if lasting else {}
    isolated = _isolated(result, record)
    files |= {SLICE_FILE: slice_text(isolated)} if isolated else {}
    return {"README.txt": _readme(result, made, files, isolated), **files}


def files_with(values: Sequence[Value]) -> dict[str, str]:
    """Return files for sysctl.d and systemd that set these values at each boot."""
    files: dict[str, str] = {}
    sysctls, others = _parted(values)
    if sysctls:
        files[SYSCTL_FILE] = _summed(
            "".join(f"# before: {each.old}\n{_sysctl(each.path)} = {each.wanted}\n" for each in sysctls)
        )
    if others:
        files[UNIT_FILE] = _summed(_unit(others))
    return files


def slice_text(cpus: str) -> str:
    """Return a systemd slice that isolates these CPUs for the programs in it."""
    return _summed(f"""\
[Unit]
Description=CPUs that rtgauge tune isolated

[Slice]
AllowedCPUs={cpus}
CPUSetPartition=isolated

[Install]
WantedBy=multi-user.target
""")


def _summed(lines: str) -> str:
    return f"{SUM}{hashlib.sha256(lines.encode()).hexdigest()}\n{lines}"


def is_unchanged(text: str) -> bool:
    """Return whether rtgauge wrote this file and nobody has changed it since."""
    return text == _summed(text.partition("\n")[2])


def _parted(values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Return the values that sysctl can set, and the other values."""
    sysctls = [each for each in values if each.path.startswith(SYSCTL)]
    return sysctls, [each for each in values if not each.path.startswith(SYSCTL)]


def _last_run(result: TuneResult, record: Record) -> DeploymentReport | None:
    """Return the deployment of the last run with the kept settings."""
    step = next((step for step in reversed(record.steps) if step.key.deployment == result.deployment), None)
    return None if step is None else step.deployment


def _made(result: TuneResult, record: Record) -> list[SettingMade]:
    """Return the settings that the last run with the kept settings wrote, and that the machine accepted."""
    deployment = _last_run(result, record)
    return [] if deployment is None else [each for each in deployment.settings if each.error is None]


def _isolated(result: TuneResult, record: Record) -> str:
    """Return the CPUs that a partition isolated in that run; empty if there was none. Anybody may have
    written the record.
    """
    deployment = _last_run(result, record)
    is_partition = any(
        each.path.endswith("/cpuset.cpus.partition") and each.wanted == "isolated"
        for each in _made(result, record)
    )
    if deployment is None or not is_partition or re.fullmatch(CPUS, deployment.isolated) is None:
        return ""
    return deployment.isolated


def _sysctl(path: str) -> str:
    return path.removeprefix(SYSCTL).replace("/", ".")


def _unit(made: Sequence[Value]) -> str:
    begin = "\n".join(f"ExecStart=/bin/sh -c 'echo {each.wanted} > {each.path}'" for each in made)
    end = "\n".join(f"ExecStop=/bin/sh -c 'echo {each.old} > {each.path}'" for each in reversed(made))
    return f"""\
[Unit]
Description=Settings that rtgauge tune kept
After=multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
{begin}
{end}

[Install]
WantedBy=multi-user.target
"""


def _profile(values: Sequence[Value]) -> str:
    sysctls, others = _parted(values)
    lines = ["[main]", "summary=Settings that rtgauge tune kept"]
    if sysctls:
        lines += ["", "[sysctl]", *(f"{_sysctl(each.path)}={each.wanted}" for each in sysctls)]
    if others:
        lines += ["", "[sysfs]", *(f"{each.path}={each.wanted}" for each in others)]
    return "\n".join([*lines, ""])


def _readme(result: TuneResult, made: Sequence[Value], files: Mapping[str, str], isolated: str) -> str:
    rest = [each for each in made if not each.can_be_kept]
    boots = [
        f"  {rule.boot}  ({rule.id})"
        for each in result.kept
        if (rule := tried_rules()[each.rule]).boot is not None
    ]
    lines = [
        f"Settings that rtgauge tune kept for {result.requirement}:",
        *(f"  {each.rule}: {each.title}" for each in result.kept),
    ]
    if TUNED_FILE in files:
        lines += [
            "",
            "Install, with systemd: rtgauge tune apply THIS-FOLDER    Undo: rtgauge restore --applied",
            "By hand:",
            f"  cp {SYSCTL_FILE} /etc/sysctl.d/ && sysctl --system",
            f"  cp {UNIT_FILE} /etc/systemd/system/ && systemctl enable --now {NAME}",
            "Undo:",
            f"  systemctl disable --now {NAME}; rm /etc/systemd/system/{UNIT_FILE}",
            (
                f"  rm /etc/sysctl.d/{SYSCTL_FILE}; each line has its old value: restore it with sysctl -w "
                f"NAME=VALUE, or reboot"
            ),
            "Or with tuned:",
            f"  mkdir /etc/tuned/{NAME} && cp {TUNED_FILE} /etc/tuned/{NAME}/ && tuned-adm profile {NAME}",
            "Undo: run tuned-adm profile with the previous profile.",
            "",
            "Interrupt numbers may change at a boot; check them in /proc/interrupts.",
        ]
    if SLICE_FILE in files:
        lines += [
            "",
            f"{SLICE_FILE} isolates CPUs at each boot (systemd 261 or later, control groups version 2).",
            f"Run the real-time program there: write Slice={SLICE_FILE} into its unit, or start it with",
            f"  systemd-run --slice={SLICE_FILE} PROGRAM",
            "By hand:",
            f"  cp {SLICE_FILE} /etc/systemd/system/ && systemctl enable --now {SLICE_FILE}",
            f"  cat /sys/fs/cgroup/{SLICE_FILE}/cpuset.cpus.partition      # must say: isolated",
            "Undo (the programs in the slice keep running):",
            f"  systemctl disable {SLICE_FILE}; rm /etc/systemd/system/{SLICE_FILE}; systemctl daemon-reload",
            "For the rest, which control groups cannot do, boot with:",
            f"  isolcpus=managed_irq,{isolated} rcu_nocbs={isolated}",
            f"If the program computes for longer than a tick, also with nohz_full={isolated}.",
            "(The kernel's documentation advises against it for periodic work.)",
        ]
    daemons = sorted(
        {
            name
            for each in result.kept
            if (trial := tried_rules()[each.rule].trial) is not None
            for name in trial.fought_by
        }
    )
    if daemons:
        lines += ["", f"Disable these daemons if they run, because they undo settings: {', '.join(daemons)}"]
    if boots:
        lines += ["", "Or as kernel parameters:", *boots]
    if rest:
        lines += [
            "",
            (
                f"{plural(len(rest), 'setting')} cannot be kept in a file, because threads and "
                "groups end with the boot."
            ),
            "Apply them until the next boot with:",
            f'  rtgauge deploy apply "{result.deployment}"',
        ]
    return "\n".join([*lines, ""])
