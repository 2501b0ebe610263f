# SPDX-License-Identifier: MIT
"""Every cycle that breaks the requirement counts as a trigger, once, with a moment or without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.messages import missing

from ext.recorder.tests.driven import (
    SECOND,
    DrivenClock,
    begin,
    figures_of,
    folder_of,
    moment,
    recording_of,
    window,
)
from rtgauge.record.stream import Window
from rtgauge_ext.recorder.late_counts import WAIT_NS, LateCounts, late_series

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge_ext.recorder.triggers import Trigger

BOUND_NS = 100_000
LINE = (
    b'{"type":"window","series":%d,"phase":"measure","index":3,"start_ns":5,"end_ns":9,"count":%d,"missed":%d,'
    b'"min_ns":%b,"max_ns":%b,"sum_ns":1,"m2_ns2":0.5,"bins":"","missed_bins":""}'
)
"""As engine/base/series.c writes it."""


def late_window(number: int, start_ns: int) -> Window:
    values = np.concatenate([np.full(50, 20_000), np.full(number, 3 * BOUND_NS)])
    return Window(
        type="window", series=0, phase="measure", index=0, start_ns=start_ns, end_ns=start_ns + SECOND,
        **figures_of(values),
    )  # fmt: skip


@given(
    late=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    kept=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    first=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_each_late_cycle_counts_once_in_any_order(
    late: list[int], kept: list[int], first: list[bool]
) -> None:
    cycles = LateCounts({"latency": BOUND_NS})
    counted = 0
    without: list[int] = []
    for at, number in enumerate(late):
        moments = [at * SECOND + n for n in range(min(number, kept[at]))]
        if number and not moments:
            without.append(number)
        if first[at]:
            counted += sum(cycles.moment("control", "latency", release) for release in moments)
        counted += cycles.window("control", "latency", late_window(number, at * SECOND), 0)
        if not first[at]:
            counted += sum(cycles.moment("control", "latency", release) for release in moments)
    assert counted == sum(late)
    assert cycles.without_moment(WAIT_NS - 1) == []
    assert [int(each.detail.split()[1]) for each in cycles.without_moment(WAIT_NS)] == without
    assert cycles.without_moment(10 * WAIT_NS) == []


def test_late_cycles_without_a_moment_pull_the_trigger(tmp_path: Path) -> None:
    clock, pulled = DrivenClock(), list["Trigger"]()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock, bounds={"latency": BOUND_NS}, on_trigger=pulled.append)
    taker = begin(recording, clock)
    values = np.concatenate([np.full(900, 20_000), np.full(100, 3 * BOUND_NS)])
    clock.pass_ns(SECOND)
    taker.take(window(clock, SECOND, figures_of(values)))
    taker.take(window(clock, SECOND, figures_of(values), series=2))  # nothing bounds an execution time
    assert recording.counts["trigger_late"] == 100
    recording.tick("watched")
    assert pulled == []
    clock.pass_ns(WAIT_NS)
    recording.tick("watched")
    recording.tick("watched")
    (trigger,) = pulled
    assert trigger.name == "late"
    assert not missing(
        trigger.detail,
        "control",
        "100 cycles",
        "latency",
        "more than 100 us",
        "worst 300 us",
        "without a moment",
    )


def test_one_moment_of_a_storm_triggers_and_all_cycles_count(tmp_path: Path) -> None:
    clock, pulled = DrivenClock(), list["Trigger"]()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock, bounds={"latency": BOUND_NS}, on_trigger=pulled.append)
    taker = begin(recording, clock)
    taker.take(moment(clock, "irq 31", 3 * BOUND_NS))
    clock.pass_ns(SECOND)
    taker.take(window(clock, SECOND, figures_of(np.full(100, 3 * BOUND_NS))))
    following = begin(recording, clock)
    taker.until_ns = following.from_ns
    clock.pass_ns(SECOND)
    taker.take(window(clock, SECOND, figures_of(np.full(100, 3 * BOUND_NS))))  # the next engine has it, too
    following.take(window(clock, SECOND, figures_of(np.full(100, 3 * BOUND_NS))))
    clock.pass_ns(WAIT_NS)
    recording.tick("watched")
    assert recording.counts["trigger_late"] == 200
    assert len(pulled) == 2, "the moment, and the second window"


@pytest.mark.parametrize(
    ("line", "series"),
    [
        (LINE % (0, 9, 0, b"1", b"100000"), None),
        (LINE % (0, 9, 0, b"1", b"100001"), 0),
        (LINE % (0, 9, 1, b"1", b"2"), 0),
        (LINE % (0, 0, 2, b"null", b"null"), 0),
        (LINE % (0, 0, 0, b"null", b"null"), None),
        (LINE % (1, 9, 0, b"1", b"100001"), None),
        (b"{}", None),
    ],
)
def test_only_the_lines_with_late_cycles_are_parsed(line: bytes, series: int | None) -> None:
    if line != b"{}":
        assert json.loads(line)["type"] == "window"
    assert late_series(line, {0: BOUND_NS}) == series
