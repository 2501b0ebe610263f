# SPDX-License-Identifier: MIT
"""The chapters of a comparison: one, or one a task, or the tables of the microbenchmarks and the figures of
each operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.report.compare.tables import PAGE_WIDTH, doubtful_sides, emulated_note, grids
from rtgauge.report.microbenchmark_tables import conclusion as microbenchmark_conclusion
from rtgauge.report.microbenchmark_tables import grids as microbenchmark_grids
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.analysis.comparison_document import Comparison
    from rtgauge.analysis.comparison_scope import Scope
    from rtgauge.analysis.frequency import Gathered
    from rtgauge.analysis.microbenchmarks import Microbenchmarks
    from rtgauge.analysis.sides import Side
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.page import Chapter
    from rtgauge.report.known_times import Marker


def misses_grid(sides: Sequence[Side], task: str) -> Table:
    """What was counted of one task on each side, repeats added up."""
    rows: list[list[str]] = []
    for side in sides:
        counts = [of_task for step in side.steps for of_task in step.tasks if of_task.task == task]
        preemptions = [of_task.preemptions for of_task in counts]
        known = [number for number in preemptions if number is not None]
        cells = [
            whole(sum(of_task.activations for of_task in counts)),
            whole(sum(of_task.deadline_misses for of_task in counts)),
        ]
        rows.append([side.label, *cells, whole(sum(known)) if len(known) == len(preemptions) else NONE])
    columns = [*texts(""), *numbers("activations", "deadline misses", "preemptions")]
    return Table("Deadlines", columns, rows)


def comparison_grids(result: Comparison, sides: Sequence[Side], width: int = PAGE_WIDTH) -> list[Table]:
    """Every table of one comparison; of a task with its deadline misses. `width`: as of `grids`."""
    tables = grids(result, width)
    if result.task is not None:
        tables.insert(
            next(i for i, grid in enumerate(tables) if grid.folded), misses_grid(sides, result.task)
        )
    return tables


def chapter_of(
    result: Comparison, sides: Sequence[Side], pairs: Sequence[tuple[Side, Side]], title: str = ""
) -> Chapter:
    """The chapter of one comparison."""
    from rtgauge.report.compare.figures import comparison_figures, of_part
    from rtgauge.report.compare.page import Chapter

    figures = [of_part(figure, title) for figure in comparison_figures(sides, pairs).values()]
    baselines = list(dict.fromkeys(pair.baseline for pair in result.pairs))
    return Chapter(
        title,
        baselines,
        comparison_grids(result, sides),
        figures,
        emulated_note(result),
        result.conclusion,
        doubtful_sides(result),
    )


def operation_chapters(
    benchmarks: Microbenchmarks, parts: Sequence[tuple[Scope, list[Side], list[tuple[Side, Side]]]]
) -> list[Chapter]:
    """The tables of all operations, and then the figures of each."""
    from rtgauge.report.compare.figures import comparison_figures, of_part
    from rtgauge.report.compare.page import Chapter

    chapters = [
        Chapter(
            "",
            [],
            microbenchmark_grids(benchmarks),
            [],
            conclusion=microbenchmark_conclusion(benchmarks) or "",
        )
    ]
    for part, sides, pairs in parts:
        figures = [of_part(figure, part.title) for figure in comparison_figures(sides, pairs).values()]
        chapters.append(
            Chapter(part.title, list(dict.fromkeys(baseline.label for _, baseline in pairs)), [], figures)
        )
    return chapters


def timing_chapter(
    records: Sequence[Record], gathered: Sequence[Gathered], markers: Sequence[Marker]
) -> Chapter:
    """The tables and figures of frequencies, of responses and of searches over the period."""
    from rtgauge.analysis.sustained import curves
    from rtgauge.report import frequency_tables, sustained_tables
    from rtgauge.report.compare.page import Chapter
    from rtgauge.report.figures.timing import sustained_figure, timing_figures
    from rtgauge.report.presenter import frequency_grids

    searched = curves(records)
    tables = [
        *frequency_tables.grids([quantity.table for quantity in gathered]),
        *frequency_grids(records),
        *sustained_tables.grids(searched),
    ]
    figure = sustained_figure(searched)
    sentences = [
        *map(sustained_tables.sustained_sentence, searched),
        frequency_tables.conclusion([quantity.table for quantity in gathered]),
    ]
    conclusion = " ".join(f"{sentence}." for sentence in sentences if sentence is not None)
    return Chapter(
        "How often",
        [],
        tables,
        [*timing_figures(gathered, markers), *([figure] if figure is not None else [])],
        conclusion=conclusion,
    )
