# SPDX-License-Identifier: MIT
"""Another tool measures the same step, into the same record (as Adam et al. 2021, sec. 4.5, do): cyclictest, rtla's timerlat, or Xenomai's latency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError, MeasureError
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.record.model import LeftOut, LoadReport, Mark, Severity, Step, StepKey
from rtgauge.runner.context import Abandoned, RunContext, now_utc
from rtgauge.runner.step import load_marks, start_load
from rtgauge.suggest import nearest
from rtgauge.system.changes import CHANGE_PATHS, changes
from rtgauge.system.changes import marks as change_marks
from rtgauge.system.cokernel_needs import XENOMAI_PREFIXES
from rtgauge.target.target import Target
from rtgauge.units import NS_PER_S, NS_PER_UNIT, format_cpu_list, parse_cpu_list

if TYPE_CHECKING:
    from rtgauge.importers.measurement import Measurement

XENOMAI = "xenomai-latency"
XENOMAI_PLACES = ("latency", *(f"{prefix}/bin/latency" for prefix in XENOMAI_PREFIXES))
"""Where Xenomai's latency may be: its folder is in no PATH by default."""
PACKAGES = {"cyclictest": "rt-tests", "rtla": "rtla"}
TOOLS = (*PACKAGES, XENOMAI)
HISTOGRAM_US = 20_000
RTLA_LATENCY_US = 10_000
"""The largest that its --dma-latency takes."""
ONLINE = "/sys/devices/system/cpu/online"
TRACERS = ("/sys/kernel/tracing/available_tracers", "/sys/kernel/debug/tracing/available_tracers")


def left_out(tool: str, target: Target) -> LeftOut | None:
    """Why this tool cannot measure here; None: it can. Raises InputError for an unknown one."""
    if tool not in TOOLS:
        raise InputError(f"--cross-check: unknown tool '{tool}'{nearest(tool, TOOLS)}")
    what = f"cross-check {tool}"
    if tool == XENOMAI:
        if _xenomai_latency(target) is not None:
            return None
        return LeftOut(
            what=what, reason="Xenomai's latency is not installed", remedy=f"install Xenomai's programs, to be found as {' or '.join(XENOMAI_PLACES)}"
        )
    if target.which(tool) is None:
        return LeftOut(what=what, reason=f"the program {tool} is not installed", remedy=f"apt-get install {PACKAGES[tool]}")
    if tool == "rtla":
        tracers = " ".join(str(file.get("text", "")) for file in target.read(TRACERS).values())
        if "timerlat" not in tracers.split():
            remedy = "mount tracefs (mount -t tracefs tracefs /sys/kernel/tracing), or boot a kernel with CONFIG_TIMERLAT_TRACER"
            return LeftOut(what=what, reason="this kernel offers no timerlat tracer", remedy=remedy)
    return None


def _xenomai_latency(target: Target) -> str | None:
    return next((path for place in XENOMAI_PLACES if (path := target.which(place)) is not None), None)


def _cpus(key: StepKey, context: RunContext) -> list[int]:
    cpus = key.parameters["cpu"]
    if cpus is None and context.isolated:
        return context.isolated
    target = context.target
    return parse_cpu_list(cpus if cpus is not None else str(target.read([ONLINE])[ONLINE].get("text", "0")))


def _seconds(key: StepKey) -> int:
    """The measured time in whole seconds, rounded up: neither tool takes less."""
    p = key.parameters
    length_ns: int = p["count"] * p["interval_ns"] if p["count"] else p["duration_ns"]
    return max(1, -(-length_ns // NS_PER_S))


def cyclictest_argv(key: StepKey, cpus: list[int], result: str | Path) -> list[str]:
    """cyclictest with the step's settings. Raises InputError for what it does not have."""
    p = key.parameters
    if p["interval_ns"] % NS_PER_UNIT["us"]:
        raise InputError("--cross-check cyclictest: its interval is whole us")
    policy = ["-p", str(p["priority"]), "--policy", p["policy"]] if p["policy"] != "other" else ["--policy", "other"]
    loops = p["count"] or max(1, p["duration_ns"] // p["interval_ns"])
    latency = [f"--latency={p['dma_latency_us']}"] if p["dma_latency_us"] >= 0 else ["--laptop"]
    return [
        "cyclictest", "-t", str(len(cpus)), "-a", format_cpu_list(cpus), "-i", str(p["interval_ns"] // NS_PER_UNIT["us"]), "-d", "0", "-l", str(loops),
        *policy, *(["-m"] if p["memory_lock"] else []), *latency, "-q", "-h", str(HISTOGRAM_US), f"--json={result}",
    ]  # fmt: skip


def rtla_argv(key: StepKey, cpus: list[int]) -> list[str]:
    """rtla timerlat hist with the step's settings."""
    p = key.parameters
    policy = {"fifo": f"f:{p['priority']}", "rr": f"r:{p['priority']}", "other": "o:0"}[p["policy"]]
    # By default it leaves C-states on, which cyclictest and the engine keep off.
    latency = ["--dma-latency", str(p["dma_latency_us"])] if 0 <= p["dma_latency_us"] <= RTLA_LATENCY_US else []
    return [
        "rtla", "timerlat", "hist", "-c", format_cpu_list(cpus), "-p", str(max(1, p["interval_ns"] // NS_PER_UNIT["us"])), "-P", policy,
        "-d", f"{_seconds(key)}s", "-b", "1", "-E", str(HISTOGRAM_US), "--no-irq", *latency,
    ]  # fmt: skip


def xenomai_argv(program: str, key: StepKey, cpus: list[int]) -> list[str]:
    """Xenomai's latency -t0, a task in user space, with the step's settings. Raises InputError for what it does not have."""
    p = key.parameters
    if len(cpus) != 1:
        raise InputError(f"--cross-check {XENOMAI}: it measures one CPU, not {format_cpu_list(cpus)}; give --cpu")
    if p["interval_ns"] % NS_PER_UNIT["us"]:
        raise InputError(f"--cross-check {XENOMAI}: its period is whole us")
    if p["policy"] != "fifo":
        raise InputError(f"--cross-check {XENOMAI}: it runs under fifo, not {p['policy']}")
    return [
        program, "-t", "0", "-T", str(_seconds(key)), "-p", str(p["interval_ns"] // NS_PER_UNIT["us"]), "-P", str(p["priority"]), "-c", str(cpus[0]),
        "-h", "-H", str(HISTOGRAM_US), "-B", str(NS_PER_UNIT["us"]),
    ]  # fmt: skip


def _argv(key: StepKey, target: Target, cpus: list[int], result: str) -> list[str]:
    """The tool's command line. Raises InputError for what it does not have, MeasureError where it has gone."""
    if key.tool == "cyclictest":
        return cyclictest_argv(key, cpus, result)
    if key.tool == "rtla":
        return rtla_argv(key, cpus)
    program = _xenomai_latency(target)
    if program is None:
        raise MeasureError(f"{key.tool} is no longer there")
    return xenomai_argv(program, key, cpus)


def _run(key: StepKey, context: RunContext, folder: Path) -> Measurement:
    """Let the tool measure; gives what it measured. Raises MeasureError."""
    from rtgauge.importers.foreign_file import json_document, lines
    from rtgauge.importers.latency_table import parse_screen
    from rtgauge.importers.rt_tests import parse_json
    from rtgauge.importers.rtla import parse_rtla

    cpus = _cpus(key, context)
    target = context.target
    result = folder / f"{key.tool}.json"
    there = f"{target.files_folder(folder)}/{result.name}"
    output = folder / f"{key.tool}.txt"
    argv = _argv(key, target, cpus, there)
    with output.open("wb") as log:
        program = target.start(argv, log, group=context.group)
        context.interrupt.stop_by(program.stop)
        try:
            status = program.wait(_seconds(key) * 2 + 60)
        finally:
            context.interrupt.stop_by(None)
            program.stop()
    if context.interrupt.requested:
        raise Abandoned
    if status != 0:
        printed = output.read_text(errors="replace").strip().splitlines()
        raise MeasureError(f"{key.tool} ended with status {status}: {printed[-1] if printed else 'it printed nothing'}")
    target.fetch(folder)
    if key.tool == XENOMAI:
        return parse_screen(lines(output), str(output), "xenomai latency", "latency")
    return parse_json(json_document(result), str(result)) if key.tool == "cyclictest" else parse_rtla(lines(output), str(output))


def measure(step_id: str, key: StepKey, context: RunContext, folder: Path) -> tuple[Step, Any]:
    """Measure one step with the other tool. Raises InputError, MeasureError, LoadFailed or Abandoned."""
    from rtgauge.importers.imported_step import imported_step

    target = context.target
    started = now_utc()
    before = target.read(CHANGE_PATHS)
    load: RunningLoad | None = None
    report = LoadReport(name=key.load)
    if key.load != "idle":
        load = start_load(key, context, folder, _seconds(key))
    try:
        context.progress.phase(f"{key.tool} measures")
        begin_ns = target.monotonic_ns()
        measurement = _run(key, context, folder)
        end_ns = target.monotonic_ns()
    finally:
        if load is not None:
            report = load.stop()
    changed = changes(before, target.read(CHANGE_PATHS))
    note = Mark(name="other-tool", severity=Severity.NOTE, detail=f"measured by {key.tool}, to check rtgauge against it")
    step, windows = imported_step(
        measurement,
        step_id=step_id,
        key=key,
        load=report,
        started=started,
        ended=now_utc(),
        interval_ns=key.parameters["interval_ns"],
        marks=[note, *load_marks(report), *change_marks(changed, _cpus(key, context))],
    )
    return step.model_copy(update={"end_reason": "count", "start_ns": begin_ns, "end_ns": end_ns, "changes": changed}), windows
