# SPDX-License-Identifier: MIT
"""Options and texts that the commands of `rtgauge store` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
GAP = 2
"""The number of spaces between columns."""
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
    headings: Sequence[str],
    rows: Sequence[Sequence[str]] | map[tuple[str, ...]],
    *,
    spare: Sequence[str] = (),
    name: str | None = None,
) -> None:
    """Print columns as wide as their longest text. If not all fit, drop columns of `spare`, the first one
    first. If that is not enough, print each row as its `name` (default: the first column) with all its values
    below.

    With rich, ten thousand lines would take seconds.
    """
    from rtgauge.cli.console import Console

    lines, width = [tuple(headings), *rows], Console().width
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    filled = [at for at in range(len(headings)) if any(line[at] for line in lines[1:])]

    def fits(columns: Sequence[int]) -> bool:
        return sum(widths[at] for at in columns) + GAP * (len(columns) - 1) <= width

    kept, dropped = list(filled), list[int]()
    for title in spare:
        if fits(kept):
            break
        dropped = [*(at for at in kept if headings[at] == title), *dropped]
        kept = [at for at in kept if headings[at] != title]
    for at in dropped:  # a narrow one may fit now
        if fits(sorted([*kept, at])):
            kept = sorted([*kept, at])
    if not fits(kept):
        first = headings.index(name) if name is not None else filled[0]
        typer.echo("\n".join(_stacked(headings, line, first, width) for line in lines[1:]))
        return
    gap = " " * GAP
    typer.echo("\n".join(gap.join(line[at].ljust(widths[at]) for at in kept).rstrip() for line in lines))
    if rest := [headings[at] for at in filled if at not in kept]:
        print_sentence(f"A wider terminal also shows: {', '.join(rest)}.")


def print_sentence(text: str) -> None:
    """Print a sentence, wrapped between words."""
    from rtgauge.cli.console import Console
    from rtgauge.report.prose import prose_width

    typer.echo(fill(text, prose_width(Console()), break_long_words=False, break_on_hyphens=False))


def _stacked(headings: Sequence[str], line: Sequence[str], first: int, width: int) -> str:
    """Return a row as its name, and its other values with their headings below."""
    text = ""
    for heading, cell in zip(headings, line, strict=True):
        if not cell or cell == line[first]:
            continue
        value = f"{heading} {cell}".strip()
        last = text.rpartition("\n")[2]
        fits = text and len(last) + len(value) + 3 <= width
        text += f" · {value}" if fits else f"\n  {value}"
    return line[first] + text


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
