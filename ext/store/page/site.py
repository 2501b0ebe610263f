# SPDX-License-Identifier: MIT
"""Writes a store as static pages: machines, last verdicts, histories and records.

They work from disk, without a server and without JavaScript. They link to the records' own pages instead of
repeating them.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rtgauge.record.files import clean_name, clear_errors, open_folder, write_whole
from rtgauge.record.reader import PAGE
from rtgauge.report.figures.figure_files import as_svg
from rtgauge.report.figures.vega import Figure, Theme
from rtgauge.report.page_frame import page_text
from rtgauge.report.table import SPARK, Cell, Table, Tone, numbers, ranked, texts
from rtgauge.report.text import day_and_time
from rtgauge.units import format_time, plural
from rtgauge_ext.store.document import MachineRow, RecordRow
from rtgauge_ext.store.history import History
from rtgauge_ext.store.page import history_report

MOST_RECORDS = 1_000
"""The most records in the list. The rest is only counted."""
TONES: dict[str, Tone] = {"holds": "good", "marginal": "doubt", "fails": "alarm"}


def spark_points(values: Sequence[float]) -> str:
    """Return the points of a spark line through the values, the lowest at the bottom; empty for fewer than
    two.
    """
    if len(values) < 2:
        return ""
    width, height = SPARK
    low, span = min(values), max(values) - min(values)
    across, up = (width - 2) / (len(values) - 1), (height - 4) / (span or 1)
    points = (
        f"{1 + at * across:.1f},{height - 2 - (value - low) * up if span else height / 2:.1f}"
        for at, value in enumerate(values)
    )
    return " ".join(points)


@dataclass(frozen=True)
class SeriesPage:
    """The histories of one series: `grouped` for the table, with its groups, and `booted` for the figures,
    with a group for each boot.
    """

    series: str
    grouped: Sequence[History]
    booted: Sequence[History]
    parameters: Sequence[str]
    """The parameters that distinguish a history from others with the same name."""


@dataclass(frozen=True)
class _Section:
    title: str
    table: Table
    lines: Sequence[str] = ()
    figure: Figure | None = None

    @property
    def drawn(self) -> dict[str, str]:
        """The figure as a base64 SVG, for each theme."""
        if self.figure is None:
            return {}
        themes: tuple[Theme, Theme] = ("light", "dark")
        return {theme: base64.b64encode(as_svg(self.figure, theme)).decode() for theme in themes}


def write_site(
    folder: Path,
    store: str,
    machines: Sequence[MachineRow],
    records: Sequence[RecordRow],
    series: Sequence[SeriesPage],
    by: str,
) -> Path:
    """Write all pages into a folder; return the path of the first page.

    `store`: the store in words, for the first page. `records`: the oldest comes first. `by`: the title of the
    groups' column. Raises InputError if the folder cannot be written, MeasureError if the disk is full.
    """
    names = _file_names([page.series for page in series])
    pages = {"index.html": _index(folder, store, machines, records, series, names)}
    pages |= {names[page.series]: _series_page(page, by) for page in series}
    with clear_errors(folder, option="--site"):
        folder.mkdir(parents=True, exist_ok=True)
        with open_folder(folder, follow=False) as opened:
            for name, text in pages.items():
                write_whole(folder / name, text.encode(errors="replace"), folder=opened)
    return folder / "index.html"


def _file_names(series: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for at, name in enumerate(series, 1):
        file = f"series-{clean_name(name)}.html"
        names[name] = file if file not in names.values() else f"series-{at}-{clean_name(name)}.html"
    return names


def _page(title: str, line: str, sections: Sequence[_Section], *, up: bool = False) -> str:
    return page_text(
        "rtgauge_ext.store.page/site.html.j2", draws=False, title=title, line=line, sections=sections, up=up
    )


def _series_page(page: SeriesPage, by: str) -> str:
    sections: list[_Section] = []
    for grouped, booted, parameters in zip(page.grouped, page.booted, page.parameters, strict=True):
        lines = [*history_report.changes(grouped), history_report.spread(grouped)]
        sections.append(
            _Section(
                history_report.place_of(grouped, parameters),
                history_report.table(grouped, by),
                [line for line in lines if line is not None],
                # drawing takes most of the time, and a single boot has no course
                history_report.figure(booted) if len(booted.groups) > 1 else None,
            )
        )
    line = "A suspected change is not proven; to test it, use rtgauge gate."
    return _page(page.series, line, sections, up=True)


def _index(
    folder: Path,
    store: str,
    machines: Sequence[MachineRow],
    records: Sequence[RecordRow],
    series: Sequence[SeriesPage],
    names: dict[str, str],
) -> str:
    newest = list(reversed(records))
    judged: dict[tuple[object, ...], RecordRow] = {}
    for row in newest:
        if row.verdict is not None:
            judged.setdefault((row.plan, row.requirement, *row.hosts), row)
    verdicts = [
        [_link(folder, row), _verdict(row), row.requirement or "", row.plan or "", *_where(row)]
        for row in judged.values()
    ]
    # The parameters stay on a narrow screen only if they tell two histories apart.
    distinct_columns = ["parameters"] if all(len(set(page.parameters)) == 1 for page in series) else []
    suspected = any(each.changes for page in series for each in page.grouped)
    doubt = ["changes: suspected, not proven; to test one, use rtgauge gate."] if suspected else []
    hosts = Counter(row.host for row in machines)
    shared_names = {host for host, count in hosts.items() if count > 1}
    histories = [row for page in series for row in _series_rows(page, names, shared_names)]
    history_columns = [
        *texts("series", "machine", "parameters"),
        *numbers("last", "boots", "changes"),
        *texts("last change"),
    ]
    known = [
        [
            row.host,
            _last_verdict(row, newest),
            row.key + (" (shared)" if row.shared else ""),
            str(row.records),
            day_and_time(row.first),
            day_and_time(row.last),
        ]
        for row in machines
    ]
    machine_columns = [
        *texts("machine", "last verdict", "known by"),
        *numbers("records"),
        *texts("first", "last"),
    ]
    record_columns = texts("record", "verdict", "plan", "machine", "when", "commit", "labels")
    verdict_columns = texts("record", "verdict", "requirement", "plan", "machine", "when")
    in_names = ("plan", "machine", "when")
    older = len(newest) - MOST_RECORDS
    notes = [f"{plural(older, 'older record')} not listed."] if older > 0 else []
    tables = [
        Table("Last verdicts", ranked(verdict_columns, *in_names), verdicts),
        Table(
            "Histories",
            ranked(history_columns, "boots", "machine", "last change", *distinct_columns),
            histories,
            doubt,
        ),
        Table("Machines", ranked(machine_columns, "known by", "first"), known),
        Table(
            "Records",
            ranked(record_columns, *in_names, "labels", "commit"),
            [_record_row(folder, row) for row in newest[:MOST_RECORDS]],
            notes,
        ),
    ]
    sections = [_Section(table.title, table.without_empty()) for table in tables if table.rows]
    return _page("Store", f"{store}, {plural(len(records), 'record')}", sections)


def _record_row(folder: Path, row: RecordRow) -> list[str]:
    labels = ", ".join(f"{key}={value}" for key, value in row.labels.items())
    return [_link(folder, row), _verdict(row), row.plan or "", *_where(row), row.commit or "", labels]


def _series_rows(page: SeriesPage, names: dict[str, str], shared_names: set[str]) -> list[list[str]]:
    """Return a row per machine and parameters, with the boots' quantile as a spark line and its last
    value. `shared_names`: names that several machines have, whose rows also show their keys.
    """
    rows: list[list[str]] = []
    for grouped, booted, parameters in zip(page.grouped, page.booted, page.parameters, strict=True):
        quantile, changes = booted.quantile, grouped.changes
        values = [ns for group in booted.groups if (ns := group.quantiles_ns[quantile])]
        last = f"{quantile} {format_time(values[-1])}" if values else ""
        rows.append(
            [
                Cell(page.series, href=names[page.series]),
                f"{grouped.host} ({grouped.machine})" if grouped.host in shared_names else grouped.host,
                history_report.measured_with(grouped, parameters),
                Cell(last, spark=spark_points(values)),
                str(booted.boots),
                str(len(changes)) if changes else "",
                day_and_time(max(change.started for change in changes)) if changes else "",
            ]
        )
    return rows


def _where(row: RecordRow) -> list[str]:
    return [", ".join(row.hosts), day_and_time(row.created)]


def _last_verdict(machine: MachineRow, newest: Sequence[RecordRow]) -> str:
    """Return the verdict of the machine's newest judged record; empty if none was judged."""
    return next(
        (_verdict(row) for row in newest if machine.key in row.machines and row.verdict is not None), ""
    )


def _verdict(row: RecordRow) -> str:
    word = "" if row.verdict is None else row.verdict.value
    return Cell(word, tone=TONES.get(word, ""))


def _link(folder: Path, row: RecordRow) -> str:
    """Return the record's name, linked to its page if this host has the page."""
    page = Path(row.path) / PAGE
    if row.missing or not page.is_file():
        return row.record
    return Cell(row.record, href=quote(os.path.relpath(page, os.path.realpath(folder))))
