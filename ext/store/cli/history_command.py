# SPDX-License-Identifier: MIT
"""`rtgauge store history` shows a series over many records, and the places at which it seems to have changed;
`rtgauge store site` writes pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import Json
from rtgauge.errors import InputError
from rtgauge_ext.store.cli.options import (
    DEFAULT,
    Labels,
    Machine,
    StorePath,
    label_pairs,
    parameter_texts,
    print_rows,
    unknown_name,
)

if TYPE_CHECKING:
    from rtgauge.cli.console import Console
    from rtgauge_ext.store.document import SeriesHistory
    from rtgauge_ext.store.history import History
    from rtgauge_ext.store.page.site import SeriesPage
    from rtgauge_ext.store.queries import RecordFilter
    from rtgauge_ext.store.store import Store


By = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Show one row for each kernel, commit, day, boot, machine, label:KEY or setting:NAME.",
    ),
]
Quantile = Annotated[
    str, typer.Option(metavar="NAME", help="Quantile to watch: p50, p99, p99.9, ... p99.999.")
]
Newest = Annotated[int, typer.Option(min=0, metavar="N", help="Show only the newest N results; 0 shows all.")]


def history(
    series: Annotated[
        str | None,
        typer.Argument(
            metavar="SERIES",
            help=("A series as `rtgauge store list --series` prints it; * stands for any text."),
        ),
    ] = None,
    by: By = "kernel",
    quantile: Quantile = "p99",
    store: StorePath = DEFAULT,
    machine: Machine = None,
    label: Labels = None,
    last: Newest = 0,
    json: Json = False,
) -> None:
    """Show a series over many records, and mark the places where it seems to have changed.

    Without SERIES, list every series with its last value and the marks on it.

    Each machine has its own history. A suspected change is not proven; to test it, use rtgauge gate.

    \b
    Examples:
      rtgauge store history wakeup/latency/cpu/as-is
      rtgauge store history 'wakeup/latency/*' --by commit --machine bench-3
      rtgauge store history wakeup/latency/idle/as-is --by setting:cpu.governor
      rtgauge store history
    """
    from rtgauge.cli.console import Console
    from rtgauge_ext.store import queries
    from rtgauge_ext.store.history import StoreHistory, histories
    from rtgauge_ext.store.store import Store

    opened = Store.open(store)
    record_filter = queries.RecordFilter(machine, label_pairs("--label", label), last)
    matching = histories(opened, record_filter, series or "*", quantile, by)
    if not matching:
        raise InputError(unknown_name(opened, series or "*", or_record=False))
    if json:
        typer.echo(StoreHistory(store=str(store), histories=matching).model_dump_json(indent=1))
        return
    if series is None:
        _print_last(matching, queries.courses(opened, record_filter, "*"), quantile)
        return
    console = Console()
    for each, parameters in zip(matching, parameter_texts(matching), strict=True):
        _print(each, parameters, by, console)


def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write.")],
    by: By = "kernel",
    quantile: Quantile = "p99",
    store: StorePath = DEFAULT,
    machine: Machine = None,
    label: Labels = None,
    last: Newest = 0,
    series: Annotated[
        str, typer.Option(metavar="SERIES", help="Only these series; * stands for any text.")
    ] = "*",
) -> None:
    """Write static pages of the whole store: each series with its history.

    \b
    Examples:
      rtgauge store site public
      rtgauge store site public --series 'wakeup/latency/*' --by commit
    """
    from rtgauge_ext.store import queries
    from rtgauge_ext.store.store import Store

    record_filter = queries.RecordFilter(machine, label_pairs("--label", label), last)
    page = store_site(folder, Store.open(store), record_filter, series, quantile, by)
    typer.echo(f"page    {page}")


def _print_last(matching: Sequence[History], courses: Sequence[SeriesHistory], quantile: str) -> None:
    """List the series with their last values, the marks on these, and the number of suspected changes."""
    from rtgauge.record.quantiles import field_of, times_longer
    from rtgauge.units import format_time, plural

    last = {
        (course.series.series, dumps(course.series.parameters), course.series.tool, point.machine): point
        for course in courses
        for point in course.points
    }
    field = field_of(quantile)
    rows: list[tuple[str, ...]] = []
    for each, parameters in zip(matching, parameter_texts(matching), strict=True):
        point = last.get((each.series, dumps(each.parameters), each.tool, each.machine))
        values = ["", "", "", ""]
        if point is not None:
            times = times_longer(field, point.count + point.missed)
            value: int | None = getattr(point, f"filled_{field}")
            shown = f"{times}x longer" if times is not None else format_time(value)
            values = [point.started[:10], shown, format_time(point.filled_max_ns), str(point.worst or "")]
        changes = plural(len(each.changes), "change") if each.changes else ""
        rows.append((each.series, parameters, each.host, *values, changes))
    titles = ("series", "parameters", "host", "last", quantile, "max", "marks", "suspected")
    print_rows(titles, rows, numbers=[quantile, "max"], drop=("last", "host", "max"))


def _print(history: History, parameters: str, by: str, console: Console) -> None:
    from rich.text import Text

    from rtgauge.report.terminal_table import print_tables, print_text
    from rtgauge.report.text import printable
    from rtgauge_ext.store.page import history_report

    place = history_report.place_of(history, parameters)
    console.print(Text(printable(f"{history.series} on {place}"), style="bold"))
    for line in history_report.changes(history):
        print_text(console, line, style="yellow" if history.changes else "")
    spread = history_report.spread(history)
    if spread is not None:
        print_text(console, spread)
    print_tables([history_report.table(history, by)], console)


def store_site(
    folder: Path, store: Store, record_filter: RecordFilter, pattern: str, quantile: str, by: str
) -> Path:
    """Write the pages of a store, and return the path of the first page.

    `pattern`: the series to show; `quantile`, `by`: as for `rtgauge store history`. Raises InputError if an
    option is wrong or the folder cannot be written, MeasureError if the disk is full.
    """
    from rtgauge_ext.store import queries
    from rtgauge_ext.store.history import histories
    from rtgauge_ext.store.page.site import SeriesPage, write_site

    names = dict.fromkeys(row.series for row in queries.series(store, record_filter, pattern).values())
    pages: list[SeriesPage] = []
    for name in names:
        grouped = histories(store, record_filter, name, quantile, by)
        booted = histories(store, record_filter, name, quantile, "boot")
        pages.append(SeriesPage(name, grouped, booted, parameter_texts(grouped)))
    records = queries.records(store, record_filter)
    return write_site(folder, str(store.path), queries.machines(store), records, pages, by)
