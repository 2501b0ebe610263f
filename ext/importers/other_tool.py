# SPDX-License-Identifier: MIT
"""Measures the same step with another tool, as in Adam et al. 2021, sec. 4.5: cyclictest, rtla's timerlat, or
one of Xenomai's or RTAI's tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.errors import InputError, MeasureError
from rtgauge.probe import probe_registry as probes
from rtgauge.probe import wakeup
from rtgauge.record.model import LeftOut, Mark, StepKey
from rtgauge.runner.context import StepContext, StepInProgress, now_utc
from rtgauge.runner.interrupt import Abandoned
from rtgauge.runner.put_together import EndedStep, StepResult, load_marks
from rtgauge.runner.scope import with_loaded
from rtgauge.system.step_changes import marks as change_marks
from rtgauge.target.target_protocol import Target
from rtgauge.units import NS_PER_S, NS_PER_UNIT, format_cpu_list, format_duration, parse_cpu_list
from rtgauge_ext.cokernel.needs import XENOMAI_PREFIXES
from rtgauge_ext.cokernel.rtai import RTAI
from rtgauge_ext.cokernel.rtai_modules import rtai_modules
from rtgauge_ext.cokernel.rtai_programs import (
    IN_KERNEL,
    RTAIS,
    measuring_module,
    places,
    program_folder,
    rtai_argv,
)
from rtgauge_ext.cokernel.rtai_programs import LATENCY as RTAI_LATENCY
from rtgauge_ext.importers.import_marks import ImportMarkKind

if TYPE_CHECKING:
    from rtgauge_ext.importers.measurement import Measurement

LATENCY, SWITCHTEST = "xenomai-latency", "xenomai-switchtest"
XENOMAIS = {LATENCY: "latency", SWITCHTEST: "switchtest"}
"""File names of Xenomai's own programs."""
TIMERBENCH = "/dev/rtdm/timerbench"
DRIVERS = {
    TIMERBENCH: "CONFIG_XENO_DRIVERS_TIMERBENCH",
    "/dev/rtdm/switchtest": "CONFIG_XENO_DRIVERS_SWITCHTEST",
}
SWITCHING_THREADS = 100
"""With more threads, switchtest switches more often per millisecond in which its first thread sleeps."""
PACKAGES = {"cyclictest": "rt-tests", "rtla": "rtla"}
HISTOGRAM_US = 20_000
RTLA_LATENCY_US = 10_000
"""The largest value that rtla's --dma-latency accepts."""
ONLINE = "/sys/devices/system/cpu/online"
TRACERS = ("/sys/kernel/tracing/available_tracers", "/sys/kernel/debug/tracing/available_tracers")


def _places(tool: str) -> tuple[str, ...]:
    """Return the paths to try for a Xenomai program, because its folder is not in PATH by default."""
    return (XENOMAIS[tool], *(f"{prefix}/bin/{XENOMAIS[tool]}" for prefix in XENOMAI_PREFIXES))


def _xenomais(tool: str, target: Target) -> str | None:
    return next((path for place in _places(tool) if (path := target.which(place)) is not None), None)


def _cpus(context: StepContext) -> list[int]:
    cpus: str | None = context.key.parameters.get("cpu")
    if cpus is None and context.isolated:
        return context.isolated
    return parse_cpu_list(cpus or context.target.read([ONLINE]).text(ONLINE) or "0")


def _seconds(key: StepKey) -> int:
    """Return the measured time rounded up to whole seconds, because the tools take whole seconds."""
    interval_ns = _interval_ns(key)
    count: int | None = key.parameters.get("cycles") or key.parameters.get("count")
    length_ns: int = (
        count * interval_ns if count and interval_ns is not None else key.parameters.get("duration_ns")
    )
    return max(1, -(-length_ns // NS_PER_S))


def _interval_ns(key: StepKey) -> int | None:
    probe = probes.get(key.probe)
    return probe.interval_ns(probe.own(key))


def cyclictest_argv(key: StepKey, cpus: list[int], result: str | Path) -> list[str]:
    """Return cyclictest's command line for the step. Raises InputError if cyclictest cannot use the
    interval.
    """
    p = wakeup.PROBE.own(key)
    if p.interval_ns % NS_PER_UNIT["us"]:
        raise InputError("--cross-check cyclictest measures only at intervals of whole us; change --interval")
    policy = ["-p", str(p.priority), "--policy", p.policy] if p.policy != "other" else ["--policy", "other"]
    loops = p.count or max(1, p.duration_ns // p.interval_ns)
    latency = [f"--latency={p.dma_latency_us}"] if p.dma_latency_us >= 0 else ["--laptop"]
    return [
        "cyclictest", "-t", str(len(cpus)), "-a", format_cpu_list(cpus), "-i",
        str(p.interval_ns // NS_PER_UNIT["us"]), "-d", "0", "-l", str(loops),
        *policy, *(["-m"] if p.memory_lock else []), *latency, "-q", "-h", str(HISTOGRAM_US),
        f"--json={result}",
    ]  # fmt: skip


def rtla_argv(key: StepKey, cpus: list[int]) -> list[str]:
    """Return the command line of rtla timerlat hist for the step."""
    p = wakeup.PROBE.own(key)
    policy = {"fifo": f"f:{p.priority}", "rr": f"r:{p.priority}", "other": "o:0"}[p.policy]
    # By default rtla allows C-states, which cyclictest and the engine prevent.
    latency = ["--dma-latency", str(p.dma_latency_us)] if 0 <= p.dma_latency_us <= RTLA_LATENCY_US else []
    # A user-space step has no interrupt latency to compare with.
    contexts = ["--no-irq"] if key.space == "user" else []
    return [
        "rtla", "timerlat", "hist", "-c", format_cpu_list(cpus), "-p",
        str(max(1, p.interval_ns // NS_PER_UNIT["us"])), "-P", policy,
        "-d", f"{_seconds(key)}s", "-b", "1", "-E", str(HISTOGRAM_US), *contexts, *latency,
    ]  # fmt: skip


def xenomai_argv(program: str, key: StepKey, cpus: list[int]) -> list[str]:
    """Return the command line of Xenomai's latency for the step: -t0 for a task in user space, -t1 for a
    kernel task, -t2 for the timer's handler in the kernel.

    Raises InputError if the program does not support a setting.
    """
    p, interval_ns = key.parameters, _interval_ns(key) or 0
    _check_single_cpu(key, cpus)
    if interval_ns % NS_PER_UNIT["us"]:
        raise InputError(
            f"--cross-check {LATENCY} measures only at periods of whole us; change the interval or period"
        )
    if p.get("policy") != "fifo":
        raise InputError(
            f"--cross-check {LATENCY} measures only under the policy fifo, not {p.get('policy')}; give "
            "--policy fifo"
        )
    mode = "0" if key.space == "user" else "1" if p.get("context") == "thread" else "2"
    return [
        program, "-t", mode, "-T", str(_seconds(key)), "-p", str(interval_ns // NS_PER_UNIT["us"]), "-P",
        str(p.get("priority")), "-c", str(cpus[0]),
        "-h", "-H", str(HISTOGRAM_US), "-B", str(NS_PER_UNIT["us"]),
    ]  # fmt: skip


def _check_single_cpu(key: StepKey, cpus: list[int]) -> None:
    if len(cpus) != 1:
        raise InputError(
            f"--cross-check {key.tool} measures only one CPU, not {format_cpu_list(cpus)}; choose one "
            f"with --cpu"
        )


def switchtest_argv(program: str, key: StepKey, cpus: list[int]) -> list[str]:
    """Return the command line of Xenomai's switchtest, with threads in primary mode on the step's CPU.

    Raises InputError if the step has more than one CPU.
    """
    _check_single_cpu(key, cpus)
    return [program, "-T", str(_seconds(key) + 1), *[f"rtup{cpus[0]}"] * SWITCHING_THREADS]


def _argv(key: StepKey, target: Target, cpus: list[int], result: str) -> list[str]:
    """Return the tool's command line.

    Raises InputError if the tool does not support a setting, MeasureError if the tool has disappeared.
    """
    if key.tool == "cyclictest":
        return cyclictest_argv(key, cpus, result)
    if key.tool == "rtla":
        return rtla_argv(key, cpus)
    if key.tool in RTAIS:
        in_kernel = key.space == "kernel"
        place = program_folder(target, key.tool, in_kernel=in_kernel)
        if place is None:
            raise MeasureError(f"{key.tool} is no longer installed on the target")
        return rtai_argv(key.tool, place, _seconds(key), in_kernel=in_kernel)
    program = _xenomais(key.tool, target)
    if program is None:
        raise MeasureError(f"{key.tool} is no longer installed on the target")
    return (
        xenomai_argv(program, key, cpus)
        if key.tool == LATENCY
        else switchtest_argv(program, key, cpus[:1] if key.parameters.get("cpu") is None else cpus)
    )


def _run(context: StepContext, folder: Path) -> Measurement:
    """Run the tool and read its results. Raises MeasureError if it fails."""
    from rtgauge_ext.importers.foreign_file import json_documents, lines
    from rtgauge_ext.importers.latency_table import parse_screen
    from rtgauge_ext.importers.measurement import only
    from rtgauge_ext.importers.rt_tests import parse_json
    from rtgauge_ext.importers.rtai_testsuite import parse_rtai_latency, parse_rtai_switches
    from rtgauge_ext.importers.rtla import parse_rtla
    from rtgauge_ext.importers.switchtest import parse_switchtest

    key, cpus = context.key, _cpus(context)
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
        raise MeasureError(
            f"{key.tool} ended with status {status}: {printed[-1] if printed else 'it printed nothing'}"
        )
    target.fetch(folder)
    if key.tool == LATENCY:
        return only(parse_screen(lines(output), str(output)))
    if key.tool in RTAIS:
        return (parse_rtai_latency if key.tool == RTAI_LATENCY else parse_rtai_switches)(
            lines(output), str(output)
        )
    if key.tool == SWITCHTEST:
        return parse_switchtest(lines(output), str(output))
    return only(
        [parse_json(raw, str(result)) for raw in json_documents(result)]
        if key.tool == "cyclictest"
        else parse_rtla(lines(output), str(output))
    )


@dataclass(frozen=True)
class MeasuredByTool:
    """The tool's measurement, with times on the target's clock."""

    measurement: Measurement
    begin_ns: int
    end_ns: int

    def settle(self, step: EndedStep) -> StepResult:
        """Make the record's step and windows. Raises InputError if the tool's values are impossible."""
        from rtgauge_ext.importers.imported_step import imported_step

        begun = step.begun
        key = begun.key
        note = ImportMarkKind.OTHER_TOOL.mark(f"{key.tool} measured this step, as a check on rtgauge")
        imported, windows = imported_step(
            self.measurement,
            step_id=step.id,
            key=key,
            load=step.load,
            started=begun.started,
            ended=now_utc(),
            interval_ns=None if key.tool in RTAIS else _interval_ns(key),
            marks=[
                note,
                *_other_period(key, self.measurement),
                *load_marks(step.load),
                *change_marks(step.changes, _cpus(begun.context)),
            ],
        )
        times = {"start_ns": self.begin_ns, "end_ns": self.end_ns}
        imported = imported.model_copy(update={"end_reason": "count", "changes": step.changes, **times})
        return StepResult(imported, windows)


def _other_period(key: StepKey, measurement: Measurement) -> list[Mark]:
    """Return a mark if the period differs: RTAI's user-space latency has a compiled-in period."""
    own, others = _interval_ns(key), {series.interval_ns for series in measurement.series}
    if key.tool not in RTAIS or own is None or own in others:
        return []
    periods = ", ".join(format_duration(period) for period in others if period is not None)
    return [
        ImportMarkKind.OTHER_PERIOD.mark(
            f"{key.tool} measures every {periods}, but the step measures every {format_duration(own)}"
        )
    ]


class OtherTool:
    """Measures a step with the tool that its key names."""

    arms = False
    goes_on_alone = False

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:
        """Return why the step's tool cannot measure on this target in the step's space; None if it can."""
        tool, in_kernel = key.tool, key.space == "kernel"
        what = f"cross-check {tool}" + (" in kernel space" if in_kernel else "")
        if tool in XENOMAIS:
            if _xenomais(tool, target) is None:
                remedy = f"install Xenomai's programs, so that {' or '.join(_places(tool))} exists"
                return LeftOut(
                    what=what, reason=f"Xenomai's {XENOMAIS[tool]} is not installed", remedy=remedy
                )
            driver = TIMERBENCH if in_kernel else "/dev/rtdm/switchtest" if tool == SWITCHTEST else None
            if driver is not None and target.read([driver]).error(driver) == "ENOENT":
                return LeftOut(
                    what=what, reason=f"there is no {driver}", remedy=f"boot a kernel with {DRIVERS[driver]}"
                )
            return None
        if tool in RTAIS:
            if program_folder(target, tool, in_kernel=in_kernel) is None:
                remedy = (
                    "install RTAI's testsuite as "
                    f"{' or '.join(places(target, tool, in_kernel=in_kernel))}"
                    f"{f', and its module {IN_KERNEL}.ko' if in_kernel else ''}"
                )
                name = f"{IN_KERNEL}.ko or its display" if in_kernel else RTAIS[tool]
                return LeftOut(what=what, reason=f"RTAI's {name} is not installed", remedy=remedy)
            return None
        if target.which(tool) is None:
            return LeftOut(
                what=what,
                reason=f"the program {tool} is not installed",
                remedy=f"apt-get install {PACKAGES[tool]}",
            )
        if tool == "rtla" and not any("timerlat" in text.split() for text in target.read(TRACERS).texts()):
            remedy = (
                "mount tracefs (mount -t tracefs tracefs /sys/kernel/tracing), or boot a kernel with "
                "CONFIG_TIMERLAT_TRACER"
            )
            return LeftOut(what=what, reason="this kernel has no timerlat tracer", remedy=remedy)
        return None

    def try_arm(self, context: StepContext) -> None:
        """Start nothing. Raises InputError if the tool cannot measure with these parameters on these CPUs."""
        key = context.key
        try:
            _argv(key, context.target, _cpus(context), "")
        except InputError as error:
            raise InputError(
                f"{error} ({key.probe} under {key.load}); change that step, or leave the cross-check out"
            ) from None

    def measure(self, step: StepInProgress) -> MeasuredByTool:
        """Measure with the other tool. Raises InputError, MeasureError or Abandoned."""
        context = step.context
        context.progress.phase(f"{step.key.tool} measures")
        begin_ns = context.target.monotonic_ns()
        names = measuring_module(step.key.tool, _interval_ns(step.key), in_kernel=step.key.space == "kernel")
        if names:
            files = rtai_modules(context.target, None, names)
            step.undo.enter_context(with_loaded(files, context.target, RTAI.module_help))
        measurement = _run(context, step.folder)
        return MeasuredByTool(measurement, begin_ns, context.target.monotonic_ns())


OTHER_TOOL = OtherTool()
