# SPDX-License-Identifier: MIT
"""A target's facts in words. The dictionary is what `system` found: any key may be missing or say that it is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rtgauge.report.text import parameter, words
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.record.reader import Record

FIRST = ("hostname", "os", "kernel", "preemption", "cpu_model", "cpus_online", "virtual_machine", "emulated", "clock_source")


def _known(facts: Mapping[str, Any], key: str) -> object:
    item = facts.get(key)
    return None if item in (None, "", "unknown") else item


def cpus(facts: Mapping[str, Any]) -> str | None:
    """How many CPUs of which model, as far as it is known."""
    online = _known(facts, "cpus_online")
    if isinstance(online, list):
        count: str | None = str(len(cast("list[object]", online)))
    else:
        count = str(online) if online is not None else None
    if count is not None and not count.isdigit():
        count = f"CPUs {count}"
    elif count is not None:
        count = "1 CPU" if count == "1" else f"{count} CPUs"
    model = _known(facts, "cpu_model")
    return " of ".join(part for part in (count, None if model is None else str(model)) if part) or None


def machine(facts: Mapping[str, Any]) -> str:
    """Whether it is a virtual machine, in words; says so where that is not known."""
    virtual, emulated = _known(facts, "virtual_machine"), facts.get("emulated")
    if virtual is None:
        text = "virtual machine or not: unknown"
    elif virtual in (False, "none", "no"):
        text = "not a virtual machine"
    else:
        text = "virtual machine" if virtual in (True, "yes") else f"virtual machine ({virtual})"
    return f"{text}, emulated CPU" if emulated is True else text


def system_line(facts: Mapping[str, Any]) -> str:
    """Host, kernel, preemption model, CPUs, and whether virtual: the line that stands beside every number."""
    kernel, preemption = _known(facts, "kernel"), _known(facts, "preemption")
    parts = [
        str(_known(facts, "hostname") or "host unknown"),
        f"Linux {kernel}" if kernel is not None else "kernel unknown",
        str(preemption) if preemption is not None else "preemption model unknown",
        cpus(facts) or "CPUs unknown",
        machine(facts),
    ]
    return " · ".join(parts)


def system_lines(record: Record) -> list[str]:
    """The system line of every target of the record; one target needs no name before it."""
    if not record.systems:
        return ["system unknown: the record holds no facts of its target"]
    if len(record.systems) == 1:
        return [system_line(facts) for facts in record.systems.values()]
    return [f"{name}: {system_line(facts)}" for name, facts in record.systems.items()]


def fact_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of every fact, the ones that matter first."""
    keys = [key for key in FIRST if key in facts] + [key for key in facts if key not in FIRST]
    return [(words(key), _fact(key, facts[key])) for key in keys]


def _fact(key: str, item: object) -> str:
    numbers = _numbers(item) if key.startswith("cpus") else None
    return format_cpu_list(numbers) if numbers else parameter(key, item)


def _numbers(item: object) -> list[int] | None:
    if not isinstance(item, list):
        return None
    found = [number for number in cast("list[object]", item) if type(number) is int and number >= 0]
    return found if len(found) == len(cast("list[object]", item)) else None
