# SPDX-License-Identifier: MIT
"""The trace event format, which Perfetto and Chrome open: a lane a CPU with its tasks and the interrupts in
them, and a lane with the explained latencies.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rtgauge.explain.trace.contexts import timelines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.explain.trace.contexts import Context, CpuTimeline
    from rtgauge.explain.trace.formats import TraceFormats
    from rtgauge.explain.trace.moment import Moment

CPUS, LATENCIES = 1, 2
"""The groups of lanes ("processes" of the format)."""
_LANES = 1_000_000
"""Of each group: Perfetto takes the number of a lane for that of a thread, which has to be another one in
each group, and not 0.
"""


def perfetto(formats: TraceFormats, moments: Iterable[Moment]) -> bytes:
    """The moments of one step as JSON; times in us of CLOCK_MONOTONIC."""
    events: list[dict[str, Any]] = [
        _lane("process_name", CPUS, 0, "CPUs"),
        _lane("process_name", LATENCIES, 0, "explained latencies"),
    ]
    lanes: set[tuple[int, int]] = set()
    drawn: dict[int, int] = {}
    for moment in sorted(moments, key=lambda known: known.end_ns):
        for cpu, line in timelines(moment.table, formats.symbols).items():
            # a ring may still have events of the moment before: each is drawn once
            drawn[cpu] = _slices(events, cpu, line, drawn.get(cpu, 0))
            lanes.add((CPUS, cpu))
        lanes.add((LATENCIES, moment.series))
        events += _latency(moment)
    events += [
        _lane("thread_name", group, lane, f"CPU {lane}" if group == CPUS else f"series {lane}")
        for group, lane in sorted(lanes)
    ]
    return (
        json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"
    ).encode()


def _lane(what: str, group: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "args": {"name": name}} | _place(group, lane)


def _place(group: int, lane: int) -> dict[str, int]:
    return {"pid": group, "tid": group * _LANES + lane}


def _latency(moment: Moment) -> list[dict[str, Any]]:
    """The latency from its release, with the release and the wake-up as instants."""
    lane = _place(LATENCIES, moment.series)
    name = f"latency {moment.latency_ns / 1000:.3f} us"
    about = {"moment": moment.number, "cpu": moment.cpu, "thread": moment.thread}
    wakeups = [
        event
        for event in moment.table.events
        if event.name == "sched_waking" and event.number("pid") == moment.thread
    ]
    inside = [event for event in wakeups if moment.release_ns <= event.time_ns <= moment.end_ns]
    marks = [("release", moment.release_ns), *(("wake-up", event.time_ns) for event in inside)]
    whole = {
        "ph": "X",
        "cat": "latency",
        "name": name,
        "ts": moment.release_ns / 1000,
        "dur": moment.latency_ns / 1000,
        "args": about,
    }
    return [
        lane | whole,
        *(
            lane | {"ph": "i", "s": "g", "cat": "latency", "name": what, "ts": time / 1000}
            for what, time in marks
        ),
    ]


def _stack(context: Context) -> list[tuple[str, str, tuple[object, ...]]]:
    """(category, name, identity) of what a CPU is in, the outermost first."""
    task = context.task
    stack: list[tuple[str, str, tuple[object, ...]]] = []
    if task is not None:
        stack.append(("idle" if task.idle else "task", task.name or f"pid {task.pid}", (task.pid,)))
    if context.idle_state is not None:
        stack.append(
            (
                "idle",
                f"idle state {context.idle_state}" if context.idle_state >= 0 else "idle state",
                (context.idle_state,),
            )
        )
    for frame in context.frames:
        number = f" {frame.key}" if frame.kind == "irq" else ""
        stack.append((frame.kind, f"{frame.kind}{number} {frame.name}".strip(), (frame.key, frame.since_ns)))
    return stack


def _slices(events: list[dict[str, Any]], cpu: int, line: CpuTimeline, after_ns: int) -> int:
    """Add the slices of a CPU that begin after a time; gives the time of its last event."""
    times = [time for time in line.times_ns if time > after_ns]
    if not times:
        return after_ns
    contexts = line.contexts[len(line.times_ns) - len(times) :]
    opened: list[tuple[tuple[str, str, tuple[object, ...]], int]] = [
        (level, times[0]) for level in _stack(contexts[0])
    ]
    for time, context in zip(times, contexts[1:], strict=True):
        stack = _stack(context) if time != times[-1] else []
        same = next(
            (at for at, (old, new) in enumerate(zip(opened, stack, strict=False)) if old[0] != new),
            min(len(opened), len(stack)),
        )
        for (category, name, _), since in reversed(opened[same:]):
            if time > since:
                slice_ = {
                    "ph": "X",
                    "cat": category,
                    "name": name,
                    "ts": since / 1000,
                    "dur": (time - since) / 1000,
                }
                events.append(slice_ | _place(CPUS, cpu))
        opened[same:] = [(level, time) for level in stack[same:]]
    return times[-1]
