# SPDX-License-Identifier: MIT
"""Options and texts that the commands of `rtgauge store` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from json import dumps
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.errors import InputError
from rtgauge.record.records_folder import RECORDS
from rtgauge.units import format_duration

if TYPE_CHECKING:
    from rtgauge_ext.store.document import SeriesRow
    from rtgauge_ext.store.history import History
    from rtgauge_ext.store.store import Store

StorePath = Annotated[
    str,
    typer.Option(
        "--store", metavar="STORE", help="The store: an SQLite file, or postgresql://USER@HOST/DATABASE."
    ),
]
DEFAULT = str(RECORDS / "store.sqlite")
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="Show only this machine; give its key, your name for it, or its host name.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Show only records with this label; may be repeated."),
]
Last = Annotated[int, typer.Option("--last", min=0, metavar="N", help="Show only the newest N; 0 shows all.")]


def label_pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the `KEY=VALUE` texts of an option as a dictionary. Raises InputError if one is wrong."""
    pairs: dict[str, str] = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"{option} {text}: write KEY=VALUE, e.g. {option} image=12.3")
        pairs[key.strip()] = value.strip()
    return pairs


def print_rows(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> None:
    """Print a table without its empty columns, and name the columns that do not fit.

    `numbers`: the columns of numbers. `drop`: the columns to leave out if not all fit, the first one first.
    """
    from rtgauge.cli.console import Console
    from rtgauge.report.table import Column, Table, ranked
    from rtgauge.report.terminal_table import narrowed, print_tables

    console = Console()
    columns = [Column(title, "number" if title in numbers else "text") for title in titles]
    columns[0] = Column(titles[0], "nowrap")  # the name of a row is never broken
    table = Table("", ranked(columns, *drop), [list(row) for row in rows]).without_empty()
    shown = narrowed(table, console.width)
    rest = [column.title for column in table.columns if column not in shown.columns]
    notes = [f"A wider terminal also shows: {', '.join(rest)}."] if rest else []
    print_tables([replace(shown, notes=notes)], console)


def print_sentence(text: str, *, err: bool = False) -> None:
    """Print a sentence, wrapped between words. `err`: to standard error."""
    from rtgauge.cli.console import Console
    from rtgauge.report.labelled_lines import prose_width

    shown = fill(text, prose_width(Console()), break_long_words=False, break_on_hyphens=False)
    typer.echo(shown, err=err)


def parameter_texts(rows: Sequence[SeriesRow | History]) -> list[str]:
    """Return for each series its interval, and the parameters that distinguish it from series with the same
    name.
    """
    alike: dict[str, dict[str, Mapping[str, object]]] = {}
    for row in rows:
        alike.setdefault(row.series, {})[dumps(row.parameters)] = row.parameters
    differing = {
        series: {
            name
            for name in {name for each in kinds.values() for name in each}
            if len({dumps(each.get(name)) for each in kinds.values()}) > 1
        }
        for series, kinds in alike.items()
    }
    return [
        " ".join(
            f"{name.removesuffix('_ns')}={format_duration(value)}"
            if name.endswith("_ns") and isinstance(value, int)
            else f"{name}={value}"
            for name, value in row.parameters.items()
            if name == "interval_ns" or name in differing[row.series]
        )
        for row in rows
    ]


def unknown_name(store: Store, name: str, *, or_record: bool) -> str:
    """Return the message that the store has no such series, with a hint at the series that it has.

    `or_record`: whether the user could also have named a record.
    """
    from rtgauge_ext.store import queries

    if queries.courses(store, queries.RecordFilter(last=1), name):
        return (
            f"none of the records with this --machine or --label has the series {name}; list the records "
            "with: rtgauge store list"
        )
    if not queries.count(store):
        return f"the store {store.path} has no record; add one with: rtgauge store add RECORD"
    known = [row.series for row in queries.series(store, queries.RecordFilter()).values()]
    close = get_close_matches(name, [*known, *(store.paths() if or_record else ())], n=1)
    hint = f"; did you mean {close[0]}?" if close else "; list the series with: rtgauge store list --series"
    kinds = "a series or a record" if or_record else "a series"
    return f"'{name}' is not {kinds} in the store{hint}"
