# SPDX-License-Identifier: MIT
"""Puts all facts about a machine into words, in groups, for `rtgauge audit --facts`."""

from __future__ import annotations

from collections.abc import Iterator

from rtgauge.record.facts import (
    UNKNOWN,
    FactPart,
    Facts,
    FairServer,
    Firmware,
    Frequency,
    Idle,
    Interrupts,
    Kernel,
    Nothing,
    PresentDeployment,
    Processors,
    RealTimeCore,
    Scheduling,
    Tasks,
)
from rtgauge.report.text import quantity, value
from rtgauge.units import plural

Rows = list[tuple[str, str]]
OWN_ROWS = {
    *("preemption", "extension", "idle", "frequency", "topology", "lines", "mitigations", "mitigated"),
    *("realtime", "fair_server", "ext_server", "cgroup", "limits"),
}
"""Facts with several values, which the functions below put into words."""


def _simple(part: FactPart) -> Rows:
    """Return the facts of a part that need no special words, without the counts of CPU lists."""
    facts = part.model_dump(mode="json")
    counts = {f"{key}_count" for key in facts}
    return [quantity(key, item) for key, item in facts.items() if key not in OWN_ROWS | counts]


def _kernel(kernel: Kernel) -> Rows:
    sources = ", ".join(
        f"{place}: {value(reported)}"
        for place, reported in kernel.preemption.sources.items()
        if reported != UNKNOWN
    )
    model = f"{value(kernel.preemption.model)}{f' ({sources})' if sources else ''}"
    rows = [("Preemption model", model), ("Real-time core", _core(kernel.extension))]
    return rows + [row for row in _simple(kernel) if row[0] != "Xenomai"]


def _core(core: RealTimeCore) -> str:
    if core.name in ("none", None):
        return value(core.name)
    text = f"{core.name} {value(core.version)}, CPUs {value(core.cpus)}"
    if core.gravity.model_fields_set:
        gravity = " ".join(f"{name[:-3]} {value(ns)}" for name, ns in core.gravity)
        text += f", {value(core.pipeline)}, gravity {gravity} ns"
    if core.calibration.model_fields_set:
        times = {name.removesuffix("_ns"): ns for name, ns in core.calibration if name.endswith("_ns")}
        early = ", ".join(f"{name.replace('_', ' ')} {value(ns)} ns" for name, ns in times.items())
        text += f", {value(core.scheduler)}, {early}"
        text += "" if core.modules is None else f"; modules {' '.join(core.modules)}"
    return text


def _processors(cpu: Processors) -> Rows:
    topology = cpu.topology
    shape = (
        f"{value(topology.packages)} package(s), {value(topology.cores)} core(s), "
        f"{value(topology.threads_per_core)} thread(s) a core"
    )
    shared: dict[str, list[str]] = {}
    for cache in topology.caches or []:
        name = f"L{value(cache.level)} {value(cache.type)} {value(cache.size)}"
        shared.setdefault(name, []).append(value(cache.cpus))
    caches = [f"{name} of CPU {' | '.join(cpus)}" for name, cpus in shared.items()]
    nodes = [f"node {node}: CPU {value(cpus)}" for node, cpus in (topology.numa_nodes or {}).items()]
    rows = [*_simple(cpu), ("Topology", shape), ("Threads of one core", value(topology.smt_siblings))]
    return [*rows, ("Caches", "; ".join(caches) or UNKNOWN), ("NUMA", "; ".join(nodes) or UNKNOWN)]


def _power(idle: Idle, frequency: Frequency) -> Rows:
    states: list[str] = []
    for state in idle.states if isinstance(idle.states, list) else []:
        off = f" (off on CPU {state.disabled})" if state.disabled else ""
        states.append(f"{value(state.name)} {value(state.latency_us)} us{off}")
    rows = [
        ("Idle driver", value(idle.driver)),
        ("Idle governor", value(idle.governor)),
        ("C-states, exit latency", "; ".join(states) or value(idle.states)),
        ("Deepest in use", quantity("us", idle.deepest_latency_us)[1]),
    ]
    return rows + [(f"Frequency {name[:1].lower()}{name[1:]}", text) for name, text in _simple(frequency)]


def _deployment(deployment: PresentDeployment) -> Rows:
    named = value(deployment.name)
    if deployment.of_the_six is False:
        named += " (none of the six deployments of Delgado and Choi, 2020)"
    return [
        ("Deployment", named),
        ("C-states", value(deployment.c_states)),
        ("SMT (hyper-threading)", value(deployment.smt)),
        ("Multicore", value(deployment.multicore)),
        ("Isolated CPUs", value(deployment.isolated)),
        ("Set by deploy apply", value(deployment.held)),
    ]


def _interrupts(interrupts: Interrupts) -> Rows:
    groups: dict[str, list[str]] = {}
    lines = interrupts.lines or {}
    for number, line in lines.items():
        named = number if line.devices is None else f"{number} {line.devices}"
        groups.setdefault(value(line.cpus), []).append(named)
    rows = [(f"On CPU {cpus}", ", ".join(devices)) for cpus, devices in sorted(groups.items())]
    managed = [line.managed for line in lines.values() if line.managed is not None]
    return [*_simple(interrupts), *rows, ("Managed", str(sum(managed)) if managed else UNKNOWN)]


def _scheduling(scheduling: Scheduling) -> Rows:
    group = scheduling.cgroup
    return [
        *_simple(scheduling),
        ("Fair server", _server(scheduling.fair_server)),
        ("Ext server", _server(scheduling.ext_server)),
        ("Control group", f"{value(group.version)} {value(group.path)}"),
        ("Its real-time share", f"{value(group.rt_runtime_us)} of {value(group.rt_period_us)} us"),
        *_simple(scheduling.limits),
    ]


def _server(servers: dict[str, FairServer] | Nothing | None) -> str:
    if not isinstance(servers, dict):
        return value(servers)
    return f"runtime {', '.join(sorted({value(server.runtime_ns) for server in servers.values()}))} ns"


def _tasks(tasks: Tasks) -> Rows:
    rows: Rows = []
    for kernel, name in ((False, "Real-time processes"), (True, "Kernel's threads")):
        texts = [
            f"{thread.name} {thread.policy} {thread.priority} x{thread.count}"
            for thread in tasks.realtime or []
            if thread.kernel is kernel
        ]
        rows.append((name, ", ".join(texts) or (UNKNOWN if tasks.realtime is None else "none")))
    return [*rows, *_simple(tasks)]


def _firmware(firmware: Firmware) -> Rows:
    flaws = firmware.mitigations or {}
    affected = [(name, value(text)) for name, text in flaws.items() if text != "Not affected"]
    unaffected = (
        f"{plural(len(flaws), 'known flaw')} in all; {len(flaws) - len(affected)} do not affect this "
        "processor"
    )
    return [*_simple(firmware), ("Mitigations", unaffected if flaws else UNKNOWN), *affected]


def _named(prefix: str, part: FactPart) -> Rows:
    return [(f"{prefix} {name.lower()}", text) for name, text in _simple(part)]


def groups(facts: Facts) -> Iterator[tuple[str, Rows]]:
    """Yield all facts in groups: (heading, the group's facts as (name, value))."""
    machine = [("Host", value(facts.host)), ("OS", value(facts.os)), ("Boot ID", value(facts.boot_id))]
    machine += [*_named("Identity", facts.identity), *_simple(facts.machine)]
    yield "Machine", [*machine, ("Steal since boot", quantity("ns", facts.steal_ns_since_boot)[1])]
    yield "Kernel", _kernel(facts.kernel)
    yield "Processors", _processors(facts.cpu)
    yield "Deployment", _deployment(facts.deployment)
    yield "Idle states and frequency", _power(facts.cpu.idle, facts.cpu.frequency)
    yield "Clock", [*_named("Clock source", facts.clock_source), *_named("Timer", facts.timers)]
    yield "Memory", _simple(facts.memory)
    yield "Interrupts and deferred work", _interrupts(facts.interrupts)
    yield "Scheduling and limits", _scheduling(facts.scheduling)
    yield "Real-time tasks", _tasks(facts.tasks)
    yield "Firmware and mitigations", _firmware(facts.firmware)
