# SPDX-License-Identifier: MIT
"""Presents the probe path: what became of each cycle, and the parts of a response as a table and a figure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from rtgauge.explain.analysis.explanation import CARD
from rtgauge.record.model import Result, SeriesSummary, Step
from rtgauge.record.reader import BLOCKS, WINDOWS
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table, numbers, ranked, texts
from rtgauge.report.terminal_table import print_tables, print_text
from rtgauge.report.text import NONE, us, whole
from rtgauge.units import format_bound, plural
from rtgauge_ext.network.far_end import far_end_words
from rtgauge_ext.network.late_cycles import PARTS, count_of, counts_of, late_cycles, part_side, parts_of

OUTCOMES = {
    "answered": "answered in time",
    "late": "answered late",
    "lost": "lost",
    "sent-late": "sent late",
    "read-late": "read late",
    "not-sent": "not sent",
}
"""How a cycle ends. Each cycle ends in exactly one way."""
OWN = ("sent-late", "read-late", "not-sent")
OTHERS = {
    "duplicate": "answers that came twice",
    "reordered": "answers behind a later one",
    "after-timeout": "answers after the timeout",
    "foreign": "frames that did not answer this run",
}
PART_NOTES = (
    "Times are in us; the parts of each cycle add up to its response exactly. wire and device is the time "
    "between the kernel's time stamps of departure and arrival, so it contains this machine's network card."
)
CARD_NOTES = (
    "Times are in us; the parts of each cycle add up to its response exactly. The network card stamps "
    "frames itself, so its time (card) is separate from the time of the wire and the device. rtgauge's use "
    "of these time stamps is untested on hardware."
)
CYCLE_NOTES = (
    "Each cycle is counted once. An answer is late after the next release. In the last three rows, this "
    "machine itself was late, so they say nothing about the far end."
)


CLOCK_NOTES = (
    "The device looks for frames once in each period of its own clock, so the response is a sawtooth: it "
    "grows or shrinks a little in each cycle, and changes by a whole period when the two loops slip. The "
    "period is by this machine's clock."
)


def parts_grid(steps: Sequence[Step], labels: Mapping[str, str]) -> Table | None:
    """Return the table of the parts; None if none were measured."""
    rows: list[list[str]] = []
    for step in steps:
        begin = f"{labels[step.id]}, " if len(steps) > 1 else ""
        for name, part in parts_of(step).items():
            figures = map(us, (part.min_ns, part.p50_ns, part.p99_ns, part.max_ns))
            side = part_side(name, by_card=CARD in parts_of(step))
            rows.append([f"{begin}{PARTS[name]}", side, whole(part.count), *figures])
    columns = ranked(
        [*texts("part", "side"), *numbers("cycles", "min", "50 %", "99 %", "max")], "cycles", "min", "99 %"
    )
    by_card = any(CARD in parts_of(step) for step in steps)
    return (
        Table("Parts of a response", columns, rows, [CARD_NOTES if by_card else PART_NOTES]) if rows else None
    )


def cycles_grid(steps: Sequence[Step], labels: Mapping[str, str]) -> Table | None:
    """Return the table of what became of the cycles; None if there are no counts."""
    counted = {labels[step.id]: counts for step in steps if (counts := counts_of(step)) is not None}
    rows = [
        [words, *(whole(count_of(counts, name)) for counts in counted.values())]
        for name, words in {"cycles": "all", **OUTCOMES}.items()
    ]
    columns = [*texts("cycles"), *numbers(*counted)]
    return Table("Cycles", columns, rows, [CYCLE_NOTES]) if counted else None


def cycle_words(step: Step) -> str | None:
    """Return what became of the cycles, like "192.168.1.5: 1000 cycles, all answered in time"."""
    counts = counts_of(step)
    if counts is None:
        return None
    where = far_end_words(str(step.key.parameters.get("path")))
    cycles, answered = count_of(counts, "cycles"), count_of(counts, "answered")
    begin = f"{where}: {plural(cycles, 'cycle')}"
    what = "all answered in time" if cycles and answered == cycles else ", ".join(_counted(counts, OUTCOMES))
    others = _counted(counts, OTHERS)
    return "; ".join([f"{begin}, {what}" if what else begin, *slave_words(counts), *others])


def slave_words(counts: Result) -> list[str]:
    """Return how many slaves of EtherCAT read the frames, like "3 slaves"; nothing for another far end."""
    least, most = count_of(counts, "slaves-least"), count_of(counts, "slaves-most")
    if not most:
        return []
    same = plural(most, "slave")
    return [same if least == most else f"{same}, but only {least} in some cycles"]


@dataclass(frozen=True)
class DeviceClock:
    """A device's own clock: its period in ns, how many ppm it is slower than this loop (negative: faster),
    after how many cycles the two slip by one period, and in which cycles they did.
    """

    period_ns: float
    slower_ppm: float
    beat_cycles: float
    slips: str


def clock_of(step: Step) -> DeviceClock | None:
    """Return the clock by which the device answers; None if it answers at once, or has not slipped yet."""
    clock = next((result for result in step.results if result.name == "device-clock"), None)
    if clock is None:
        return None
    interval_ns = int(step.key.parameters.get("interval_ns"))
    period_ns, parts = float(clock.values["period-ns"] or 0), count_of(clock, "per-interval")
    listed = [whole(count_of(result, "cycle")) for result in step.results if result.name == "slip"]
    more = ["..."] if count_of(clock, "slips") > len(listed) else []
    return DeviceClock(
        period_ns,
        (period_ns * parts / interval_ns - 1) * 1e6,
        1 / abs(interval_ns / period_ns - parts),
        ", ".join(listed + more) or NONE,
    )


def _ppm_words(clock: DeviceClock) -> str:
    return f"{abs(clock.slower_ppm):,.1f} ppm {'slower' if clock.slower_ppm > 0 else 'faster'}"


def clock_words(step: Step) -> str | None:
    """Return a sentence about the device's own clock; None if it answers without one."""
    clock = clock_of(step)
    if clock is None:
        return None
    change = "shorter" if clock.slower_ppm > 0 else "longer"
    return (
        f"The device answers by a clock of its own, every {us(clock.period_ns, digits=3)} us, "
        f"{_ppm_words(clock)} than this loop. The two slip every {whole(round(clock.beat_cycles))} cycles: "
        f"from cycle {clock.slips} on, the response is {change} by one of its periods"
    )


def clock_grid(steps: Sequence[Step], labels: Mapping[str, str]) -> Table | None:
    """Return the table of the devices' own clocks; None if there are none."""
    clocks = {labels[step.id]: clock for step in steps if (clock := clock_of(step)) is not None}
    rows = [
        ["period (us)", *(us(clock.period_ns, digits=3) for clock in clocks.values())],
        ["than this loop", *map(_ppm_words, clocks.values())],
        ["cycles between slips", *(whole(round(clock.beat_cycles)) for clock in clocks.values())],
        ["slips in cycle", *(clock.slips for clock in clocks.values())],
    ]
    columns = [*texts("clock"), *texts(*clocks)]
    return Table("The device's own clock", columns, rows, [CLOCK_NOTES]) if clocks else None


def clock_figure(steps: Sequence[Step], labels: Mapping[str, str]) -> Figure | None:
    """Return the responses of devices with a clock of their own, from one slip to the next; None if there are
    none.
    """
    charts = {
        labels[step.id]: _sawtooth(parts, clock)
        for step in steps
        if (parts := [result for result in step.results if result.name == "beat"])
        and (clock := clock_of(step)) is not None
    }
    note = (
        "All beats laid over each other, in parts of equal length: the mean of each part, and bars from its "
        "smallest to its largest value. Near a slip, a part has responses from before and after it."
    )
    return Figure.described("clock", "The device's own clock", charts, [note])


def _sawtooth(parts: Sequence[Result], clock: DeviceClock) -> vega.Part:
    rows = [
        (
            float(part.values["cycles-after-slip"] or 0),
            *(count_of(part, f"{name}-ns") / 1_000 for name in ("min", "mean", "max")),
        )
        for part in parts
    ]
    data = vega.csv("cycle:Q low:Q mean:Q high:Q", rows)
    x = vega.shown("cycle:Q", title="cycles after a slip")
    tips = vega.tips(
        ("cycle", "cycles after a slip", ",.0f"),
        *(
            (name, f"{words} (us)", ",.1f")
            for name, words in (("low", "min"), ("mean", "mean"), ("high", "max"))
        ),
    )
    bars = vega.layer(
        data,
        vega.mark("rule", opacity=0.5),
        x=x,
        y=vega.shown("low:Q", title="wire and device (us)"),
        y2=vega.shown("high"),
        tooltip=tips,
    )
    means = vega.layer(data, vega.mark("line"), x=x, y=vega.shown("mean:Q"))
    means_us = [row[2] for row in rows]
    words = (
        f"The mean time of the wire and the device is {us(min(means_us) * 1_000)} us to "
        f"{us(max(means_us) * 1_000)} us; it repeats every {whole(round(clock.beat_cycles))} cycles."
    )
    return vega.layered([bars, means], height=160, description=words)


def _counted(counts: Result, kinds: Mapping[str, str]) -> list[str]:
    return [f"{whole(number)} {words}" for name, words in kinds.items() if (number := count_of(counts, name))]


def parts_figure(steps: Sequence[Step], labels: Mapping[str, str]) -> Figure | None:
    """Return bars of the parts of a usual response and of the rare ones; None if none were measured."""
    charts = {labels[step.id]: _bars(parts) for step in steps if (parts := parts_of(step))}
    note = (
        "Each bar stacks one statistic of all parts. Only the means add up to the mean response: a "
        "cycle with the largest value of one part seldom has the largest of another."
    )
    return Figure.described("parts", "The time of a response", charts, [note])


def _bars(parts: Mapping[str, SeriesSummary]) -> vega.Part:
    statistics = ("mean", "99 %", "max")
    rows: list[tuple[str, str, float, float]] = []
    for statistic in statistics:
        at_us = 0.0
        for name, part in parts.items():
            value_ns = {"mean": part.mean_ns, "99 %": part.p99_ns, "max": part.max_ns}[statistic] or 0
            rows.append((statistic, PARTS[name], at_us, at_us + value_ns / 1_000))
            at_us += value_ns / 1_000
    bars = vega.layer(
        vega.csv("statistic part from:Q to:Q", rows),
        vega.mark("bar"),
        x=vega.shown("from:Q", title="time after the release (us)"),
        x2=vega.shown("to"),
        y=vega.names_axis("statistic:N", statistics),
        color=vega.kinds("part:N", [PARTS[name] for name in parts]),
        tooltip=vega.tips("part", "statistic", ("from", "from (us)", ".1f"), ("to", "to (us)", ".1f")),
    )
    means = ", ".join(f"{PARTS[name]} {us(part.mean_ns)} us" for name, part in parts.items())
    return vega.layered([bars], height=130, description=f"Parts of a response; on average: {means}.")


class PathPresenter(Presenter):
    """Presents the probe path."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """Return what became of the cycles of a single step, and by which clock the device answers."""
        if len(steps) != 1:
            return None
        return ". ".join(words for words in (cycle_words(steps[0]), clock_words(steps[0])) if words) or None

    def cause(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Return whose the late cycles of a single step are; None if its windows are not kept. A cycle is
        late if its response is longer than the interval; a verdict has the requirement's bound instead.
        """
        kept = len(steps) == 1 and any(view.record.has(steps[0], file) for file in (WINDOWS, BLOCKS))
        if not kept:
            return None
        interval_ns = int(steps[0].key.parameters.get("interval_ns"))
        late = late_cycles(steps[0], view.record.windows(steps[0]), interval_ns)
        return None if late is None else late.words

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:
        """Return the figures of the parts and of the devices' own clocks."""
        drawn = (parts_figure(steps, view.labels), clock_figure(steps, view.labels))
        return [figure for figure in drawn if figure is not None]

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """Return the tables, with the figures."""
        tables = self._tables(view, steps)
        figures = [name for name in ("parts", "clock") if name in drawn]
        measured = "the cycles of a loop with a device"
        return Chapter("path", "The path", tables, measured, figures=figures) if tables else None

    def print_brief(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print what became of the cycles of a single step, and the table of the parts."""
        if len(steps) > 1:
            self.print_tables(view, steps, console)
            return
        if view.record.run.verdicts:  # without one, the first line says it
            for line in self.lines(steps[0]):
                print_text(console, line)
        grid = parts_grid(steps, view.labels)
        if grid is not None:
            print_tables([grid], console)
        console.print()

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the tables."""
        tables = self._tables(view, steps)
        if tables:
            print_tables(tables, console)
            console.print()

    def lines(self, step: Step) -> list[str]:
        """Return what became of the cycles, with the cycle and the interface, and the device's clock."""
        words = cycle_words(step)
        counts = counts_of(step)
        if words is None or counts is None:
            return []
        interface = counts.values.get("interface")
        over = f" over {interface}" if interface else ""
        clock = clock_words(step)
        return [
            f"{words}; a cycle of {format_bound(int(step.key.parameters.get('interval_ns')))}{over}",
            *([clock] if clock else []),
        ]

    def _tables(self, view: RecordView, steps: Sequence[Step]) -> list[Table]:
        grids = (parts_grid, cycles_grid, clock_grid)
        return [table for grid in grids if (table := grid(steps, view.labels)) is not None]


PATH = PathPresenter()
