# SPDX-License-Identifier: MIT
"""Files that keep the settings of a tuning after a boot, each with its undo: sysctl.d, a systemd unit, and a
profile of tuned.

They are made of what the record says was written, and of the values before.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rtgauge.system.rules import tried_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rtgauge.record.model import SettingMade
    from rtgauge.record.reader import Record
    from rtgauge.tune.result import TuneResult

NAME = "rtgauge-tune"
SYSCTL = "/proc/sys/"
PATH = re.compile(r"/(?:proc|sys)/[A-Za-z0-9_.:/-]{1,255}")
VALUE = re.compile(r"[A-Za-z0-9_.,-]{1,255}")
"""Of a record that anybody may have written, nothing else goes into a file that root executes."""


def keep_files(result: TuneResult, record: Record) -> Mapping[str, str]:
    """Name -> text of each file; empty if nothing is kept."""
    made = _made(result, record)
    lasting = [each for each in made if _is_plain(each)]
    if not result.kept:
        return {}
    sysctls = [each for each in lasting if each.path.startswith(SYSCTL)]
    others = [each for each in lasting if not each.path.startswith(SYSCTL)]
    files = {"README.txt": _readme(result, [each for each in made if not _is_plain(each)])}
    if sysctls:
        files[f"{NAME}.conf"] = "".join(
            f"# before: {each.old}\n{_sysctl(each.path)} = {each.wanted}\n" for each in sysctls
        )
    if others:
        files[f"{NAME}.service"] = _unit(others)
    if lasting:
        files["tuned.conf"] = _profile(sysctls, others)
    return files


def _made(result: TuneResult, record: Record) -> list[SettingMade]:
    """What was written in the last run with the kept settings, and accepted."""
    step = next((step for step in reversed(record.steps) if step.key.deployment == result.deployment), None)
    if step is None or step.deployment is None:
        return []
    return [each for each in step.deployment.settings if each.error is None]


def _is_plain(made: SettingMade) -> bool:
    """Whether a file of the kernel was written that the next boot has too."""
    path = PurePosixPath(made.path)
    return (
        PATH.fullmatch(made.path) is not None
        and ".." not in path.parts
        and "cgroup" not in path.parts
        and VALUE.fullmatch(made.wanted or "") is not None
        and VALUE.fullmatch(made.old or "") is not None
    )


def _sysctl(path: str) -> str:
    return path.removeprefix(SYSCTL).replace("/", ".")


def _unit(made: Sequence[SettingMade]) -> str:
    begin = [f"ExecStart=/bin/sh -c 'echo {each.wanted} > {each.path}'" for each in made]
    end = [f"ExecStop=/bin/sh -c 'echo {each.old} > {each.path}'" for each in reversed(made)]
    return "\n".join(
        [
            "[Unit]",
            "Description=Settings that rtgauge tune kept",
            "After=multi-user.target",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            *begin,
            *end,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _profile(sysctls: Sequence[SettingMade], others: Sequence[SettingMade]) -> str:
    lines = ["[main]", "summary=Settings that rtgauge tune kept"]
    if sysctls:
        lines += ["", "[sysctl]", *(f"{_sysctl(each.path)}={each.wanted}" for each in sysctls)]
    if others:
        lines += ["", "[sysfs]", *(f"{each.path}={each.wanted}" for each in others)]
    return "\n".join([*lines, ""])


def _readme(result: TuneResult, rest: Sequence[SettingMade]) -> str:
    boots = [
        f"  {rule.boot}  ({rule.id})"
        for each in result.kept
        if (rule := tried_rules()[each.rule]).boot is not None
    ]
    lines = [
        f"Settings that rtgauge tune kept for {result.requirement}:",
        *(f"  {each.rule}: {each.title}" for each in result.kept),
        "",
        "Install, with systemd:",
        f"  cp {NAME}.conf /etc/sysctl.d/ && sysctl --system",
        f"  cp {NAME}.service /etc/systemd/system/ && systemctl enable --now {NAME}",
        "Undo:",
        f"  systemctl disable --now {NAME}; rm /etc/systemd/system/{NAME}.service",
        f"  rm /etc/sysctl.d/{NAME}.conf; each line has its old value: sysctl -w NAME=VALUE, or boot",
        "Or with tuned:",
        f"  mkdir /etc/tuned/{NAME} && cp tuned.conf /etc/tuned/{NAME}/ && tuned-adm profile {NAME}",
        "Undo: tuned-adm profile with the profile before.",
        "",
        "Numbers of interrupts may change at a boot: check /proc/interrupts.",
    ]
    if boots:
        lines += ["", "Instead, as parameters of the kernel:", *boots]
    if rest:
        lines += [
            "",
            f"{len(rest)} settings cannot be kept by a file: the affinity of threads, control groups.",
            "This puts them in force until the next boot:",
            f'  rtgauge deploy apply "{result.deployment}"',
        ]
    return "\n".join([*lines, ""])
