# SPDX-License-Identifier: MIT
"""Presenter of the tire: its chapter and figures on the page, and its tables on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.tire.page.step_table import tire_grid

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rich.console import Console

    from rtgauge.record.model import Step
    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.record_view import RecordView
    from rtgauge.tire.analysis.results import TireResults
    from rtgauge.tire.page.chapter import Chapter as SystemChapter
    from rtgauge.tire.page.drop_figure import Drop


@dataclass(frozen=True)
class TireContent:
    """What the template shows: how many steps, the fall, and a chapter for each system."""

    steps: int
    drop: Drop | None
    systems: list[SystemChapter]


class TirePresenter(Presenter):
    """After section 4 of Garre et al. (2014)."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """The largest tire that a search found, the deadlines missed, or how fast it computes."""
        from rtgauge.tire.page.chapter import results_of
        from rtgauge.tire.page.prose import search_words
        from rtgauge.tire.page.step_table import steps_in_short

        searched = [
            (results, row, row.searched.nodes)
            for results in results_of(view.record)
            for row in results.frontiers
            if row.searched is not None
        ]
        held = [(nodes, results, row) for results, row, nodes in searched if nodes is not None]
        if not held:
            return steps_in_short(steps)
        _, results, row = max(held, key=lambda triple: triple[0])
        (text,) = search_words(results.model_copy(update={"frontiers": [row]}))
        return f"the largest tire that keeps every deadline: {text.removesuffix('.')}"

    def results(self, view: RecordView) -> list[TireResults]:
        """Of each system."""
        from rtgauge.tire.page.chapter import results_of

        return results_of(view.record)

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """Those of every system."""
        from rtgauge.tire.page.chapter import figures_of, results_of

        return figures_of(results_of(view.record))

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """The systems, and the fall where its states were kept."""
        from rtgauge.tire.page.chapter import chapters
        from rtgauge.tire.page.drop_figure import drop_of

        drop = drop_of(view.record)
        return Chapter(
            id="tire",
            heading="The tire: a physical simulation",
            template="rtgauge.tire.page/chapter.html.j2",
            content=TireContent(len(steps), drop, chapters(view.record, drawn)),
            place="first",
            measured="a simulation",
            data={} if drop is None else {"drop": drop.as_data()},
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """A line a step, or, of so many that the summary has folded them, the tables of the study."""
        from rtgauge.report.terminal_table import print_tables

        if view.is_folded(steps[0]):
            from rtgauge.tire.page.chapter import results_of
            from rtgauge.tire.page.terminal_tables import terminal_grids

            for results in results_of(view.record):
                print_tables(terminal_grids(results), console)
                console.print()
            return
        grid = tire_grid(steps)
        if grid is not None:
            print_tables([grid], console)
            console.print()


TIRE = TirePresenter()
