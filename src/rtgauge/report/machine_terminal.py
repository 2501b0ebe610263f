# SPDX-License-Identifier: MIT
"""What the terminal shows of a machine: its facts in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtgauge.report.text import printable, quantity, value, words
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

Rows = list[tuple[str, str]]
LABEL_WIDTH = 22
"""Names are short enough for two lines of this."""
OWN_ROWS = {
    "preemption",
    "extension",
    "idle",
    "frequency",
    "topology",
    "lines",
    "mitigations",
    "mitigated",
    "realtime",
    "fair_server",
    "cgroup",
    "limits",
}
"""Facts of several parts, which have words of their own below."""


def _map(facts: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The part at a path of keys; empty where it is missing or unknown."""
    found: Any = facts
    for key in path:
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _list(facts: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = facts.get(key)
    return (
        [cast("Mapping[str, Any]", entry) for entry in cast("list[Any]", found) if isinstance(entry, Mapping)]
        if isinstance(found, list)
        else []
    )


def _simple(part: Mapping[str, Any]) -> Rows:
    """Every fact of a part that has no words of its own; the count beside a CPU list is left out."""
    return [
        quantity(key, item)
        for key, item in part.items()
        if key not in OWN_ROWS and not (key.endswith("_count") and key.removesuffix("_count") in part)
    ]


def _kernel(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "kernel")
    preemption, extension = _map(part, "preemption"), _map(part, "extension")
    sources = ", ".join(
        f"{place}: {value(word)}" for place, word in _map(preemption, "sources").items() if word != "unknown"
    )
    core = value(extension.get("name"))
    if core not in ("none", "unknown"):
        core = f"{core} {value(extension.get('version'))}, CPUs {value(extension.get('cpus'))}"
    gravity = _map(extension, "gravity")
    if gravity:
        core += (
            f", {value(extension.get('pipeline'))}, gravity "
            f"{' '.join(f'{who[:-3]} {value(of)}' for who, of in gravity.items())} ns"
        )
    calibration = _map(extension, "calibration")
    if calibration:
        early = ", ".join(
            f"{name.removesuffix('_ns').replace('_', ' ')} {value(of)} ns"
            for name, of in calibration.items()
            if name.endswith("_ns")
        )
        modules = extension.get("modules")
        core += f", {value(extension.get('scheduler'))}, {early}"
        core += (
            f"; modules {' '.join(map(str, cast('list[Any]', modules)))}" if isinstance(modules, list) else ""
        )
    rows = [
        ("Preemption model", f"{value(preemption.get('model'))}{f' ({sources})' if sources else ''}"),
        ("Real-time core", core),
    ]
    return rows + [row for row in _simple(part) if row[0] != "Xenomai"]


def _processors(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "cpu")
    topology = _map(part, "topology")
    shape = ", ".join(
        f"{value(topology.get(key))} {name}"
        for key, name in (
            ("packages", "package(s)"),
            ("cores", "core(s)"),
            ("threads_per_core", "thread(s) a core"),
        )
    )
    shared: dict[str, list[str]] = {}
    for cache in _list(topology, "caches"):
        shared.setdefault(
            f"L{value(cache.get('level'))} {value(cache.get('type'))} {value(cache.get('size'))}", []
        ).append(value(cache.get("cpus")))
    caches = [f"{name} of CPU {' | '.join(cpus)}" for name, cpus in shared.items()]
    nodes = [f"node {node}: CPU {value(cpus)}" for node, cpus in _map(topology, "numa_nodes").items()]
    rows = [*_simple(part), ("Topology", shape), ("Threads of one core", value(topology.get("smt_siblings")))]
    return [*rows, ("Caches", "; ".join(caches) or "unknown"), ("NUMA", "; ".join(nodes) or "unknown")]


def _power(facts: Mapping[str, Any]) -> Rows:
    idle, frequency = _map(facts, "cpu", "idle"), _map(facts, "cpu", "frequency")
    states: list[str] = []
    for state in _list(idle, "states"):
        off = f" (off on CPU {value(state.get('disabled'))})" if state.get("disabled") else ""
        states.append(f"{value(state.get('name'))} {value(state.get('latency_us'))} us{off}")
    rows = [(f"Idle {key}", value(idle.get(key))) for key in ("driver", "governor")]
    rows += [
        ("C-states, exit latency", "; ".join(states) or value(idle.get("states"))),
        ("Deepest in use", _with_unit(idle.get("deepest_latency_us"), "us")),
    ]
    return rows + [(f"Frequency {name[:1].lower()}{name[1:]}", text) for name, text in _simple(frequency)]


def _deployment(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "deployment")
    named = value(part.get("name")) + (
        " (none of the paper's six)" if part.get("of_the_six") is False else ""
    )
    features = [
        ("C-states", "c_states"),
        ("SMT (hyper-threading)", "smt"),
        ("Multicore", "multicore"),
        ("Isolated CPUs", "isolated"),
    ]
    return [
        ("Deployment", named),
        *((label, value(part.get(key))) for label, key in features),
        ("Held by deploy apply", value(part.get("held"))),
    ]


def _with_unit(number: Any, unit: str) -> str:
    return quantity(unit, number)[1] if isinstance(number, int) else value(number)


def _interrupts(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "interrupts")
    rows = _simple(part)
    groups: dict[str, list[str]] = {}
    managed = 0
    lines = _map(part, "lines")
    for number, line in lines.items():
        irq = cast("Mapping[str, Any]", line)
        managed += irq.get("managed") is True
        where = irq.get("effective") if irq.get("effective") not in ("", "unknown") else irq.get("allowed")
        device = irq.get("devices")
        groups.setdefault(value(where), []).append(
            f"{number} {device}" if device not in (None, "unknown") else number
        )
    rows += [(f"On CPU {cpus}", ", ".join(devices)) for cpus, devices in sorted(groups.items())]
    if any(cast("Mapping[str, Any]", line).get("managed") != "unknown" for line in lines.values()):
        return [*rows, ("Managed", str(managed))]
    return [*rows, ("Managed", "unknown")]


def _scheduling(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "scheduling")
    group = _map(part, "cgroup")
    servers = _map(part, "fair_server")
    runtimes = {
        value(cast("Mapping[str, Any]", server).get("runtime_ns"))
        for server in servers.values()
        if isinstance(server, Mapping)
    }
    rows = [
        *_simple(part),
        (
            "Fair server",
            f"runtime {', '.join(sorted(runtimes))} ns" if runtimes else value(part.get("fair_server")),
        ),
    ]
    limit = f"{value(group.get('rt_runtime_us'))} of {value(group.get('rt_period_us'))} us"
    rows += [
        ("Control group", f"{value(group.get('version'))} {value(group.get('path'))}"),
        ("Its real-time share", limit),
    ]
    return rows + _simple(_map(part, "limits"))


def _tasks(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "tasks")
    rows: Rows = []
    for kernel, name in ((False, "Real-time processes"), (True, "Kernel's threads")):
        found = [thread for thread in _list(part, "realtime") if thread.get("kernel") is kernel]
        texts = [
            f"{value(thread.get('name'))} {value(thread.get('policy'))} "
            f"{value(thread.get('priority'))} x{value(thread.get('count'))}"
            for thread in found
        ]
        rows.append(
            (name, ", ".join(texts) or ("unknown" if part.get("realtime") in (None, "unknown") else "none"))
        )
    return [*rows, *_simple(part)]


def _firmware(facts: Mapping[str, Any]) -> Rows:
    part = _map(facts, "firmware")
    flaws = _map(part, "mitigations")
    rows = _simple(part)
    affected = [(name, value(text)) for name, text in flaws.items() if text != "Not affected"]
    unaffected = (
        f"{len(flaws) - len(affected)} of {plural(len(flaws), 'flaw')} do not concern this processor"
        if flaws
        else "unknown"
    )
    return [*rows, ("Mitigations", unaffected), *affected]


def groups(facts: Mapping[str, Any]) -> Iterator[tuple[str, Rows]]:
    """(heading, (name, value) of each fact): what the machine is first, what it runs last."""
    rows = [(words(key), value(facts.get(key))) for key in ("host", "os", "boot_id")]
    yield (
        "Machine",
        [
            *rows,
            *((f"Identity {name.lower()}", text) for name, text in _simple(_map(facts, "identity"))),
            *_simple(_map(facts, "machine")),
            ("Steal since boot", _with_unit(facts.get("steal_ns_since_boot"), "ns")),
        ],
    )
    yield "Kernel", _kernel(facts)
    yield "Processors", _processors(facts)
    yield "Deployment", _deployment(facts)
    yield "Idle states and frequency", _power(facts)
    clock = [(f"Clock source {key}", value(item)) for key, item in _map(facts, "clock_source").items()]
    yield (
        "Clock",
        [*clock, *[(f"Timer {name.lower()}", text) for name, text in _simple(_map(facts, "timers"))]],
    )
    yield "Memory", _simple(_map(facts, "memory"))
    yield "Interrupts and deferred work", _interrupts(facts)
    yield "Scheduling and limits", _scheduling(facts)
    yield "Real-time tasks", _tasks(facts)
    yield "Firmware and mitigations", _firmware(facts)


def print_facts(facts: Mapping[str, Any], console: Console) -> None:
    """All facts, a heading a group, names left and values right, wrapped to the terminal's width."""
    for number, (heading, rows) in enumerate(groups(facts)):
        if number:
            console.print()
        console.print(Text(heading, style="bold"))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=LABEL_WIDTH, overflow="fold")
        table.add_column(overflow="fold", ratio=1)
        for name, text in rows:
            table.add_row(
                Text(printable(name), style="dim"),
                Text(printable(text), style="dim italic" if text == "unknown" else ""),
            )
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
