# SPDX-License-Identifier: MIT
"""`rtgauge store` keeps the figures of many records in one database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from rtgauge.cli import completion
from rtgauge.cli.lazy_group import ListedGroup
from rtgauge.cli.shared_options import Json
from rtgauge.errors import InputError, RecordError, RtgaugeError
from rtgauge.units import format_count, plural
from rtgauge_ext.store.cli.history_command import history, site
from rtgauge_ext.store.cli.options import (
    DEFAULT,
    Labels,
    Last,
    Machine,
    StorePath,
    label_pairs,
    parameter_texts,
    print_rows,
    print_sentence,
    unknown_name,
)

if TYPE_CHECKING:
    from rtgauge_ext.store.adding import GivenLabels
    from rtgauge_ext.store.document import Added, RecordPoint, RecordRow, SeriesHistory, SeriesPoint
    from rtgauge_ext.store.store import Store

HELP = """Keep the figures of many records in one store: query them, see their history, publish a site.

The records stay files, from which the store can be rebuilt.

\b
Examples:
  rtgauge store add latest --commit 4f2a9c1 --label image=12.3
  rtgauge store add rtgauge-runs
  rtgauge store list
  rtgauge store history wakeup/latency/idle/as-is
  rtgauge store site public
"""
app = typer.Typer(help=HELP, cls=ListedGroup, no_args_is_help=True, rich_markup_mode=None)
LAST = 50
app.command("history")(history)
app.command("site")(site)


def _print_json(document: BaseModel) -> None:
    typer.echo(document.model_dump_json(indent=1))


def _labels_given(
    commit: str | None, labels: list[str] | None, machines: list[str] | None, *, relabel: bool
) -> GivenLabels:
    from rtgauge_ext.store.adding import GivenLabels
    from rtgauge_ext.store.labels import MOST_LABELS, check_word

    named = {target: name for name, _, target in (text.partition("@") for text in machines or [])}
    given = GivenLabels(commit, label_pairs("--label", labels), named, relabel)
    for option, texts in (
        ("--commit", [commit] if commit else []),
        ("--label", [text for pair in given.labels.items() for text in pair if text]),
        ("--machine", [name for name in named.values() if name]),
    ):
        for text in texts:
            try:
                check_word(text)
            except ValueError as error:
                raise InputError(f"{option} {text[:40]}: {error}") from None
    if len(given.labels) > MOST_LABELS:
        raise InputError(f"--label: give at most {MOST_LABELS}")
    return given


@app.command("add")
def add(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD",
            autocompletion=completion.records,
            help="Records, latest, or a folder: every record in it.",
        ),
    ],
    store: StorePath = DEFAULT,
    commit: Annotated[str | None, typer.Option(metavar="ID", help="Commit that was tested.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A label; may be repeated. KEY= with --relabel removes it."),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[@TARGET]",
            help="Name of the machine, instead of its serial number; with several targets, add @TARGET.",
        ),
    ] = None,
    relabel: Annotated[
        bool,
        typer.Option(
            "--relabel", help="Replace or remove labels, commits and names that the records already have."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Add records, including imported ones. Adding a record again changes nothing.

    Commit, labels and machine names are also kept in the record (labels.json). If you name several records
    or a folder, only the records that the store does not have yet get them.

    \b
    Examples:
      rtgauge store add latest
      rtgauge store add rtgauge-runs --store lab.sqlite
      rtgauge store add latest --commit 4f2a9c1 --label image=12.3
      rtgauge store add latest --machine bench-3
    """
    from rtgauge.record.reader import find_record
    from rtgauge_ext.store import adding
    from rtgauge_ext.store.document import Added, StoreAdded
    from rtgauge_ext.store.store import Store

    given = _labels_given(commit, label, machine, relabel=relabel)
    places = [find_record(named) for named in records]
    record_folders = [(folder, folder != place) for place in places for folder in adding.folders_of(place)]
    folders = {folder: in_folder or len(record_folders) > 1 for folder, in_folder in record_folders}
    opened = Store.open(store, make=True)
    added: list[Added] = []
    problem: RtgaugeError | None = None
    kept = 0
    for folder, in_batch in folders.items():
        try:
            result = adding.add(opened, folder, given, in_batch=in_batch)
            added.append(Added(path=str(folder), record=result.name, outcome=result.outcome))
            kept += result.kept
            if not json:
                typer.echo(f"{result.outcome}: {result.name}")
        except RtgaugeError as error:
            if len(folders) == 1:
                raise
            problem = error
            added.append(Added(path=str(folder), record=None, outcome=None, error=str(error)))
            typer.echo(f"rtgauge: {error}", err=True)
    if json:
        _print_json(StoreAdded(store=str(store), added=added))
    elif kept:
        typer.echo(
            f"{plural(kept, 'earlier record')} {'keeps its' if kept == 1 else 'keep their'} labels; "
            f"to change them, add --relabel"
        )
    if problem is not None:
        failed = sum(each.error is not None for each in added)
        rest = "; the others were added" if failed < len(folders) else ""
        raise InputError(
            f"{failed} of {len(folders)} records could not be added (see above){rest}", problem.status
        )


@app.command("list")
def list_store(
    store: StorePath = DEFAULT,
    machine: Machine = None,
    label: Labels = None,
    last: Last = LAST,
    series: Annotated[
        bool, typer.Option("--series", help="List the measured series instead of the records.")
    ] = False,
    machines: Annotated[
        bool, typer.Option("--machines", help="List the machines instead of records.")
    ] = False,
    json: Json = False,
) -> None:
    """List the records in the store, oldest first; or its series, or its machines.

    \b
    Examples:
      rtgauge store list
      rtgauge store list --machine bench-3 --label image=12.3 --last 0
      rtgauge store list --series
      rtgauge store list --machines
    """
    from rtgauge_ext.store import queries
    from rtgauge_ext.store.document import StoreListed
    from rtgauge_ext.store.store import Store

    opened = Store.open(store)
    record_filter = queries.RecordFilter(machine, label_pairs("--label", label), last)
    total = queries.count(opened)
    document = StoreListed(store=str(store), total=total)
    if series:
        document.series = list(queries.series(opened, record_filter).values())
    if machines:
        document.machines = queries.machines(opened)
    if not (series or machines):
        document.records = queries.records(opened, record_filter)
    if json:
        _print_json(document)
        return
    if not total:
        typer.echo(f"The store {store} has no record; add one with: rtgauge store add RECORD")
        return
    if document.records is not None:
        shown = len(document.records)
        which = (
            "" if shown == total else f", {format_count(shown)} of them shown (--last, --machine, --label)"
        )
        typer.echo(f"{plural(total, 'record')} in {store}{which}")
        print_rows(
            ("record", "date", "host", "kernel", "verdict", "marks", "commit", "labels"),
            map(_cells, document.records),
            drop=("labels", "commit", "kernel", "host", "date"),
        )
        _print_missing(document.records)
    if document.series is not None:
        typer.echo(f"{format_count(len(document.series))} series of whole steps in {store}")
        rows = [
            (row.series, parameters, row.tool, str(row.results), str(row.machines), row.last[:10])
            for row, parameters in zip(document.series, parameter_texts(document.series), strict=True)
        ]
        titles = ("series", "parameters", "tool", "results", "machines", "last")
        numbers = ("machines", "results")
        print_rows(titles, rows, numbers=numbers, drop=("tool", *numbers, "last"))
    if document.machines is not None:
        typer.echo(f"{plural(len(document.machines), 'machine')} in {store}")
        rows = [
            (
                row.host,
                row.key,
                "shared" if row.shared else "",
                str(row.records),
                row.first[:10],
                row.last[:10],
            )
            for row in document.machines
        ]
        titles = ("host", "machine", "", "records", "first", "last")
        print_rows(titles, rows, numbers=["records"], drop=("first", "records", "last"))
        if any(row.shared for row in document.machines):
            print_sentence(
                "shared: another machine with the same image may have this key; name each machine with: "
                "rtgauge store add --machine NAME"
            )


def _cells(row: RecordRow) -> tuple[str, ...]:
    return (
        f"{row.record} (gone)" if row.missing else row.record,
        row.created[:16].replace("T", " "),
        ", ".join(row.hosts),
        ", ".join(row.kernels),
        str(row.verdict or ""),
        str(row.worst or ""),
        (row.commit or "")[:12],
        " ".join(f"{key}={value}" for key, value in row.labels.items()),
    )


def _print_missing(rows: Sequence[RecordRow]) -> None:
    gone = sum(row.missing for row in rows)
    if gone:
        print_sentence(
            f"{'the folder' if gone == 1 else 'the folders'} of {plural(gone, 'record')} no longer "
            f"{'exists' if gone == 1 else 'exist'}. The store keeps the figures; remove them with: rtgauge "
            "store rm",
            err=True,
        )


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SERIES|RECORD",
            help="A record, or a series as store list --series prints it; * stands for any text.",
        ),
    ],
    store: StorePath = DEFAULT,
    machine: Machine = None,
    label: Labels = None,
    last: Last = LAST,
    json: Json = False,
) -> None:
    """Show the results of a series, oldest first, or what the store knows about a record.

    \b
    Examples:
      rtgauge store show wakeup/latency/idle/as-is
      rtgauge store show 'wakeup/latency/*' --machine bench-3 --last 10
      rtgauge store show latest
    """
    from rtgauge_ext.store import queries
    from rtgauge_ext.store.document import StoreShown
    from rtgauge_ext.store.store import Store

    opened = Store.open(store)
    record_filter = queries.RecordFilter(machine, label_pairs("--label", label), last)
    courses = queries.courses(opened, record_filter, name)
    document = StoreShown(store=str(store), courses=courses)
    if not courses:
        rows = queries.records(opened, queries.RecordFilter(), _record_name(opened, name))
        if not rows:
            raise InputError(unknown_name(opened, name, or_record=True))
        document = StoreShown(
            store=str(store), record=rows[0], results=queries.results(opened, rows[0].record)
        )
    if json:
        _print_json(document)
        return
    for course, parameters in zip(
        courses, parameter_texts([course.series for course in courses]), strict=True
    ):
        _print_course(course, parameters)
    if document.record is not None:
        _print_record(document.record, document.results or [])


def _record_name(store: Store, named: str) -> str:
    """Return the record's name in the store. `named`: this name or the record's folder."""
    from rtgauge.record.reader import find_record, read_run

    if named in store.paths():
        return named
    try:
        return read_run(find_record(Path(named))).id
    except (RecordError, OSError, ValueError):  # ValueError: the text cannot be a path
        return named.rstrip("/").rsplit("/", 1)[-1].removesuffix(".partial")


QUANTILES = ("p50", "p99", "p99.9", "max")
FIGURES = ("count", "missed", *QUANTILES)


def _figures(point: SeriesPoint | RecordPoint) -> list[str]:
    """Return the cells of a result: counts, p50, p99, p99.9 and the maximum in us, and the worst mark. A
    quantile that too few samples exceed says how much longer the measurement must be.
    """
    from rtgauge.record.quantiles import field_of, times_longer
    from rtgauge.report.text import us

    cells = [format_count(point.count), format_count(point.missed)]
    for field in map(field_of, QUANTILES):
        times = times_longer(field, point.count + point.missed)
        cells.append(f"{times}x longer" if times is not None else us(getattr(point, f"filled_{field}")))
    return [*cells, str(point.worst or "")]


def _print_course(course: SeriesHistory, parameters: str) -> None:
    row = course.series
    about = (
        f"{row.series}: {plural(row.results, 'result')} of {plural(row.machines, 'machine')}, "
        f"{row.first[:10]} to {row.last[:10]} ({parameters}{'; ' if parameters else ''}us)"
    )
    print_sentence(about)
    if course.omitted:
        typer.echo(f"not shown: {plural(course.omitted, 'older result')}; show all results with --last 0")
    rows = [
        (
            point.started[:16].replace("T", " "), point.record, point.host, point.kernel or "",
            (point.commit or "")[:12], *_figures(point),
        )
        for point in course.points
    ]  # fmt: skip
    titles = ("date", "record", "host", "kernel", "commit", *FIGURES, "marks")
    drop = ("commit", "host", "kernel", "record", "missed", "p50", "count")
    print_rows(titles, rows, numbers=FIGURES, drop=drop)


def _print_record(row: RecordRow, results: Sequence[RecordPoint]) -> None:
    about = f"{row.record}: {row.state}, {plural(row.steps, 'step')} on {', '.join(row.machines)}"
    print_sentence(about)
    typer.echo(f"  {row.path}")
    if row.missing:
        print_sentence("  This folder is gone; the store keeps the figures.")
    labels = " ".join(
        [
            *([f"commit={row.commit}"] if row.commit else []),
            *(f"{key}={value}" for key, value in row.labels.items()),
        ]
    )
    if labels:
        typer.echo(f"  {labels}")
    if row.verdict is not None:
        typer.echo(f"  {row.verdict}: {row.requirement}")
    rows = [(point.series, *_figures(point)) for point in results]
    drop = ("missed", "count", "p50", "p99.9")
    print_rows(("series (us)", *FIGURES, "marks"), rows, numbers=FIGURES, drop=drop)


@app.command("rm")
def remove(
    records: Annotated[
        list[str], typer.Argument(metavar="RECORD", help="Records as store list prints them.")
    ],
    store: StorePath = DEFAULT,
    json: Json = False,
) -> None:
    """Remove records from the store. Their folders stay as they are.

    \b
    Example:
      rtgauge store rm 2026-11-21T10-03-22Z-pc-quick-7f3a
    """
    from rtgauge_ext.store.document import StoreRemoved
    from rtgauge_ext.store.store import Store

    opened = Store.open(store, write=True)
    names = list(dict.fromkeys(_record_name(opened, record) for record in records))
    opened.remove(names)
    if json:
        _print_json(StoreRemoved(store=str(store), removed=names))
        return
    for name in names:
        typer.echo(f"removed: {name}")


def _progress() -> Callable[[int, int], None]:
    if not sys.stderr.isatty():
        return lambda _finished, _all: None
    return lambda finished, every: typer.echo(f"\r{finished} of {every}", err=True, nl=False)


@app.command("rebuild")
def rebuild(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders of records; default: the folder of the store."),
    ] = None,
    store: StorePath = DEFAULT,
    json: Json = False,
) -> None:
    """Rebuild the store from every record that it knows and every record in these folders.

    A damaged store is put aside. If a record's folder is gone, the store keeps the record's figures.

    \b
    Examples:
      rtgauge store rebuild
      rtgauge store rebuild /srv/records --store lab.sqlite
    """
    from rtgauge_ext.store import adding

    rebuilt = adding.rebuild(store, folders or (), progress=_progress())
    if json:
        _print_json(rebuilt)
    else:
        typer.echo(f"{store} is rebuilt from {plural(rebuilt.read, 'record')}")
        if rebuilt.put_aside is not None:
            typer.echo(f"the damaged store was moved to {rebuilt.put_aside}")
        if rebuilt.missing:
            have = "has no folder" if len(rebuilt.missing) == 1 else "have no folder"
            names = ", ".join(rebuilt.missing[:5])
            kept = "the store keeps their figures; remove them with: rtgauge store rm"
            typer.echo(f"{plural(len(rebuilt.missing), 'record')} {have}: {names}; {kept}")
    for failed in rebuilt.failed:
        typer.echo(f"rtgauge: {failed.error}", err=True)
    if rebuilt.failed:
        raise typer.Exit(2)
