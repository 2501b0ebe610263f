# SPDX-License-Identifier: MIT
"""A deployment, by its name or its settings: `HMI`, or `c-states=off,smt=on,isolate=2-3`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.suggest import nearest
from rtgauge.system.rules import tried_rules
from rtgauge.units import format_cpu_list, parse_cpu_list

if TYPE_CHECKING:
    from collections.abc import Mapping

AS_IS = "as-is"
ALL = "all"
EXAMPLE = "c-states=off,smt=off,cores=all,isolate=1"


@dataclass(frozen=True)
class Deployment:
    """Settings of the cores; None leaves a setting unchanged.

    `c_states`, `smt`, `throttling`: on or off. `cores`: a number, or all. `isolate`: off, all (but the first
    CPU), or a CPU list. `settings`: rules of the audit that are kept, separated by commas; `rt_cpus`: the
    real-time CPUs, which some of these are about.
    """

    name: str
    c_states: str | None = None
    smt: str | None = None
    cores: str | None = None
    isolate: str | None = None
    governor: str | None = None
    throttling: str | None = None
    rt_cpus: str | None = None
    settings: str | None = None

    @property
    def words(self) -> str:
        """The settings as text; empty for as-is."""
        settings = (
            (field.name.replace("_", "-"), getattr(self, field.name))
            for field in fields(self)
            if field.name != "name"
        )
        return ",".join(f"{key}={value}" for key, value in settings if value is not None)

    @property
    def rules(self) -> list[str]:
        """The ids of the audit's rules that it keeps."""
        return self.settings.split(",") if self.settings else []

    @property
    def isolates(self) -> bool:
        """Whether CPUs are isolated for the measurement."""
        return self.isolate not in (None, "off")


COMMON = {"governor": "performance", "throttling": "off"}
"""The same in all six: the paper varies four features only."""
NAMED: dict[str, Deployment] = {
    "CHM": Deployment("CHM", c_states="on", smt="on", cores=ALL, isolate="off", **COMMON),
    "HM": Deployment("HM", c_states="off", smt="on", cores=ALL, isolate="off", **COMMON),
    "HMI": Deployment("HMI", c_states="off", smt="on", cores=ALL, isolate=ALL, **COMMON),
    "M": Deployment("M", c_states="off", smt="off", cores=ALL, isolate="off", **COMMON),
    "MI": Deployment("MI", c_states="off", smt="off", cores=ALL, isolate=ALL, **COMMON),
    "Single": Deployment("Single", c_states="off", smt="off", cores="1", isolate="off", **COMMON),
}
"""Delgado & Choi 2020, table 1."""


def _on_off(key: str, value: str) -> str:
    if value not in ("on", "off"):
        raise InputError(f"deployment: {key} must be on or off, not '{value}'")
    return value


def _cores(key: str, value: str) -> str:
    if value != ALL and not re.fullmatch(r"[1-9][0-9]{0,3}", value):
        raise InputError(f"deployment: {key} must be all or a number from 1, not '{value}'")
    return value


def _isolate(key: str, value: str) -> str:
    if value in ("off", ALL):
        return value
    try:
        return format_cpu_list(parse_cpu_list(value))
    except ValueError:
        raise InputError(
            f"deployment: {key} must be off, all (but the first CPU) or CPUs like 1 or 2-3, not '{value}'"
        ) from None


def _governor(key: str, value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z_]{0,30}", value):
        raise InputError(f"deployment: {key} must be a frequency governor such as performance, not '{value}'")
    return value


def _rt_cpus(key: str, value: str) -> str:
    try:
        return format_cpu_list(parse_cpu_list(value))
    except ValueError:
        raise InputError(f"deployment: {key} must be CPUs like 1 or 2-3, not '{value}'") from None


def _settings(key: str, value: str) -> str:
    """In a fixed order."""
    known = [name for name, rule in tried_rules().items() if rule.trial is not None and rule.trial.set]
    names = {name.strip() for name in value.split(",")}
    for name in sorted(names - {*known}):
        raise InputError(
            f"deployment: {key} has no '{name}'{nearest(name, known)}; rtgauge tune --dry-run lists them"
        )
    return ",".join(name for name in known if name in names)


CHECKS = {
    "c-states": _on_off,
    "smt": _on_off,
    "cores": _cores,
    "isolate": _isolate,
    "governor": _governor,
    "throttling": _on_off,
    "rt-cpus": _rt_cpus,
    "settings": _settings,
}


def _custom(settings: Mapping[str, str]) -> Deployment:
    checked = {key.replace("-", "_"): CHECKS[key](key, value) for key, value in settings.items()}
    words = Deployment("", **checked).words
    rules = [tried_rules()[name] for name in checked.get("settings", "").split(",") if name]
    needing = next((rule.id for rule in rules if rule.trial is not None and rule.trial.needs_cpus), None)
    if needing is not None and "rt_cpus" not in checked:
        raise InputError(f"deployment: {needing} is about the real-time CPUs: name them (rt-cpus=1)")
    return Deployment(words, **checked)


def parse_deployment(text: str) -> Deployment:
    """`"HMI"`, `"as-is"` or `"c-states=off,isolate=1"` -> the deployment; custom settings in a fixed order
    are its name.

    Raises InputError.
    """
    text = text.strip()
    if text == AS_IS:
        return Deployment(AS_IS)
    if "=" not in text:
        for name, deployment in NAMED.items():
            if name.lower() == text.lower():
                return deployment
        raise InputError(
            f"unknown deployment '{text}'{nearest(text, [*NAMED, AS_IS])}, or settings such as {EXAMPLE}"
        )
    settings: dict[str, str] = {}
    # a CPU list has commas too: a part without = belongs to the setting before it
    for part in text.split(","):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign and settings:
            last = next(reversed(settings))
            settings[last] += f",{key}"
            continue
        if key not in CHECKS:
            raise InputError(f"deployment: unknown setting '{key}'{nearest(key, CHECKS)}")
        if key in settings:
            raise InputError(f"deployment: {key} is given twice; separate several deployments by semicolons")
        settings[key] = value
    return _custom(settings)


def split_deployments(text: str) -> list[str]:
    """`"HM,MI;c-states=off,cores=1"` -> HM, MI and a custom one: commas between names, semicolons in one."""
    deployments: list[str] = []
    for chunk in text.split(";"):
        settings: list[str] = []
        for part in (part.strip() for part in chunk.split(",")):
            known = part == AS_IS or part.lower() in {name.lower() for name in NAMED}
            if "=" in part or (settings and not known):
                settings.append(part)
            elif part:
                deployments.append(part)
        if settings:
            deployments.append(",".join(settings))
    return deployments
