# SPDX-License-Identifier: MIT
"""The page of a comparison: one HTML file that works from disk, without a network; it shares the look and the
script of a record's page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.report.drawing_code import drawing_code
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figures.theme import config
from rtgauge.report.page import template_text, templates, write_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rtgauge.record.model import Verdict
    from rtgauge.record.reader import Record
    from rtgauge.report.figures.figure import Figure
    from rtgauge.report.table import Table


@dataclass(frozen=True)
class Chapter:
    """What is compared in one go: its heading (empty where there is but one), what it is compared with,
    tables and figures.
    """

    title: str
    baselines: list[str]
    grids: list[Table]
    figures: list[Figure]
    notice: str | None = None
    """What has to be known before anything is read."""
    conclusion: str = ""
    """What is shown, in one sentence."""
    doubt: str | None = None
    """What makes it doubtful."""


def html(
    chapters: Sequence[Chapter],
    records: Sequence[Record],
    verdicts: Mapping[str, Verdict] | None = None,
    title: str = "Comparison",
) -> str:
    """The page as text.

    All that comes from the records is escaped. `verdicts`: of each record by its name, where a requirement
    was given.
    """
    import rtgauge

    baselines = list(dict.fromkeys(name for chapter in chapters for name in chapter.baselines))
    first_words = {name.partition(", ")[0] for name in baselines}
    drawn = {figure.name: figure for chapter in chapters for figure in chapter.figures}
    return (
        templates()
        .get_template("compare.html.j2")
        .render(
            version=rtgauge.__version__,
            title=title,
            chapters=chapters,
            verdicts=verdicts or {},
            baselines=list(first_words) if len(baselines) > 1 and len(first_words) == 1 else baselines,
            records=list(dict.fromkeys(str(record.path) for record in records)),
            system_lines=list(dict.fromkeys(line for record in records for line in system_lines(record))),
            notices=list(dict.fromkeys(chapter.notice for chapter in chapters if chapter.notice is not None)),
            data={
                "figures": {name: figure.specs for name, figure in drawn.items()},
                "config": {theme: config(theme) for theme in ("light", "dark")},
            },
            style=template_text("style.css"),
            script=template_text("page.js"),
            engine=drawing_code(),
        )
    )


def render(
    chapters: Sequence[Chapter],
    records: Sequence[Record],
    out: Path,
    verdicts: Mapping[str, Verdict] | None = None,
) -> None:
    """Write the page to `out`; it is complete or not there.

    Raises InputError where `out` cannot be written.
    """
    write_page(html(chapters, records, verdicts), out)
