# SPDX-License-Identifier: MIT
"""The raw samples file: exact figures against numpy on the whole array, and clear errors for what is not such
a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import RecordError
from rtgauge.exporters.samples_export import samples_table
from rtgauge.record import samples_summary
from rtgauge.record.quantiles import QUANTILES
from rtgauge.record.samples import HEADER, MAGIC, SamplesHeader, read_header, read_samples
from rtgauge.record.samples_summary import summarise_samples
from tests.support.samples import write_samples

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9


def write(folder: Path, samples, *, interval=1_000_000, warm_up=0, duration=0, lost=0) -> Path:
    path = folder / "samples-0.i64"
    write_samples(path, SamplesHeader(0, 1, interval, 10 * SECOND, warm_up, lost, duration), samples)
    return path


def reference_windows(samples, interval, warm_up, duration):
    """One activation after the other, as the format says it."""
    windows: dict[int, list[int]] = {}
    release = 0
    for value in samples:
        for j in range(1 + (max(0, value - 1) // interval if value > interval else 0)):
            since = (release + j) * interval - warm_up
            if duration and since >= duration:
                continue
            entry = windows.setdefault(since // SECOND if since >= 0 else -1, [0, 0, -1])
            if j == 0:
                entry[0] += 1
                entry[2] = max(entry[2], value)
            else:
                entry[1] += 1
        release += 1 + ((value - 1) // interval if value > interval else 0)
    return windows


@settings(max_examples=80)
@given(
    samples=st.lists(st.one_of(st.integers(0, 5_000_000), st.integers(0, 4 * SECOND)), max_size=60),
    interval=st.sampled_from([20_000_000, 333_333_333, 1_700_000_000, 77_777_777]),
    warm_up=st.sampled_from([0, 1, 50_000_000, 2 * SECOND]),
    duration=st.sampled_from([0, 3 * SECOND]),
)
def test_windows_are_those_of_the_definition(tmp_path_factory, samples, interval, warm_up, duration):
    if duration:  # the engine stores no activation that is released after the end
        kept, release = [], 0
        for value in samples:
            if release * interval >= warm_up + duration:
                break
            kept.append(value)
            release += 1 + ((value - 1) // interval if value > interval else 0)
        samples = kept
    path = write(tmp_path_factory.mktemp("s"), samples, interval=interval, warm_up=warm_up, duration=duration)
    result = summarise_samples(path)
    expected = reference_windows(samples, interval, warm_up, duration)
    w = result.windows
    rows = {
        i: [int(c), int(m), int(x)]
        for i, (c, m, x) in enumerate(zip(w.count, w.missed, w.max_ns, strict=True))
    }
    assert {i: r for i, r in rows.items() if r[0] or r[1]} == {k: v for k, v in expected.items() if k >= 0}
    warm = expected.get(-1, [0, 0, -1])
    assert [
        result.warm_up.count,
        result.warm_up.missed,
        -1 if result.warm_up.max_ns is None else result.warm_up.max_ns,
    ] == warm
    assert result.missed == sum(v[1] for k, v in expected.items() if k >= 0)


@pytest.mark.parametrize("kept", [samples_summary.KEPT, 100])
@pytest.mark.parametrize("scale", [3_000, 200_000, 900_000, 40_000_000])
def test_figures_equal_numpys(tmp_path, monkeypatch, scale, kept):
    """Small and large tails, kept or read again; 600 000 samples are more than two pieces."""
    monkeypatch.setattr(samples_summary, "KEPT", kept)
    rng = np.random.default_rng(scale)
    samples = (rng.lognormal(np.log(scale), 0.7, 600_000)).astype(np.int64)
    result = summarise_samples(write(tmp_path, samples, interval=1_000, warm_up=5 * 10**6)).distribution
    # The warm-up is the samples released in the first 5 ms.
    missed = np.where(samples > 1_000, (samples - 1) // 1_000, 0)
    release = np.concatenate([[0], np.cumsum(1 + missed)[:-1]])
    measured = samples[release >= 5_000]
    assert 0 < len(measured) < len(samples)
    assert result.count == len(measured)
    assert (result.min_ns, result.max_ns) == (measured.min(), measured.max())
    assert result.mean_ns == pytest.approx(measured.mean(), rel=1e-12)
    assert result.std_ns == pytest.approx(np.std(measured, ddof=1), rel=1e-9)
    for name, share in QUANTILES.items():
        assert getattr(result, name) == np.quantile(measured, float(share), method="inverted_cdf"), name


def test_impossible_samples_are_counted_apart(tmp_path):
    result = summarise_samples(write(tmp_path, [5, -3, 7, -(2**60)]))
    assert (
        result.impossible,
        result.distribution.count,
        result.distribution.min_ns,
        result.distribution.max_ns,
    ) == (2, 2, 5, 7)


def test_very_large_values_add_up_exactly(tmp_path):
    values = [2**46, 3]
    path = write(tmp_path, values, interval=2**46)
    assert summarise_samples(path).distribution.mean_ns == sum(values) / 2


def test_empty_file_has_no_figures(tmp_path):
    result = summarise_samples(write(tmp_path, []))
    assert result.distribution.count == 0
    assert result.distribution.max_ns is None
    assert len(result.windows.count) == 0


def test_read_back(tmp_path):
    header, values = read_samples(write(tmp_path, [1, 2, 3], warm_up=7, lost=4))
    assert header == SamplesHeader(0, 1, 1_000_000, 10 * SECOND, 7, 4, 0)
    assert values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a file of rtgauge samples"),
        (b"PAR1" * 40, "not a file of rtgauge samples"),
        (b"rtgauge\x02" + bytes(56), "update rtgauge"),
        (b"rtgauge\x01" + bytes(20), "cut short"),
        (b"rtgauge\x01" + bytes(56), "damaged"),
        (SamplesHeader(0, 0, 1000, 0, 0).pack() + b"12345", "cut short"),
        (HEADER.pack(MAGIC, HEADER.size, 0, 0, 0, 0, 0, 0, 0, 0), "damaged"),
        (HEADER.pack(MAGIC, HEADER.size, 0, 0, 1, 1000, 0, 0, 0, 0), "damaged"),
        (HEADER.pack(MAGIC, HEADER.size, 0, 0, 2, 0, 0, 0, 0, 0), "damaged"),
        (SamplesHeader(0, 0, 0, 0, 0).pack() + bytes(8), "cut short"),
        (SamplesHeader(0, 0, 1, -1, 0).pack(), "damaged"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, data, words):
    path = tmp_path / "x.i64"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=words) as error:
        summarise_samples(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(RecordError, match="cannot be read"):
        read_header(tmp_path / "none.i64")


def test_a_latency_of_years_is_damage(tmp_path):
    with pytest.raises(RecordError, match="damaged"):
        summarise_samples(write(tmp_path, [1, 2**62], interval=20_000))


@settings(max_examples=200)
@given(header=st.binary(max_size=80), body=st.binary(max_size=64), ours=st.booleans())
def test_hostile_bytes_end_in_a_record_error_or_a_summary(tmp_path_factory, header, body, ours):
    path = tmp_path_factory.mktemp("h") / "x.i64"
    path.write_bytes((b"rtgauge\x01\x40\x00\x00\x00" if ours else b"") + header + body)
    try:
        summarise_samples(path)
    except RecordError as error:
        assert "\n" not in str(error)


@settings(max_examples=100)
@given(
    gaps=st.lists(st.integers(0, 3 * 10**8), max_size=60),
    values=st.lists(st.integers(0, 3 * 10**6), min_size=60, max_size=60),
    warm_up=st.integers(0, 2 * 10**9),
)
def test_samples_with_their_own_times_are_placed_by_them(tmp_path_factory, gaps, values, warm_up):
    path = tmp_path_factory.mktemp("t") / "x.i64"
    start = 10**12
    times = start + np.cumsum(np.array([0, *gaps], dtype=np.int64))[1:]
    own = np.array(values[: len(times)], dtype=np.int64)
    write_samples(path, SamplesHeader(3, 1, 0, start, warm_up), np.column_stack([times, own]))
    summary = summarise_samples(path)
    measured = times >= start + warm_up
    assert summary.header.timed
    assert (summary.distribution.count, summary.warm_up.count, summary.missed) == (
        int(measured.sum()),
        int((~measured).sum()),
        0,
    )
    assert summary.distribution.max_ns == (int(own[measured].max()) if measured.any() else None)
    assert summary.windows.count.sum() == measured.sum()
    for start_ns, count, largest in zip(
        summary.windows.start_ns, summary.windows.count, summary.windows.max_ns, strict=True
    ):
        inside = own[(times >= start_ns) & (times < start_ns + 10**9)]
        assert (count, largest) == (len(inside), inside.max(initial=-1))
    table = samples_table(path)
    assert table.columns == ["series", "cpu", "phase", "time_ns", "value_ns"]
    assert table["time_ns"].to_list() == times.tolist()
    assert (table["phase"] == "measure").to_list() == measured.tolist()


def test_times_that_go_back_are_damage(tmp_path):
    path = tmp_path / "x.i64"
    write_samples(path, SamplesHeader(0, 0, 0, 0, 0), [[10, 1], [9, 1]])
    with pytest.raises(RecordError, match="go backwards"):
        summarise_samples(path)
