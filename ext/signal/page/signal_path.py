# SPDX-License-Identifier: MIT
"""Presents the probes on a signal path: their counts, and the tables of Adam et al. (2021) for any records.

Table 4 compares response latency with cyclictest; fig. 2 and sec. 4.1 define the parts of a response.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console

from rtgauge.record.model import COKERNELS, SEGMENT, Result, SeriesSummary, Step
from rtgauge.record.reader import Record
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import NONE, us, whole
from rtgauge.units import format_time
from rtgauge_ext.signal.page.outer_view import instrument_grids, instrument_line, views_figure, views_grid
from rtgauge_ext.signal.parameters import other_role
from rtgauge_ext.signal.period_searches import without_searches
from rtgauge_ext.signal.response import PROBE as RESPONSE

PARTS = {
    "interrupt-latency": "interrupt latency",
    "service-time": "service time",
    "scheduling-latency": "scheduling latency",
    "scheduling-duration": "scheduling duration",
    "thread-latency": "thread latency",
}
"""The paper's four parts in order; in kernel space also the wake-up of a kernel thread."""
OVERALL_NOTES = (
    (
        "Times are in us, and the variance in us². on the wire: min/max from edge to edge, from the "
        "time stamps of "
        "the wire's kernel module, as an oscilloscope would show them."
    ),
    (
        "cyclictest: min/max of its wake-up latencies in the same record under the same load, if the plan "
        "runs it; cyclictest measures neither a line nor an answer."
    ),
)
PARTS_NOTES = (
    (
        "Times are in us. In user space, the kernel's tracepoints give four consecutive parts; the "
        "rest is the time "
        "that the running task takes to answer."
    ),
    (
        "In kernel space, the module's time stamps give the parts from the stimulus to the top half, from "
        "there to the thread that answers, and from the thread's entry to the answer."
    ),
)
MOST = 24
"""The most rows of a table. A search over the period has more steps."""

ALWAYS = ("stimuli", "answers", "edges", "lost", "compared")
"""Counts that are shown even if they are 0."""
NEVER = ("abi",)
LATE = "late-by-max-ns"
WORDS = {
    "not-made": "not made because the master was late",
    "early-answer": "before their stimulus",
    "double-edge": "more than one edge at once",
    "late-answer": "after their timeout",
    "compared": "compared with the wire's time stamps",
    "not_compared": "without one",
    "split": "split into parts",
    "not_split": "not split",
}


def _system(record: Record, step: Step) -> tuple[str, str, str]:
    """Return (host, kernel, whether the kernel is PREEMPT_RT)."""
    facts = record.system(next(iter(step.key.targets.values()), "local"))
    model = facts.kernel.preemption.model
    rt = "?" if model is None else "yes" if model == "PREEMPT_RT" else "no"
    return facts.host or "?", facts.kernel.release or "?", rt


def _measured(records: Sequence[Record]) -> list[tuple[Record, Step, SeriesSummary]]:
    """Return the response steps that are shown one by one, without searches over the period."""
    return [
        (record, step, step.total)
        for record in map(without_searches, records)
        for step in record.steps
        if step.key.probe == RESPONSE.name and step.total is not None
    ]


def _other_tool(record: Record, load: str) -> SeriesSummary | None:
    """Return the result of cyclictest in the same record under the same load."""
    others = (step for step in record.steps if step.key.tool == "cyclictest" and step.key.load == load)
    return next((step.total for step in others if step.total is not None), None)


def _on_the_wire(step: Step) -> str:
    """Return the smallest and largest response according to the wire's time stamps."""
    responses = (series for series in step.series if series.metric == "response")
    wire = next((series for series in responses if series.labels.get("role") == "wire"), None)
    return NONE if wire is None else f"{us(wire.min_ns)}/{us(wire.max_ns)}"


def _place(step: Step) -> str:
    """Return the space, in kernel space what answers, and the co-kernel if there is one."""
    parts = [f"{step.key.space} space", step.key.parameters.get("context"), COKERNELS.get(step.key.rt)]
    return ", ".join(part for part in parts if part is not None)


def _variance(total: SeriesSummary) -> str:
    return NONE if total.std_ns is None else f"{(total.std_ns / 1_000) ** 2:.0f}"


def response_grid(records: Sequence[Record]) -> Table | None:
    """Return a table like the paper's table 4; None if no response was measured."""
    rows: list[list[str]] = []
    for record, step, total in _measured(records)[:MOST]:
        host, kernel, rt = _system(record, step)
        other = _other_tool(record, step.key.load)
        path = str(step.key.parameters.get("path") or NONE)
        figures = [us(total.min_ns), us(total.mean_ns), us(total.max_ns), us(total.std_ns), _variance(total)]
        cyclictest = NONE if other is None else f"{us(other.min_ns)}/{us(other.max_ns)}"
        samples = [whole(total.count), whole(total.missed)]
        names = [f"{host}, {kernel}", step.key.load, _place(step), path, rt]
        rows.append([*names, *samples, *figures, _on_the_wire(step), cyclictest])
    columns = [
        *texts("system", "load", "space", "path", "PREEMPT_RT"),
        *numbers("samples", "lost", "min", "mean", "max", "std", "variance", "on the wire", "cyclictest"),
    ]
    return Table("Overall response latency", columns, rows, [*OVERALL_NOTES]) if rows else None


def parts_grid(records: Sequence[Record]) -> Table | None:
    """Return the table of the parts of a response; None if they were not measured."""
    rows: list[list[str]] = []
    for record in records:
        for step in record.steps:
            where = f"{step.key.load}, {_place(step)}, {step.key.parameters.get('path') or ''}"
            parts = {str(series.labels.get(SEGMENT)): series for series in reversed(step.series)}
            for name, words in PARTS.items():
                part = parts.get(name)
                if part is not None and part.count:
                    figures = map(us, (part.min_ns, part.mean_ns, part.p99_ns, part.max_ns))
                    rows.append([words, where, whole(part.count), *figures])
    columns = [*texts("part", "load, space, path"), *numbers("samples", "min", "mean", "99 %", "max")]
    return Table("Parts of a response", columns, rows, [*PARTS_NOTES]) if rows else None


def _counts(result: Result) -> str:
    counts = [
        f"the master was late by up to {format_time(value)}"
        if name == LATE
        else f"{value} {WORDS.get(name, name)}"
        for name, value in result.values.items()
        if isinstance(value, int) and name not in NEVER and (value or name in ALWAYS)
    ]
    return ", ".join(counts)


def signal_lines(step: Step) -> list[str]:
    """Return each role's counts, like "master: 200 stimuli, 199 answers, 1 lost"; empty for other probes."""
    lines: list[str] = []
    if step.peer is not None:
        own = other_role(step.peer.role)
        target = step.key.targets["self"]
        peer = f"the {step.peer.role} ran on {step.peer.target}; each used its own clock"
        lines.append(f"the {own} ran on {target}, with the load and the deployment; {peer}")
    outside = instrument_line(step)
    lines += [] if outside is None else [outside]
    for result in step.results:
        if result.name == "signal":
            lines.append(f"{result.labels.get('role')}: {_counts(result)}")
        elif result.name in ("wire", "kernel-module"):
            lines.append(f"{result.values.get('module') or result.name}: {_counts(result)}")
        elif result.name == "parts":
            lines.append(f"parts, interrupt: {result.values.get('interrupt')}: {_counts(result)}")
    return lines


class SignalPath(Presenter):
    """Presents the probes periodic and response."""

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:
        """Return a figure of both views, if an instrument measured."""
        figure = views_figure(view, steps)
        return [] if figure is None else [figure]

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return both views side by side, and the instrument; None without an instrument."""
        compared = views_grid(view, steps)
        if compared is None:
            return None
        tables, measured = [compared, *instrument_grids(view, steps)], "what an instrument at the line saw"
        return Chapter("outer-view", "From outside", tables, measured, figures=["views"])

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print both views, if an instrument measured."""
        grid = views_grid(view, steps)
        if grid is not None:
            print_tables([grid], console)
            console.print()

    def frequency_grids(self, records: Sequence[Record]) -> list[Table]:
        """Return both tables, if they have rows."""
        return [grid for grid in (response_grid(records), parts_grid(records)) if grid is not None]

    def lines(self, step: Step) -> list[str]:
        """Return each role's counts."""
        return signal_lines(step)


SIGNAL_PATH = SignalPath()
