# SPDX-License-Identifier: MIT
"""What a record view calls things."""

from __future__ import annotations

import pytest

from rtgauge.record.summary import summarise_step
from rtgauge.report.record_view import series_name
from tests.unit.windows import info, row, windows_of


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"cpu": 1, "cause": "task"}, "CPU 1, cause task"),
        ({"task": "reader", "lock_kind": "mutex"}, "Task reader, lock kind mutex"),
        ({"cpu": 0}, "CPU 0"),
    ],
)
def test_labels_of_a_series_are_apart(labels: dict[str, str | int], name: str) -> None:
    summary = summarise_step(windows_of(row([5_000])), [info(0, "gap", **labels)])
    assert [series_name(series) for series in summary.series] == [name]
