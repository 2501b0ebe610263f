# SPDX-License-Identifier: MIT
"""Draws one latency: a lane for each CPU, the latency's parts, its release and its wake-up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, culprit_name, sentence, us
from rtgauge.explain.trace.contexts import Context, CpuTimeline, timelines
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.missed_switches import MissedSwitch
from rtgauge.explain.trace.moment import Event
from rtgauge.record.model import Step
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure

ROW = 46
MOST_CPUS = 16
MOST_COLOURS = 6
"""The number of colours, `other` included, without the first, which is grey like idle."""
FINEST = 1500
"""Pieces shorter than the figure's width divided by this are joined with their neighbours."""
MARKS, LATENCY = " ", "latency"
"""The lanes above the CPUs: the names of the marks, and the parts of the latency."""
OTHER = "other"
IDLE = "idle: no task ran"
"""The label of idle, longer than the name of any task can be."""
_COLUMNS = "lane who kind start:Q end:Q"
Bar = tuple[str, str, str, float, float]


def figure_name(step: Step) -> str:
    """Return the file name of the figure of a step's worst latency."""
    return f"explained-{step.id}"


def moment_figure(explanation: Explanation, step: Step, symbols: Symbols, title: str) -> Figure:
    """Draw the worst latency of a step. `symbols` names the kernel's functions."""
    moment = explanation.moment
    length = max(explanation.latency_ns, 1)
    begin, end = moment.release_ns - length // 5, moment.end_ns + length // 20
    lines = timelines(moment.table, symbols)
    own = {cpu for part in explanation.parts for _, _, cpu in part.spans} | {moment.cpu}
    shown = sorted(sorted(lines, key=lambda cpu: (cpu not in own, cpu))[:MOST_CPUS])
    divisor, unit = (1e6, "ms") if length > 20_000_000 else (1e3, "us")

    def scaled(time_ns: int) -> float:
        return (time_ns - moment.release_ns) / divisor

    tasks: list[Bar] = []
    interrupts: list[Bar] = []
    for cpu in shown:
        lane = f"CPU {cpu}"
        gaps = [gap for gap in explanation.missed if gap.cpu == cpu]
        tasks += [
            (lane, who, "task", scaled(start), scaled(stop))
            for who, start, stop in _without_gaps(_joined(lines[cpu], begin, end, _task), gaps)
        ]
        interrupts += [
            (lane, who, "in it", scaled(start), scaled(stop))
            for who, start, stop in _joined(lines[cpu], begin, end, _interrupt)
        ]
    parts = [
        (LATENCY, _part_name(part.culprit, explanation), us(part.ns) + " us", scaled(start), scaled(stop))
        for part in explanation.parts
        for start, stop, _ in part.spans
    ]
    taken = Counter[str]()
    for _, who, _, start, stop in (*tasks, *parts, *interrupts):
        taken[who] += round((stop - start) * 1000)
    known = [who for who, _ in taken.most_common() if who != IDLE]
    named = known if len(known) <= MOST_COLOURS + 1 else [*known[:MOST_COLOURS], OTHER]
    order = [MARKS, LATENCY, *(f"CPU {cpu}" for cpu in shown)]
    marks = [
        ("release", 0.0),
        *(("wake-up", scaled(event.time_ns)) for event in _wakeups(explanation)),
        ("clock read", scaled(moment.end_ns)),
    ]
    spec = vega.layered(
        _layers(tasks, interrupts, parts, named, order, marks, (scaled(begin), scaled(end)), unit),
        height=ROW * len(order) + 16,
        description=f"{title}. {sentence(explanation)}",
    )
    notes = [
        (
            "The first lane shows the parts of the latency. Each other lane shows which task a CPU ran, "
            "and its interrupts and softirqs as thin bars. Grey means that the CPU was idle. A gap is a "
            "switch that the kernel did not trace."
        )
    ]
    if len(lines) > len(shown):
        notes.append(f"The figure leaves out these CPUs: {len(lines) - len(shown)}.")
    return Figure(figure_name(step), title, title, [spec], notes=notes)


def _wakeups(explanation: Explanation) -> list[Event]:
    moment = explanation.moment
    return [
        event
        for event in moment.table.events
        if event.name == "sched_waking"
        and event.number("pid") == moment.thread
        and moment.release_ns <= event.time_ns <= moment.end_ns
    ][:1]


def _part_name(culprit: Culprit, explanation: Explanation) -> str:
    """Name a part in the same way as the CPUs' lanes."""
    if culprit.kind is Kind.TASK:
        return culprit.name
    own = explanation.path.name if culprit.kind is Kind.OWN else ""
    return own or culprit_name(culprit)


def _task(context: Context) -> str | None:
    if context.task is None:
        return None
    return IDLE if context.task.idle else context.task.name or f"pid {context.task.pid}"


def _without_gaps(
    bars: list[tuple[str, int, int]], gaps: Sequence[MissedSwitch]
) -> list[tuple[str, int, int]]:
    """Return the bars without the times of untraced switches, in which it is unknown which task ran."""
    for gap in gaps:
        bars = [
            (who, max(start, first), min(stop, last))
            for who, start, stop in bars
            for first, last in ((start, gap.after_ns), (gap.until_ns, stop))
            if min(stop, last) > max(start, first)
        ]
    return bars


def _interrupt(context: Context) -> str | None:
    frame = context.interrupt
    if frame is None:
        return None
    if frame.kind == "irq":
        return f"irq {frame.key} ({frame.name})" if frame.name else f"irq {frame.key}"
    return f"softirq {frame.name}" if frame.kind == "softirq" else f"{frame.name} interrupt"


def _joined(
    line: CpuTimeline, begin: int, end: int, label: Callable[[Context], str | None]
) -> list[tuple[str, int, int]]:
    """Return (label, start, end) of the labelled spans, with equal or very short neighbours joined."""
    finest = (end - begin) // FINEST
    joined: list[tuple[str, int, int]] = []
    for span in line.spans(begin, end):
        who = label(span.context)
        if who is None:
            continue
        if joined and joined[-1][0] == who and span.start_ns - joined[-1][2] <= finest:
            joined[-1] = (who, joined[-1][1], span.end_ns)
        elif joined and joined[-1][2] - joined[-1][1] < finest and span.start_ns - joined[-1][2] <= finest:
            before, start, stop = joined[-1]
            joined[-1] = (who if span.end_ns - span.start_ns > stop - start else before, start, span.end_ns)
        else:
            joined.append((who, span.start_ns, span.end_ns))
    return joined


def _layers(
    tasks: list[Bar],
    interrupts: list[Bar],
    parts: list[Bar],
    named: list[str],
    order: list[str],
    marks: list[tuple[str, float]],
    domain: tuple[float, float],
    unit: str,
) -> list[vega.Part]:
    def coloured(bars: list[Bar]) -> list[tuple[str, str, str, float, float, str]]:
        return [(*bar, bar[1] if bar[1] in named else OTHER) for bar in bars if bar[1] != IDLE]

    columns = f"{_COLUMNS} colour"
    x = vega.shown(
        "start:Q",
        scale={"domain": [*domain], "nice": False},
        axis={"title": f"time after the release ({unit})", "tickCount": 10},
    )
    place = {"x": x, "x2": vega.shown("end"), "y": vega.names_axis("lane:N", order, labelFontSize=12)}
    known = [IDLE, *named]
    legend = {"title": None, "values": named}
    colour = vega.kinds("colour:N", known, sort=known, legend=legend)
    tooltip = vega.tips("who:N", ("start:Q", f"from ({unit})"), ("end:Q", f"to ({unit})"))

    def bars(of: list[Bar], tips: list[vega.Part], **look: object) -> vega.Part:
        drawn = vega.mark("bar", **look, clip=True)
        return vega.layer(vega.csv(columns, coloured(of)), drawn, **place, color=colour, tooltip=tips)

    idle = vega.csv(_COLUMNS, [bar for bar in tasks if bar[1] == IDLE])
    times = vega.csv("what start:Q", marks)
    return [
        vega.layer(
            idle, vega.mark("bar", height=4, style="muted", opacity=0.4, clip=True), **place, tooltip=tooltip
        ),
        bars(tasks, tooltip, height=20),
        bars(interrupts, tooltip, height=10, yOffset=-14),
        bars(parts, [*tooltip, *vega.tips("kind:N")], height=26),
        vega.layer(times, vega.mark("rule", strokeDash=[4, 3], strokeWidth=1.5, style="ink", clip=True), x=x),
        *(_mark_name(mark, line, x, last=line == len(marks) - 1) for line, mark in enumerate(marks)),
    ]


def _mark_name(mark: tuple[str, float], line: int, x: vega.Part, *, last: bool) -> vega.Part:
    """Write a mark's name next to its vertical line, below the previous name. The last goes to the left."""
    side = {"align": "right" if last else "left", "dx": -3 if last else 3}
    drawn = vega.mark("text", baseline="top", fontSize=11, style="ink", **side)
    data = vega.csv("what start:Q", [mark])
    return vega.layer(data, drawn, x=x, y=vega.fixed(13 * line), text=vega.shown("what:N"))
