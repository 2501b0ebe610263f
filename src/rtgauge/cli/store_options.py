# SPDX-License-Identifier: MIT
"""Options and texts that the commands of `rtgauge store` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.errors import InputError
from rtgauge.record.records_folder import RECORDS
from rtgauge.units import format_duration

if TYPE_CHECKING:
    from rtgauge.store.document import SeriesRow
    from rtgauge.store.history import History
    from rtgauge.store.store import Store

StorePath = Annotated[
    str,
    typer.Option("--store", metavar="STORE", help="An SQLite file, or postgresql://USER@HOST/DATABASE."),
]
DEFAULT = str(RECORDS / "store.sqlite")
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine", metavar="NAME", help="Only this machine: its key, your name for it, or its host name."
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Only records with this label; may be repeated."),
]
Last = Annotated[int, typer.Option("--last", min=0, metavar="N", help="Only the newest N; 0: all.")]


def label_pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the `KEY=VALUE` texts of an option as a dictionary. Raises InputError if one is wrong."""
    pairs: dict[str, str] = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"{option} {text}: write KEY=VALUE, e.g. {option} image=12.3")
        pairs[key.strip()] = value.strip()
    return pairs


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]] | map[tuple[str, ...]]) -> None:
    """Print columns as wide as their longest text. With rich, ten thousand lines would take seconds."""
    lines = [tuple(headings), *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    kept = [at for at in range(len(headings)) if any(line[at] for line in lines[1:])]
    text = "\n".join("  ".join(line[at].ljust(widths[at]) for at in kept).rstrip() for line in lines)
    typer.echo(text)


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
    from rtgauge.store import queries

    if queries.courses(store, queries.Asked(last=1), name):
        return (
            f"no record with this --machine or --label has the series {name}; list the records with: "
            f"rtgauge store list"
        )
    if not queries.count(store):
        return f"the store {store.path} has no record; add one with: rtgauge store add RECORD"
    known = [row.series for row in queries.series(store, queries.Asked()).values()]
    close = get_close_matches(name, [*known, *(store.paths() if or_record else ())], n=1)
    hint = f"; did you mean {close[0]}?" if close else "; list the series with: rtgauge store list --series"
    return f"the store has no series{' and no record' if or_record else ''} {name}{hint}"
