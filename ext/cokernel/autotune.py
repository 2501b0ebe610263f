# SPDX-License-Identifier: MIT
"""Calibrates Xenomai's timer: measures the latency, runs Xenomai's autotune, and measures the latency again.

Source: Delgado & Choi 2020, sec. III-C.

runner/scope.py notes the settings that autotune changes in the journal before the step, and restores them
after it unless the user keeps them.
"""

from __future__ import annotations

import time
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.probe import probe_registry as probes
from rtgauge.record.model import LeftOut, Result, StepKey
from rtgauge.record.stream import StreamResult
from rtgauge.record.windows import Windows
from rtgauge.runner.context import NotHere, StepContext, StepInProgress
from rtgauge.runner.engine import EngineStream, arm_trial, follow, start_engine
from rtgauge.runner.interrupt import Abandoned
from rtgauge.runner.put_together import EngineMeasurement
from rtgauge.target.target_protocol import Guarded, Target
from rtgauge_ext.cokernel import cobalt_facts
from rtgauge_ext.cokernel.needs import PROGRAMS

AUTOTUNE = ("autotune", *(f"{folder}/autotune" for folder in PROGRAMS))
DEVICE = "/dev/rtdm/autotune"
PRINTED = "autotune.txt"
STREAMS = (("stream.ndjson", "windows"), ("stream-after.ndjson", "windows-after"))
"""File names before and after autotune, for the copy of the stream and for the windows."""
LOOK_EVERY_S = 0.5
arms = True
goes_on_alone = False
LONGEST_S = 900.0
"""The time limit for autotune (s). It takes a minute, and longer on an emulated machine."""


def find_autotune(target: Target) -> str:
    """Find Xenomai's autotune on the target. Raises NotHere if it or its driver is missing."""
    if target.read([DEVICE]).error(DEVICE) == "ENOENT":
        raise NotHere(
            "autotune",
            f"there is no {DEVICE}",
            "boot a kernel with Xenomai 3 and CONFIG_XENO_DRIVERS_AUTOTUNE",
        )
    path = next((path for place in AUTOTUNE if (path := target.which(place)) is not None), None)
    if path is None:
        raise NotHere(
            "autotune",
            "Xenomai's autotune is not installed",
            "install Xenomai's programs; rtgauge looks for autotune in PATH and as "
            f"{', '.join(AUTOTUNE[1:])}",
        )
    return path


def _gravity(target: Target) -> dict[str, int]:
    gravity = cobalt_facts.gravity_of(target.read([cobalt_facts.CLOCK]).text(cobalt_facts.CLOCK) or "")
    if gravity is None:
        raise MeasureError(
            f"{cobalt_facts.CLOCK} on {target.name} does not contain the gravity of Xenomai's timer"
        )
    return gravity


def _phase(printed: str) -> str:
    looked_for = cobalt_facts.autotune_looks_for(printed)
    return "Xenomai's autotune" + ("" if looked_for is None else f" looks for the gravity of {looked_for}")


def _autotune(context: StepContext, load: RunningLoad | None, log: Path) -> int:
    """Run autotune to its end; return how long it took on the target's clock (ns).

    Raises MeasureError if it fails or the load dies, Abandoned if the user ends the run.
    """
    path = find_autotune(context.target)
    begun_s, begun_ns = time.monotonic(), context.target.monotonic_ns()
    with log.open("wb") as file:
        # Autotune always measures on CPU 0, so it cannot run in the step's control group.
        program = context.target.start([path], file)
        context.interrupt.stop_by(program.stop)
        try:
            context.progress.phase(_phase(""))
            status = program.wait(LOOK_EVERY_S)
            while (
                status is None and time.monotonic() - begun_s < LONGEST_S and not context.interrupt.requested
            ):
                context.progress.phase(_phase(log.read_text(errors="replace")))
                if load is not None:
                    load.check()
                status = program.wait(LOOK_EVERY_S)
        finally:
            context.interrupt.stop_by(None)
            program.stop()
    if context.interrupt.requested:
        raise Abandoned
    printed = log.read_text(errors="replace")
    if status is None:
        raise MeasureError(f"autotune did not end within {LONGEST_S:.0f} s")
    if status != 0 or set(cobalt_facts.autotuned(printed)) != {
        f"{name}_ns" for name in cobalt_facts.CONTEXTS
    }:
        lines = printed.strip().splitlines() or ["it printed nothing"]
        raise MeasureError(f"autotune ended with status {status}: {lines[-1]}")
    return context.target.monotonic_ns() - begun_ns


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None, because `try_arm` looks for autotune."""
    return None


def try_arm(context: StepContext) -> None:
    """Look for autotune, then arm and stop the probe. Raises NotHere, InputError or MeasureError."""
    find_autotune(context.target)
    arm_trial(context)


def measure(step: StepInProgress) -> EngineMeasurement:
    """Measure the latency before and after autotune. The load begins when the first measurement is armed.

    Raises InputError or MeasureError if an engine refuses, MeasureError if autotune fails, Abandoned if the
    user ends the run before autotune ends.
    """
    key, context, folder = step.key, step.context, step.folder
    target, probe = context.target, probes.get(key.probe)
    before, after = probe.shown.roles
    ends: dict[str, tuple[EngineStream, Guarded]] = {}

    def measure_latency(role: str) -> None:
        log, table = STREAMS[len(ends)]
        program = start_engine(context, probe.arguments(probe.own(key), None))
        first = sum(len(stream.result.series) for stream, _ in ends.values())

        def armed(stream: EngineStream) -> None:
            stream.table.place(first, 0)
            if not ends:
                step.begin()

        stream = follow(program, step, folder / log, begin=armed, table=table)
        stream.check(target)
        ends[role] = stream, program

    gravity = {before: _gravity(target)}
    measure_latency(before)
    if context.interrupt.requested:
        raise Abandoned
    took_ns = _autotune(context, step.load, folder / PRINTED)
    gravity[after] = _gravity(target)
    measure_latency(after)
    kept = bool(key.parameters.get("keep")) and not context.interrupt.requested
    if kept:
        target.agent("set", "--keep", "--", cobalt_facts.CLOCK)
    result = StreamResult()
    for role, (stream, _) in ends.items():
        prefix = f"{probe.shown.roles[role]}: "
        part = stream.result.moved(len(result.series), {"role": role}, mark_prefix=prefix)
        part.results = [
            line.model_copy(update={"labels": line.labels | {"role": role}}) for line in part.results
        ]
        result.append(part)
    result.results += [
        Result(name="gravity", labels={"role": role}, values=dict(values)) for role, values in gravity.items()
    ]
    result.results.append(Result(name="autotune", values={"took_ns": took_ns, "kept": kept}))
    table_before, table_after = (ends[role][0].table for role in (before, after))
    windows = Windows.together([table_before.windows(table_after), table_after.windows(table_before)])
    return EngineMeasurement(result, windows, tuple(program for _, program in ends.values()), target)
