# SPDX-License-Identifier: MIT
"""`rtgauge history`: the course of a series over many records, and where it seems to have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.options import Json
from rtgauge.cli.store import DEFAULT, Labels, Machine, StorePath, label_pairs, parameter_texts, unknown_name

if TYPE_CHECKING:
    from rtgauge.cli.console import Console
    from rtgauge.store.history import History, SuspectedChange


def history(
    series: Annotated[
        str,
        typer.Argument(
            metavar="SERIES", help="A series as `rtgauge store list --series` prints it, or with * in it."
        ),
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="kernel, commit, day, boot, machine, label:KEY or setting:NAME: a row for each.",
        ),
    ] = "kernel",
    quantile: Annotated[
        str,
        typer.Option(metavar="NAME", help="Look for changes of p50, p99, p99.9 or p99.99."),
    ] = "p99",
    store: StorePath = DEFAULT,
    machine: Machine = None,
    label: Labels = None,
    last: Annotated[int, typer.Option(min=0, metavar="N", help="Only the newest N results; 0: all.")] = 0,
    json: Json = False,
) -> None:
    """Show how a series went over many records, and where it seems to have changed.

    Each machine has a history of its own. A suspected change proves nothing: rtgauge gate measures again.

    \b
    Examples:
      rtgauge history wakeup/latency/cpu/as-is
      rtgauge history 'wakeup/latency/*' --by commit --machine bench-3
      rtgauge history wakeup/latency/idle/as-is --by setting:cpu.governor
    """
    from rtgauge.cli.console import Console
    from rtgauge.errors import InputError
    from rtgauge.store import queries
    from rtgauge.store.history import StoreHistory, histories
    from rtgauge.store.store import Store

    opened = Store.open(store)
    asked = queries.Asked(machine, label_pairs("--label", label), last)
    found = histories(opened, asked, series, quantile, by)
    if not found:
        raise InputError(unknown_name(opened, series))
    if json:
        typer.echo(StoreHistory(store=str(store), histories=found).model_dump_json(indent=1))
        return
    console = Console()
    for each, parameters in zip(found, parameter_texts(found), strict=True):
        _print(each, parameters, by, console)


def _print(history: History, parameters: str, by: str, console: Console) -> None:
    from rich.text import Text

    from rtgauge.report.table import Table, numbers, texts
    from rtgauge.report.terminal_table import print_tables
    from rtgauge.report.text import NONE, printable
    from rtgauge.units import plural
    from rtgauge.verdict.gate_result import percent

    def us(ns: int | None) -> str:
        return NONE if ns is None else f"{ns / 1000:,.1f}"

    place = f"{history.host} ({history.machine}{', shared' if history.shared else ''})"
    console.print(Text(printable(" ".join([history.series, "on", place, parameters])), style="bold"))
    for change in history.changes:
        console.print(Text(printable(_change_text(change)), style="yellow"))
    if not history.changes:
        text = (
            f"no change of {history.quantile} is suspected in {plural(history.boots, 'boot')}"
            if history.enough
            else f"{plural(history.boots, 'boot')}: from 20 on, rtgauge looks for changes"
        )
        console.print(Text(text))
    if history.spread_between_boots is not None:
        within = history.spread_within_boots
        runs = "" if within is None else f", runs of one boot by {within * 100:.1f} %"
        found = (
            "" if history.detectable is None else f"; a gate of 12 pairs finds {percent(history.detectable)}"
        )
        spread = f"{history.spread_between_boots * 100:.1f} %"
        console.print(Text(f"{history.quantile} of boots varies by {spread}{runs}{found}"))
    rows = [
        [
            group.group,
            str(group.runs),
            str(group.boots),
            *(us(ns) for ns in group.quantiles_ns.values()),
            f"{us(group.low_ns)} … {us(group.high_ns)}",
            us(group.max_ns),
            str(group.doubtful) if group.doubtful else "",
        ]
        for group in history.groups
    ]
    columns = [
        *texts(by),
        *numbers(
            "runs", "boots", *history.groups[0].quantiles_ns, f"{history.quantile}, 95 %", "max", "doubtful"
        ),
    ]
    print_tables([Table("In us, geometric means over runs", columns, rows).without_empty()], console)


def _change_text(change: SuspectedChange) -> str:
    from rtgauge.store.history import MOST_NAMED
    from rtgauge.verdict.gate_result import percent

    named = [
        f"{name} {before or 'none'} -> {after or 'none'}"
        for name, (before, after) in list(change.differs.items())[:MOST_NAMED]
    ]
    more = len(change.differs) - len(named)
    what = "; ".join([*named, *([f"{more} more"] if more else [])]) or "nothing that the records know"
    return (
        f"suspected change {percent(change.change)} at {change.record} ({change.started[:16]}); "
        f"changed there: {what}"
    )
