# SPDX-License-Identifier: MIT
"""Puts a target's facts into words. Any fact may be missing or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rtgauge.record.facts import Facts, Virtualization
from rtgauge.record.reader import Record
from rtgauge.report.text import quantity, value, words
from rtgauge.units import parse_cpu_list, plural

ELSEWHERE = {"calibrations", "audit"}
"""Facts that have tables of their own on the page."""


def host(name: str, facts: Facts) -> str:
    """Return the host's name; if it is unknown, the target's name."""
    return facts.host or name


def hosts(record: Record) -> list[str]:
    """Return the hosts that were measured."""
    return [host(name, facts) for name, facts in record.systems.items()] or record.run.targets


def _cpus(online: str | None, model: str | None) -> str:
    count: str | None = None
    if online:
        try:
            count = plural(len(parse_cpu_list(online)), "CPU")
        except ValueError:
            count = f"CPUs {online}"
    return " of ".join(part for part in (count, model) if part) or "CPUs unknown"


def _machine(machine: Virtualization) -> str:
    kind = machine.kind
    if kind is None:
        text = "may be a virtual machine"
    elif kind is False:
        text = "not a virtual machine"
    else:
        text = "virtual machine" if kind is True else f"virtual machine ({kind})"
    if not machine.emulated:
        return text
    return f"{text}, emulated CPU" + (", clock counts instructions" if machine.instruction_ns else "")


def system_line(name: str, facts: Facts) -> str:
    """Return the line that goes with every number: host, kernel, preemption model, CPUs, whether virtual."""
    kernel, preemption, cpu = facts.kernel.release, facts.kernel.preemption.model, facts.cpu
    if not (kernel or preemption or cpu.online or cpu.model or facts.machine.virtual is not None):
        name = host(name, facts)
        return "machine unknown" if name == "unknown" else f"{name} · nothing else is known about the machine"
    parts = [
        host(name, facts),
        f"Linux {kernel}" if kernel else "kernel unknown",
        f"preemption {preemption}" if preemption else "preemption model unknown",
        _cpus(cpu.online, cpu.model),
        _machine(facts.machine),
    ]
    return " · ".join(parts)


def system_lines(record: Record) -> list[str]:
    """Return the system line of every target of the record."""
    return [system_line(name, facts) for name, facts in record.systems.items()] or [
        "system unknown, because the record does not contain facts about its target"
    ]


def short_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the most important facts as (name, value)."""
    rows = {
        "Host": facts.host,
        "OS": facts.os,
        "Kernel": facts.kernel.release,
        "Preemption model": facts.kernel.preemption.model,
        "CPU": facts.cpu.model,
        "CPUs online": facts.cpu.online,
        "Virtual machine": facts.machine.kind,
        "Emulated CPU": facts.machine.emulated,
        "Clock source": facts.clock_source.current,
    }
    return [(name, value(None if item == "" else item)) for name, item in rows.items()]


def all_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return every fact as (name, value). Nested facts are named by their path."""
    return [
        row for key, item in facts.as_json().items() if key not in ELSEWHERE for row in _rows("", key, item)
    ]


def _rows(path: str, key: str, item: object) -> list[tuple[str, str]]:
    if isinstance(item, Mapping):
        nested = cast("Mapping[str, object]", item)
        return [
            row for inner, part in nested.items() for row in _rows(f"{path}{words(key)} › ", str(inner), part)
        ]
    is_path = key.startswith("/")
    name, text = (key, quantity("", item)[1]) if is_path else quantity(key, item)
    return [(path + name, text)]
