# SPDX-License-Identifier: MIT
"""From a record to the chapter: what is measured on a machine of known cost comes out on page and
terminal.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from ext.tire.tests.synthetic import Machine
from ext.tire.tests.tire_records import PERIOD_NS, fast_step, tire_step, write_study
from rtgauge.errors import RecordError
from rtgauge.record.reader import Record
from rtgauge.report.gathered_marks import gathered_marks
from rtgauge.report.record_page import html
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal_summary import print_summary
from rtgauge_ext.tire.analysis.runs import fast_runs, paced_runs, too_short
from rtgauge_ext.tire.analysis.searches import searched
from rtgauge_ext.tire.page.map_figures import bounds, share_class
from rtgauge_ext.tire.page.tire_presenter import TIRE, chapters, figures_of, results_of

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge_ext.tire.analysis.tire_results import TireResults

MACHINE = Machine(noise=0.005, begin={1: 300.0, 2: 4_000.0, 4: 21_000.0})


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return Record.open(write_study(tmp_path_factory.mktemp("study"), MACHINE))


@pytest.fixture(scope="module")
def results(record: Record) -> TireResults:
    (actual,) = results_of(record)
    return actual


def true_frontier(solver: str, threads: int) -> int:
    """The largest n that misses nothing."""
    nodes = 4
    while MACHINE.step_ns(solver, nodes + 4, threads) <= 0.95 * PERIOD_NS:
        nodes += 4
    return nodes


def test_the_frontier_of_each_solver_and_thread_count_is_found(results: TireResults) -> None:
    rows = {
        (row.place.solver, row.place.threads): row for row in results.frontiers if row.searched is not None
    }
    assert set(rows) == {
        ("serial", 1),
        *((solver, threads) for solver in ("semaphore", "halo") for threads in (1, 2, 4)),
    }
    for (solver, threads), row in rows.items():
        true = true_frontier(solver, threads)
        actual = row.searched
        assert actual is not None
        assert actual.nodes is not None
        assert 0.95 * true - 4 <= actual.nodes <= true
        assert row.predicted is not None
        assert row.predicted.mean is not None
        assert row.predicted.mean.value == pytest.approx(true / 0.95, rel=0.05)


def test_the_map_agrees_with_the_search(results: TireResults) -> None:
    for row in results.frontiers:
        if row.place.solver == "semaphore" and row.place.policy == "fifo":
            true = true_frontier("semaphore", row.place.threads)
            assert row.edge is not None
            assert row.edge.holds is not None
            assert row.edge.misses is not None
            assert row.edge.holds <= true < row.edge.misses


def test_words_for_threads_are_known_from_what_they_came_to(results: TireResults) -> None:
    assert results.meanings == {"cores": 2, "hardware-threads": 2, "twice": 4}


def test_a_record_of_no_study_has_no_search(tmp_path: Path) -> None:
    opened = Record.open(write_study(tmp_path, MACHINE, study=None, searched=False))
    assert searched(opened) == {}
    assert all(row.searched is None for row in results_of(opened)[0].frontiers)


def test_the_page_has_every_figure_and_few_lines_of_each_step(record: Record) -> None:
    page = html(record)
    for name in ("tire-time", "tire-threads", "tire-map", "tire-frontier", "tire-model"):
        assert f'data-figure="{name}"' in page
    for words in (
        "Real-fast",
        "How large may it be?",
        "The cost of a step",
        "T_ipc",
        "Every configuration, real-fast",
    ):
        assert words in page
    assert "<h2" in page
    # Hundreds of steps must not make hundreds of sections.
    assert len(re.findall(r"<details", page)) < 30
    assert page.count("period-short") < 5


def test_what_is_shown_is_what_was_measured(record: Record, results: TireResults) -> None:
    (chapter,) = chapters(record, {figure.name for figure in figures_of([results])})
    frontier = next(
        grid
        for section in chapter.sections
        for grid in section.tables
        if grid.title == "The real-time frontier"
    )
    row = next(
        row
        for row in frontier.rows
        if row[0].startswith("semaphore, FIFO") and row[1].startswith("2 threads (one per core)")
    )
    actual = next(
        row.searched
        for row in results.frontiers
        if (row.place.solver, row.place.policy, row.place.threads) == ("semaphore", "fifo", 2)
    )
    assert actual is not None
    assert row[5] == f"{actual.nodes:,}"


def test_the_largest_tire_is_the_answer(record: Record, results: TireResults) -> None:
    largest = max(row.searched.nodes or 0 for row in results.frontiers if row.searched is not None)
    view = RecordView(record)
    assert TIRE.headline(view) == f"{largest:,} nodes in real time"
    text = TIRE.conclusion(view, record.steps)
    assert text is not None
    assert f": {largest:,} nodes (" in text


@pytest.mark.parametrize("width", [80, 160])
def test_the_terminal_shows_the_study_as_a_whole(record: Record, width: int) -> None:
    text = io.StringIO()
    print_summary(record, Console(file=text, width=width, force_terminal=False), details=True)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= max(width, 120)  # only paths are longer
    assert len(lines) < 130
    assert "The real-time frontier" in text.getvalue()
    assert "T_spring" in text.getvalue()


def test_a_mark_of_many_steps_is_shown_once(record: Record) -> None:
    (mark,) = gathered_marks(RecordView(record))
    assert mark.name == "period-short"
    number = sum(bool(step.marks) for step in record.steps)
    assert mark.where == f"on {number} of {len(record.steps)} steps"


def test_one_step_stands_for_all_where_nothing_differs(record: Record) -> None:
    assert len(RecordView(record).representatives.steps) == 1


def test_a_run_below_a_millisecond_is_counted_and_says_nothing() -> None:
    steps = [
        tire_step(i, {"nodes": 100, "threads": "1"}, {"steps": 5, "wall_ns": wall})
        for i, wall in enumerate((999_999, 1_000_000))
    ]
    assert len(fast_runs(steps)) == 1
    assert too_short(steps) == 1
    assert (
        too_short([tire_step(1, {"nodes": 100, "steps": 5, "state": True}, {"steps": 5, "wall_ns": 10})]) == 0
    )


def test_the_longest_step_of_a_block_is_taken_apart() -> None:
    step = fast_step(Machine(noise=0.0), 1, "halo", 400)
    step.results[0].values |= {"block": 10, "steps": 1000, "wall_ns": 5_000_000, "step_max_ns": 6_000}
    (run,) = fast_runs([step])
    assert run.step_max_ns == 5_000 + 10 * 1_000


@given(
    st.dictionaries(
        st.sampled_from(
            ["steps", "wall_ns", "nodes", "threads", "activations", "deadline_missed", "mode", "block"]
        ),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    )
)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"steps": float("inf")})
@example({"steps": float("nan")})
@example({"step_max_ns": float("inf")})
def test_a_damaged_result_is_an_error_or_no_run(values: dict[str, bool | int | float | str | None]) -> None:
    good = {"steps": 200, "wall_ns": 10**9, "activations": 200, "deadline_missed": 0}
    for period in ("0", "10ms"):
        step = tire_step(1, {"nodes": 400, "period": period}, good)
        step.results[0].values |= values
        try:
            runs = [*fast_runs([step]), *paced_runs([step])]
        except RecordError as error:
            assert "damaged" in str(error)
        else:
            assert len(runs) <= 1


def test_a_stopped_run_is_no_trial_of_a_search() -> None:
    step = tire_step(
        1,
        {"nodes": 400, "period": "10ms"},
        {"steps": 3, "wall_ns": 10, "activations": 3, "deadline_missed": 0},
    )
    step.end_reason = "stopped"
    assert len(paced_runs([step])) == 1
    assert paced_runs([step], whole_only=True) == []


def test_cells_meet_in_the_middle() -> None:
    edges = bounds([100, 400, 1600])
    assert edges == [(50.0, 200.0), (200.0, 800.0), (800.0, 3200.0)]
    assert [share_class(share) for share in (0.0, 1e-9, 0.01, 0.011, 0.5, 1.0)] == [
        "none",
        "to 0.1 %",
        "to 1 %",
        "to 10 %",
        "to 50 %",
        "more",
    ]
