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
    drop: Sequence[str] = (),
    name: str | None = None,
    beneath: str | None = None,
) -> None:
    """Print columns as wide as their longest text. If not all fit, print the cells of `beneath` below their
    rows, and drop columns of `drop`, the first one first. If that is not enough, print each row below its
    `name` (default: the first column).

    With rich, ten thousand lines would take seconds.
    """
    from rtgauge.cli.console import Console

    lines, width = [tuple(headings), *rows], Console().width
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    filled = [at for at in range(len(headings)) if any(line[at] for line in lines[1:])]
    first = filled[0] if name is None else headings.index(name)
    below = [at for at in filled if headings[at] == beneath]

    def left_over(columns: Sequence[int], indent: int = 0) -> int:
        return width - indent - sum(widths[at] + GAP for at in columns) + GAP

    def fitted(columns: Sequence[int], indent: int = 0) -> list[int]:
        kept = list(columns)
        dropped: list[int] = []
        for title in drop:
            if left_over(kept, indent) >= 0:
                break
            dropped = [*(at for at in kept if headings[at] == title), *dropped]
            kept = [at for at in kept if headings[at] != title]
        for at in dropped:  # a narrow one may fit now
            if left_over([*kept, at], indent) >= 0:
                kept = sorted([*kept, at])
        return kept

    above: list[int] = []
    if left_over(filled) >= 0 or not below:
        kept, below = fitted(filled), []
    else:
        kept = fitted([at for at in filled if at not in below])
    if left_over(kept) < 0:
        above, below = [first, *below], []
        kept = fitted([at for at in filled if at not in above], GAP)
    gap, indent = " " * GAP, " " * GAP * bool(above)
    printed: list[str] = []
    for number, line in enumerate(lines):
        if above and number:
            printed.append(gap.join(line[at] for at in above if line[at]))
        printed.append((indent + gap.join(line[at].ljust(widths[at]) for at in kept)).rstrip())
        if number and (text := gap.join(line[at] for at in below if line[at])):
            printed.append(
                fill(text, width, initial_indent=gap, subsequent_indent=gap, break_long_words=False)
            )
    typer.echo("\n".join(printed))
    if rest := [headings[at] for at in filled if at not in {*kept, *above, *below}]:
        print_sentence(f"A wider terminal also shows: {', '.join(rest)}.")


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
