# SPDX-License-Identifier: MIT
"""A target's facts in words. Any fact may be missing or say that it is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rtgauge.report.text import quantity, words
from rtgauge.system.fact_summary import brief, counts_instructions
from rtgauge.units import parse_cpu_list, plural

if TYPE_CHECKING:
    from rtgauge.record.reader import Record

ELSEWHERE = {"calibrations", "audit"}
"""They are in the facts of a target and have a table of their own on the page."""


def host(name: str, facts: Mapping[str, Any]) -> str:
    """The host's name, or what the target is called where that is unknown."""
    return str(brief(facts)["hostname"] or name)


def hosts(record: Record) -> list[str]:
    """The hosts that were measured."""
    return [host(name, facts) for name, facts in record.systems.items()] or record.run.targets


def _cpus(online: object, model: object) -> str:
    count: str | None = None
    if isinstance(online, str):
        try:
            count = plural(len(parse_cpu_list(online)), "CPU")
        except ValueError:
            count = f"CPUs {online}"
    return " of ".join(str(part) for part in (count, model) if part is not None) or "CPUs unknown"


def _machine(virtual: object, emulated: object, *, instructions: bool) -> str:
    if virtual is None:
        text = "virtual machine or not: unknown"
    elif virtual is False:
        text = "not a virtual machine"
    else:
        text = "virtual machine" if virtual is True else f"virtual machine ({virtual})"
    if emulated is not True:
        return text
    return f"{text}, emulated CPU" + (", clock counts instructions" if instructions else "")


def system_line(name: str, facts: Mapping[str, Any]) -> str:
    """Host, kernel, preemption model, CPUs, and whether virtual: the line that is shown with every number."""
    short = brief(facts)
    kernel, preemption = short["kernel"], short["preemption"]
    if all(
        short[key] is None for key in ("kernel", "preemption", "cpus_online", "cpu_model", "virtual_machine")
    ):
        return (
            "machine unknown"
            if host(name, facts) == "unknown"
            else f"{host(name, facts)} · nothing else is known of the machine"
        )
    parts = [
        host(name, facts),
        f"Linux {kernel}" if kernel is not None else "kernel unknown",
        f"preemption {preemption}" if preemption is not None else "preemption model unknown",
        _cpus(short["cpus_online"], short["cpu_model"]),
        _machine(short["virtual_machine"], short["emulated"], instructions=counts_instructions(facts)),
    ]
    return " · ".join(parts)


def system_lines(record: Record) -> list[str]:
    """The system line of every target of the record."""
    return [system_line(name, facts) for name, facts in record.systems.items()] or [
        "system unknown: the record holds no facts of its target"
    ]


def short_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of the facts that matter first."""
    names = {
        "hostname": "Host",
        "os": "OS",
        "kernel": "Kernel",
        "preemption": "Preemption model",
        "cpu_model": "CPU",
        "cpus_online": "CPUs online",
    }
    names |= {
        "virtual_machine": "Virtual machine",
        "emulated": "Emulated CPU",
        "clock_source": "Clock source",
    }
    return [(names.get(key, words(key)), quantity(key, item)[1]) for key, item in brief(facts).items()]


def all_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of every fact, nested ones by their path."""
    return [row for key, item in facts.items() if key not in ELSEWHERE for row in _rows("", key, item)]


def _rows(path: str, key: str, item: object) -> list[tuple[str, str]]:
    if isinstance(item, Mapping):
        nested = cast("Mapping[str, object]", item)
        return [
            row for inner, part in nested.items() for row in _rows(f"{path}{words(key)} › ", str(inner), part)
        ]
    name, text = (
        (words(key) if not key.startswith("/") else key, quantity("", item)[1])
        if key.startswith("/")
        else quantity(key, item)
    )
    return [(path + name, text)]
