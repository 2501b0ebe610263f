# SPDX-License-Identifier: MIT
"""Presents a history in words, as a table and as a figure."""

from __future__ import annotations

from rtgauge.analysis.median_of_runs import LEAST_RUNS
from rtgauge.record.alternation import DEFAULT_PAIRS
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import Table, numbers, ranked, texts
from rtgauge.report.text import NONE, day_and_time, us
from rtgauge.units import format_change, plural
from rtgauge_ext.store.change_points import LENGTHS
from rtgauge_ext.store.history import MOST_NAMED, History, SuspectedChange

ALLOWED_FOR = (
    "A slow drift or a seasonal pattern can look like a change, because rtgauge allows only for boots that "
    "resemble the boot before."
)


def place_of(history: History, parameters: str) -> str:
    """Return a history's machine, and the parameters and the foreign tool that distinguish it from other
    histories with its name.
    """
    place = f"{history.host} ({history.machine}{', shared' if history.shared else ''})"
    return " ".join(part for part in (place, measured_with(history, parameters)) if part)


def measured_with(history: History, parameters: str) -> str:
    """Return the parameters and the foreign tool that distinguish a history from others with its name."""
    tool = "" if history.tool == "rtgauge" else f"by {history.tool}"
    return " ".join(part for part in (parameters, tool) if part)


def changes(history: History) -> list[str]:
    """Return a line for each suspected change, or one that says there is no such change."""
    if history.changes:
        return [*(_change_text(change) for change in history.changes), ALLOWED_FOR]
    if history.enough:
        boots = plural(history.boots_counted, "boot")
        return [f"rtgauge does not suspect a change of {history.quantile} in {boots}"]
    counted = f"the store has {plural(history.boots, 'boot')} so far"
    if history.boots_counted < history.boots:
        counted += f", {history.boots_counted} of them with a {history.quantile} that counts"
    return [f"{counted}; rtgauge needs {LENGTHS[0]} boots to look for changes"]


def spread(history: History) -> str | None:
    """Return how much boots and machines differ, and the smallest change that a gate would find; None for a
    single boot.
    """
    parts = (
        (history.spread_between_boots, "boots"),
        (history.spread_within_boots, "runs of one boot"),
        (history.spread_between_machines, plural(history.machines, "machine")),
    )
    varies = [f"by {share * 100:.1f} % between {what}" for share, what in parts if share is not None]
    if not varies:
        return None
    gate = history.detectable
    gate_text = (
        ""
        if gate is None
        else f"; a gate of {DEFAULT_PAIRS} pairs would find a change of {format_change(gate)}"
    )
    return f"{history.quantile} varies {', '.join(varies)}{gate_text}"


INTERVALS = (
    "The 95 % intervals are calculated from the differences between boots. They bound the median boot, so a "
    "state that fewer than half of the boots have may lie outside."
)


def table(history: History, by: str) -> Table:
    """Return a table with the figures of each group."""
    rows: list[list[str]] = []
    for group in history.groups:
        interval = NONE if group.low_ns is None else f"{us(group.low_ns)} to {us(group.high_ns)}"
        figures = [*map(us, group.quantiles_ns.values()), interval, us(group.max_ns)]
        doubtful = str(group.doubtful) if group.doubtful else ""
        rows.append([group.group, str(group.runs), str(group.boots), *figures, doubtful])
    quantiles = (*history.groups[0].quantiles_ns, f"{history.quantile}, 95 %", "max")
    others = [name for name in reversed(history.groups[0].quantiles_ns) if name != history.quantile]
    columns = ranked([*texts(by), *numbers("runs", "boots", *quantiles, "doubtful")], *others, "runs")
    intervals = [group.low_ns is not None for group in history.groups]
    notes = [INTERVALS] if any(intervals) else []
    if not all(intervals):
        notes.append(f"A 95 % interval needs at least {LEAST_RUNS} boots.")
    return Table("Medians of the boots, in us", columns, rows, notes).without_empty()


def figure(history: History) -> Figure | None:
    """Return a figure with each boot's quantile and maximum, and suspected changes; None without values.

    `history`: must have a group for each boot.
    """
    boots = [group for group in history.groups if group.quantiles_ns[history.quantile]]
    rows = [
        (at, day_and_time(group.first), kind, ns / 1000)
        for at, group in enumerate(boots, 1)
        for kind, ns in ((history.quantile, group.quantiles_ns[history.quantile]), ("max", group.max_ns))
        if ns is not None and ns > 0
    ]
    if not rows:
        return None
    values = [us for *_, us in rows]
    low, high = min(values) / 1.2, max(values) * 1.2
    data = vega.csv("boot:Q day kind us:Q", rows)
    x = vega.counted_axis("boot:Q", len(boots), "boot")
    y = vega.log_axis("us:Q", low, high, "latency (us)")
    colour = vega.kinds("kind:N", (history.quantile, "max"))
    tooltip = vega.tips("boot:Q", "day:N", "kind:N", ("us:Q", "us"))
    point = vega.mark("point", filled=True, size=28)
    layers = [vega.layer(data, point, x=x, y=y, color=colour, tooltip=tooltip)]
    places = [(change.boots_before + 0.5,) for change in history.changes]
    if places:
        rule = vega.mark("rule", style="alarm", strokeDash=[5, 3])
        layers.append(vega.layer(vega.csv("boot:Q", places), rule, x=vega.shown("boot:Q")))
    description = f"{history.quantile} and maximum of {plural(len(boots), 'boot')} of {history.series}"
    notes = ["A dashed line marks a suspected change."] if places else []
    return Figure.single("course", "Course", description, layers, 260, notes)


def _change_text(change: SuspectedChange) -> str:
    differs = list(change.differs.items())[:MOST_NAMED]
    named = [f"{name} {before or 'none'} -> {after or 'none'}" for name, (before, after) in differs]
    more = len(change.differs) - len(named)
    what = (
        "; ".join([*named, *([f"{more} more"] if more else [])])
        or "nothing in the facts that the records contain"
    )
    where = f"at {change.record} ({day_and_time(change.started)})"
    return f"suspected change {format_change(change.change)} {where}; changed there: {what}"
