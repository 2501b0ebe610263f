# SPDX-License-Identifier: MIT
"""What is said of a whole set, in the terminal and in figures."""

from __future__ import annotations

import io

import pytest
import typer
from rich.console import Console
from tests.support.messages import missing
from tests.support.published import check_published

from ext.schedulability.tests.unit.test_response import tasks_of
from rtgauge.errors import InputError
from rtgauge.report.figures.figure_files import write_figure
from rtgauge_ext.schedulability.analysis.analyse import analyse
from rtgauge_ext.schedulability.page.analysis_terminal import exact_time, print_set
from rtgauge_ext.schedulability.page.schedule_figure import timeline_figure
from rtgauge_ext.schedulability.sched_command import sched
from rtgauge_ext.schedulability.task_set import Task, TaskSet

MS = 1_000_000
TABLE_6 = tasks_of((10 * MS, 3 * MS), (20 * MS, 5 * MS), (40 * MS, 10 * MS))
SET_A = tasks_of((30 * MS, 10 * MS), (40 * MS, 10 * MS), (50 * MS, 12 * MS))


def analysed(*tasks):
    return analyse(TaskSet("x", tuple(tasks)))


def text(result, width, *, encoding="utf-8"):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    print_set(result, Console(file=out, width=width))
    out.seek(0)
    return out.read()


def test_every_cpu_by_itself_and_the_worst_is_the_sets():
    result = analysed(
        *TABLE_6,
        *(
            Task(f"u{i}", t.period_ns, t.execution_ns, t.deadline_ns, t.priority, 1)
            for i, t in enumerate(SET_A)
        ),
    )
    assert [cpu.answer for cpu in result.cpus] == ["schedulable", "not schedulable"]
    assert result.answer == "not schedulable"
    assert [task.response_ns for task in result.cpus[0].tasks] == [3 * MS, 8 * MS, 29 * MS]
    assert result.cpus[1].tasks[2].late_by_ns == 2 * MS


def test_offsets_that_save_a_set_are_not_taken_for_proof():
    pair = [Task("a", 4, 2, 2, 99), Task("b", 4, 2, 2, 98, offset_ns=2)]
    actual = analysed(*pair).cpus[0]
    assert actual.answer == "cannot tell"
    assert "meets its deadline" in actual.tasks[1].reason
    assert analysed(pair[0], Task("b", 4, 2, 2, 98, offset_ns=1)).answer == "not schedulable"
    assert analysed(pair[0], Task("b", 4, 2, 2, 98)).answer == "not schedulable"
    long = [
        Task("a", 1_000_003, 500_000, 500_000, 99),
        Task("b", 1_000_033, 500_000, 500_000, 98, offset_ns=2),
    ]
    assert "too long to simulate" in analysed(*long).cpus[0].tasks[1].reason
    # the same offset for all is no offset at all
    assert (
        analysed(*(Task(n, 4, 2, 2, p, offset_ns=7) for n, p in (("a", 99), ("b", 98)))).answer
        == "not schedulable"
    )


def test_the_documents_are_as_published(tmp_path, capsys):
    (tmp_path / "set.toml").write_text(
        '[[task]]\nname = "a"\nperiod = "10ms"\nexecution = "6ms"\n[[task]]\nname = "b"\nperiod = '
        '"20ms"\nexecution = "9ms"\n'
    )
    with pytest.raises(typer.Exit) as ended:
        sched(tmp_path / "set.toml", json=True)
    assert ended.value.exit_code == 1
    text = capsys.readouterr().out
    assert '"late_by_ns"' in text
    check_published(text, "sched")


def test_overload_is_not_schedulable_even_with_offsets():
    assert analysed(Task("a", 4, 3, 4, 99), Task("b", 8, 3, 8, 98, offset_ns=3)).answer == "not schedulable"


@pytest.mark.parametrize("width", [24, 40, 60, 80, 100, 160])
def test_no_number_is_cut_or_wrapped(width):
    """Long times of many digits, jitter, blocking and offsets: as wide as a table gets."""
    long = Task(
        "vision",
        9_876_543_211,
        345_678_912,
        8_876_543_211,
        98,
        blocking_ns=1_234_567,
        jitter_ns=7_654_321,
        offset_ns=111_111_111,
    )
    result = analysed(Task("servo", 1_234_567_891, 123_456_789, 1_234_567_891, 99), long)
    shown = text(result, width)
    for task in (task for cpu in result.cpus for task in cpu.tasks):
        for ns in (task.response_ns, None if task.late_by_ns is None else -task.late_by_ns):
            assert any(exact_time(ns) in line for line in shown.splitlines()), (width, exact_time(ns))
    assert "…" not in shown.partition("utilisation")[2].partition("Liu")[0]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_terminal_says_every_response_and_fits(width):
    shown = text(analysed(*TABLE_6), width)
    for response in ("3 ms", "8 ms", "29 ms"):
        assert response in shown
    assert "SCHEDULABLE" in shown
    assert "factor of 1.250000" in " ".join(shown.split())
    assert all(len(line) <= width for line in shown.splitlines())
    assert ("eq. 1" in shown) == (width >= 60)


def test_the_terminal_says_by_how_much_a_task_fails():
    shown = text(analysed(*SET_A), 120)
    assert not missing(shown, "t2", "52 ms", "2 ms beyond the deadline", "factor of 0.961538")
    assert "NOT SCHEDULABLE" in shown
    grows = text(analysed(Task("a", 10, 6, 10, 99), Task("b", 10, 6, 10, 98)), 120)
    assert "no bound" in grows
    assert "grows without bound" in grows


def test_without_block_characters():
    shown = text(analysed(*TABLE_6), 100, encoding="ascii")
    assert "###" in shown
    assert "?" not in shown


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "-"), (0, "0 ns"), (999, "999 ns"), (1_500, "1.5 us"), (29 * MS, "29 ms"),
        (12_345_678, "12.345678 ms"), (-2 * MS, "-2 ms"),
        (10**10 + 1, "10.000000001 s"), (2 * 10**9, "2000 ms"),
    ],
)  # fmt: skip
def test_times_keep_every_digit(ns, shown):
    assert exact_time(ns) == shown


@pytest.mark.parametrize(
    ("form", "begins"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")],
)
def test_figures_in_every_form(tmp_path, form, begins):
    two = [*TABLE_6, Task("alone", 10 * MS, 5 * MS, 10 * MS, 99, 1)]
    for name, tasks in (("one", TABLE_6), ("two", two)):
        path = tmp_path / f"{name}.{form}"
        write_figure(timeline_figure(analysed(*tasks)), path, "subtitle")
        assert path.read_bytes().lstrip().startswith(begins)


def test_a_figure_shows_every_segment_without_a_network(tmp_path):
    write_figure(timeline_figure(analysed(*SET_A)), tmp_path / "a.svg", "subtitle")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "missed" in svg
    assert "time (ms)" in svg
    write_figure(timeline_figure(analysed(*TABLE_6)), tmp_path / "b.html", "subtitle")
    assert "<script src" not in (tmp_path / "b.html").read_text(encoding="utf-8")
    assert "missed</text>" not in (tmp_path / "b.html").read_text(encoding="utf-8")


def test_figures_that_cannot_be():
    with pytest.raises(InputError, match="292 years"):
        timeline_figure(
            analysed(*tasks_of(*((period, 1) for period in (999999937, 999999893, 999999883, 999999797))))
        )
    with pytest.raises(InputError, match="segments, more than"):
        timeline_figure(analysed(*tasks_of((1_000, 1), (5_000_000, 2_600))))
