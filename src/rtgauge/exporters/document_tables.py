# SPDX-License-Identifier: MIT
"""Makes a table of each quantity (in us) in GitHub's Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from rtgauge.escape import one_line
from rtgauge.exporters.exporter import Exporter
from rtgauge.exporters.step_figures import missed_of, series_name, step_name, verdict_of
from rtgauge.record.model import SeriesSummary, Step
from rtgauge.record.quantiles import TITLES, times_longer
from rtgauge.record.reader import Record

_FIGURES = ("min_ns", "mean_ns", "std_ns", "p99_ns", "p99_9_ns", "max_ns")
HEADINGS = ("", "count", "missed", *(TITLES[field] for field in _FIGURES))


class DocumentCell(NamedTuple):
    """The text of a cell, and whether it is a lower bound."""

    text: str
    bound: bool = False


@dataclass(frozen=True)
class DocumentRow:
    """The row of a step or, if `part`, of one of its series."""

    name: str
    part: bool
    cells: list[DocumentCell]
    """The figures; count and missed come first."""


def _figure(series: SeriesSummary, name: str) -> DocumentCell:
    times, value = times_longer(name, series.count), getattr(series, name)
    if times is not None:
        return DocumentCell(f"{times}x longer")
    return (
        DocumentCell("")
        if value is None
        else DocumentCell(f"{value / 1000:.1f}", name in series.lower_bounds)
    )


def _cells(step: Step, series: SeriesSummary) -> list[DocumentCell]:
    return [
        DocumentCell(str(series.count)),
        DocumentCell("?" if (missed := missed_of(step, series)) is None else str(missed)),
        *(_figure(series, name) for name in _FIGURES),
    ]


def _tables(record: Record) -> dict[str, list[DocumentRow]]:
    """Return the rows of each quantity: each step, followed by its series."""
    tables: dict[str, list[DocumentRow]] = {}
    for step in record.steps:
        if step.total is None:
            continue
        rows = tables.setdefault(step.total.metric, [])
        mark = "" if step.worst is None else "*"
        rows.append(DocumentRow(step_name(step) + mark, part=False, cells=_cells(step, step.total)))
        if len(step.series) > 1:
            rows += [
                DocumentRow(series_name(series), part=True, cells=_cells(step, series))
                for series in step.series
                if series.metric == step.total.metric
            ]
    return tables


def _markdown_text(text: str) -> str:
    """Escape text for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~@&-])", r"\\\1", one_line(text))


def markdown(record: Record) -> bytes:
    """Return the verdicts, the tables and the marks in Markdown."""
    lines: list[str] = [f"### rtgauge: {_markdown_text(record.run.id)}", ""]
    for step in record.steps:
        if (verdict := verdict_of(record, step)) is not None:
            what = ": ".join(
                _markdown_text(part) for part in (step_name(step), verdict.requirement, verdict.reason)
            )
            lines += [f"- **{verdict.word.value}**: {what}"]
    for quantity, rows in _tables(record).items():
        lines += [
            "",
            f"| {_markdown_text(quantity)}, us | " + " | ".join(HEADINGS[1:]) + " |",
            "|---" + "|---:" * (len(HEADINGS) - 1) + "|",
        ]
        for row in rows:
            name = (
                f"&nbsp;&nbsp;{_markdown_text(row.name)}" if row.part else f"**{_markdown_text(row.name)}**"
            )
            lines.append(
                f"| {name} | " + " | ".join(f"≥{text}" if bound else text for text, bound in row.cells) + " |"
            )
    marks = {
        f"{mark.severity.value}: {mark.name}: {mark.detail}" for step in record.steps for mark in step.marks
    }
    lines += ["", *(f"- {_markdown_text(mark)}" for mark in sorted(marks))]
    return ("\n".join(lines).rstrip() + "\n").encode()


MARKDOWN = Exporter(make=markdown)
