# SPDX-License-Identifier: MIT
"""What explaining cost and took, from the engine's lines; and the moments' file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rtgauge.errors import RecordError
from rtgauge.record import moments
from rtgauge.record.explain_report import explain_cost, explain_marks, explain_report
from rtgauge.record.histogram import bin_of, encode
from rtgauge.record.moments import MOMENTS, MomentFile, MomentWriter
from rtgauge.record.stream import StreamResult, StretchLine, SymbolsLine, TraceFormatsLine, parse_line

FORMATS = {
    "type": "trace_formats",
    "clock": "mono",
    "events": {"sched/sched_switch": "x"},
    "header_page": "",
    "header_event": "",
    "page_bytes": 4096,
    "cpus": 2,
}
MOMENT = {
    "type": "moment", "number": 1, "cpu": 0, "series": 0, "thread": 7, "kind": "maximum", "release_ns": 1,
    "end_ns": 10, "latency_ns": 9,
    "copy_ns": 5, "lost": {}, "pages": {"0": ["AAAA"]}, "left_out": [],
}  # fmt: skip


def stretch_line(values_ns: list[int], *, events: bool) -> StretchLine:
    bins, counts = np.unique(bin_of(np.array(values_ns)), return_counts=True)
    text = encode(np.stack([np.diff(bins, prepend=0), counts], axis=1).ravel().tolist())
    return StretchLine(type="stretch", events=events, start_ns=0, end_ns=1, count=len(values_ns), bins=text)


def stretch_lines(
    cost_ns: float, *, count: int = 200, pairs: int = 8, noise_ns: float = 300
) -> tuple[list[StretchLine], list[list[int]]]:
    rng = np.random.default_rng(5)
    values = [
        np.maximum(
            0, rng.normal(20_000 + 50 * number + (cost_ns if number % 4 in (1, 2) else 0), noise_ns, count)
        )
        .astype(int)
        .tolist()
        for number in range(2 * pairs)
    ]
    return [stretch_line(drawn, events=number % 4 in (1, 2)) for number, drawn in enumerate(values)], values


@pytest.mark.parametrize(("cost_ns", "equivalent"), [(0, True), (400, True), (3_000, False), (950, False)])
def test_the_cost_is_the_difference_of_medians(cost_ns: int, equivalent: bool) -> None:
    lines, values = stretch_lines(cost_ns, noise_ns=1_000)
    cost = explain_cost(lines)
    assert cost is not None
    assert cost.pairs == 8
    medians = [float(np.median(drawn)) for drawn in values]
    differences = [
        (b - a) * (1 if first % 4 == 0 else -1)
        for first, (a, b) in enumerate(zip(medians[::2], medians[1::2], strict=True))
        for first in [2 * first]
    ]
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.9)
    # A bin at 20 us is 1 us wide at the most.
    assert cost.median_ns == pytest.approx(np.mean(differences), abs=150)
    assert cost.high_ns - cost.low_ns == pytest.approx(expected.high - expected.low, abs=300)
    assert cost.is_equivalent is equivalent


def test_too_few_samples_have_no_cost() -> None:
    assert explain_cost(stretch_lines(0, count=20)[0]) is None
    assert explain_cost(stretch_lines(0, pairs=3)[0]) is None
    assert explain_cost([]) is None


def result_with(**values: int) -> StreamResult:
    result = StreamResult()
    result.take(parse_line(json.dumps(FORMATS)))
    for line in stretch_lines(5_000)[0]:
        result.take(line)
    numbers = {
        "moments": 3,
        "bytes": 9,
        "overwritten": 0,
        "over_budget": 0,
        "too_many_at_once": 0,
        "no_room": 0,
        "events_off": 0,
        "copy_max_ns": 5,
        "buffer_kb": 512,
    }
    result.take(
        parse_line(
            json.dumps({"type": "result", "name": "explain", "labels": {}, "values": numbers | values})
        )
    )
    return result


def test_what_was_not_captured_and_what_costs_too_much_is_marked() -> None:
    result = result_with(overwritten=2, over_budget=1, events_off=1)
    report = explain_report(result)
    assert report is not None
    assert result.results == []
    assert (report.events, report.moments, report.not_captured) == (
        ["sched/sched_switch"],
        3,
        {"overwritten": 2, "over_budget": 1, "events_off": 1},
    )
    marks = {mark.name: mark.detail for mark in explain_marks(report)}
    assert set(marks) == {"explain-cost", "not-explained"}
    assert "5.0" in marks["explain-cost"]
    assert "4 of 7 latencies" in marks["not-explained"]


def test_a_step_that_is_not_explained_has_no_report() -> None:
    assert explain_report(StreamResult()) is None
    assert explain_marks(None) == []


def test_moments_are_read_as_they_were_written(tmp_path: Path) -> None:
    formats = parse_line(json.dumps(FORMATS))
    assert isinstance(formats, TraceFormatsLine)
    writer = MomentWriter(tmp_path, formats)
    for number in (1, 2):
        writer.add(json.dumps(MOMENT | {"number": number}).encode() + b"\n")
    writer.add_symbols(SymbolsLine(type="symbols", symbols={"0xffffffff81000000": "_stext"}))
    writer.finish()
    assert [file.name for file in tmp_path.iterdir()] == [MOMENTS]
    file = MomentFile.open(tmp_path / MOMENTS)
    assert file.formats == FORMATS | {"symbols": {"0xffffffff81000000": "_stext"}}
    assert list(file.moments()) == [MOMENT, MOMENT | {"number": 2}]


def test_a_target_that_sends_moments_without_end_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats = parse_line(json.dumps(FORMATS))
    assert isinstance(formats, TraceFormatsLine)
    monkeypatch.setattr(moments, "MOST_WRITTEN", 1_000)
    writer = MomentWriter(tmp_path, formats)
    line = json.dumps(MOMENT).encode()
    with pytest.raises(RecordError, match="more than 0 MiB of recorded events"):
        for _ in range(100):
            writer.add(line)


DAMAGED = {
    "empty": b"",
    "no gzip": b"no gzip",
    "no JSON": gzip.compress(b"not json\n"),
    "no type": gzip.compress(b"{}"),
    "a list": gzip.compress(b"[1]\n"),
    "moment first": gzip.compress(b'{"type":"moment"}\n'),
    "cut": gzip.compress(json.dumps(FORMATS).encode())[:-9],
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / MOMENTS
    file.write_bytes(content)
    with pytest.raises(RecordError) as error:
        list(MomentFile.open(file).moments())
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    "wrong", [{"pages": {"0": [1]}}, {"kind": "x"}, {"number": 0}, {"lost": {"0": "x"}}, {"release_ns": None}]
)
def test_a_wrong_moment_is_no_line_of_a_stream(wrong: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="not a line of the engine's stream"):
        parse_line(json.dumps(MOMENT | wrong))
