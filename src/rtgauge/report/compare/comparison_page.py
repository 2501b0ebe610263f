# SPDX-License-Identifier: MIT
"""Makes the page of a comparison. It is one HTML file that works from disk, without a network, and shares
style and script with a record's page.

It has one chapter, or one per task, or the tables of operations and the figures of each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rtgauge.analysis.comparison_document import Comparison, ComparisonFinding
from rtgauge.analysis.sides import Scope, Side
from rtgauge.record.model import Verdict
from rtgauge.record.reader import Record
from rtgauge.report.compare.comparison_figures import comparison_figures, lines_of_all
from rtgauge.report.compare.comparison_tables import (
    SETTINGS,
    doubtful_sides,
    emulated_note,
    grids,
)
from rtgauge.report.compare.extension_parts import Operations
from rtgauge.report.figures.figure_files import write_figures
from rtgauge.report.figures.vega import Figure, config
from rtgauge.report.how_often import HowOften
from rtgauge.report.page_frame import page_text, write_page
from rtgauge.report.record_conclusion import reason_text
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, whole

Tone = Literal["holds", "marginal", "fails", "cannot-tell", "none"]
"""The colour of an answer, as for the verdict with this word; "none" if it is not a verdict."""


@dataclass(frozen=True)
class AnswerBox:
    """The box at the top of a page: the verdict in a word, the conclusion, and the values behind it."""

    text: str
    word: str = ""
    tone: Tone = "none"
    values: Sequence[str] = ()
    """The absolute values of both sides in words, one line each."""
    next: str | None = None
    """What to do next."""


@dataclass(frozen=True)
class ComparisonChapter:
    """A comparison's chapter. `title` is empty if the page has only one chapter."""

    title: str
    baselines: list[str]
    grids: list[Table]
    figures: list[Figure]
    notice: str | None = None
    """A warning to read before the rest."""
    answer: AnswerBox | None = None
    doubt: str | None = None
    """Why the result is doubtful."""
    notes: Sequence[str] = ()
    """Notes on how the result was computed, one per line."""


def misses_grid(sides: Sequence[Side], task: str) -> Table:
    """Return a row per side with the activations, deadline misses and preemptions of a task, summed over its
    repeats.
    """
    rows: list[list[str]] = []
    for side in sides:
        counts = [of_task for step in side.steps for of_task in step.tasks if of_task.task == task]
        preemptions = [of_task.preemptions for of_task in counts]
        known = [number for number in preemptions if number is not None]
        cells = [whole(sum(of_task.activations for of_task in counts))]
        cells.append(whole(sum(of_task.deadline_misses for of_task in counts)))
        rows.append([side.label, *cells, whole(sum(known)) if len(known) == len(preemptions) else NONE])
    columns = [*texts(""), *numbers("activations", "deadline misses", "preemptions")]
    return Table("Deadlines", columns, rows)


def comparison_grids(result: Comparison, sides: Sequence[Side]) -> list[Table]:
    """Return all tables of one comparison. If it compares a task, they include the task's deadline misses."""
    tables = grids(result)
    if result.task is not None:
        folded = next(i for i, grid in enumerate(tables) if grid.folded)
        tables.insert(folded, misses_grid(sides, result.task))
    return tables


TONES: dict[ComparisonFinding, Tone] = {
    ComparisonFinding.WORSE: "fails",
    ComparisonFinding.MIXED: "fails",
    ComparisonFinding.BETTER: "holds",
    ComparisonFinding.SAME: "holds",
    ComparisonFinding.UNKNOWN: "cannot-tell",
}
"""The colours of the answers that tell, and of the one that cannot."""


def _answer(result: Comparison) -> AnswerBox | None:
    """Return the box of a comparison; None if its document has no conclusion."""
    if not result.conclusion or result.outcome is None:
        return None
    values = [] if result.values is None else [result.values]
    return AnswerBox(
        result.conclusion, result.outcome, TONES.get(result.outcome, "none"), values, result.next
    )


def chapter_of(result: Comparison, sides: Sequence[Side], title: str = "") -> ComparisonChapter:
    """Return the chapter of one comparison, without the folded tables of extensions."""
    return ComparisonChapter(
        title,
        list(dict.fromkeys(side.baseline for side in result.sides if side.baseline is not None)),
        [grid for grid in comparison_grids(result, sides) if not grid.folded or grid.title == SETTINGS],
        comparison_figures(sides, title, result.quantiles),
        emulated_note(result),
        _answer(result),
        doubtful_sides(result),
    )


def operation_chapters(
    operations: Operations, parts: Sequence[tuple[Scope, list[Side], list[tuple[Side, Side]]]]
) -> list[ComparisonChapter]:
    """Return a chapter with the tables of all operations, then one with figures for each operation."""
    answer = None if operations.conclusion is None else AnswerBox(operations.conclusion)
    chapters = [ComparisonChapter("", [], list(operations.tables), [], answer=answer)]
    for part, sides, pairs in parts:
        baselines = list(dict.fromkeys(baseline.label for _, baseline in pairs))
        chapters.append(ComparisonChapter(part.title, baselines, [], comparison_figures(sides, part.title)))
    return chapters


def timing_chapter(how_often: HowOften) -> ComparisonChapter:
    """Return the chapter with tables and figures of frequencies, responses and searches over the period."""
    answer = (
        AnswerBox(" ".join(f"{sentence}." for sentence in how_often.sentences))
        if how_often.sentences
        else None
    )
    return ComparisonChapter("How often", [], list(how_often.tables), list(how_often.figures), answer=answer)


def html(
    chapters: Sequence[ComparisonChapter],
    records: Sequence[Record],
    verdicts: Mapping[str, Verdict] | None = None,
    title: str = "Comparison",
) -> str:
    """Return the page as text; everything from the records is escaped.

    `verdicts`: by record name, if a requirement was given.
    """
    baselines = list(dict.fromkeys(name for chapter in chapters for name in chapter.baselines))
    first_words = {name.partition(", ")[0] for name in baselines}
    drawn = {figure.name: figure for chapter in chapters for figure in chapter.figures}
    return page_text(
        "compare.html.j2",
        draws=bool(drawn),
        title=title,
        chapters=chapters,
        verdicts={
            name: (verdict.word.value, reason_text(verdict)) for name, verdict in (verdicts or {}).items()
        },
        baselines=list(first_words) if len(baselines) > 1 and len(first_words) == 1 else baselines,
        records=list(dict.fromkeys(str(record.path) for record in records)),
        system_lines=lines_of_all(records),
        notices=list(dict.fromkeys(chapter.notice for chapter in chapters if chapter.notice is not None)),
        data={
            "figures": {name: figure.specs for name, figure in drawn.items()},
            "config": {theme: config(theme) for theme in ("light", "dark")},
        },
    )


def write(
    chapters: Sequence[ComparisonChapter],
    records: Sequence[Record],
    verdicts: Mapping[str, Verdict] | None = None,
    *,
    page: Path | None,
    figures: Path | None,
    notify: Callable[[str], object],
    title: str = "Comparison",
) -> None:
    """Write the page (with any verdicts) and the figures, if their paths are given. Call `say` with a line
    per file.

    Raises InputError if a file cannot be written.
    """
    if page is not None:
        write_page(html(chapters, records, verdicts, title), page)
        notify(f"page     {page}")
    if figures is not None:
        drawn = [figure for chapter in chapters for figure in chapter.figures]
        for path in write_figures(drawn, figures, "\n".join(lines_of_all(records))):
            notify(f"figure   {path}")
