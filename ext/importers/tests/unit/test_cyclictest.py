# SPDX-License-Identifier: MIT
"""Measurements of cyclictest become records: real files of 2.40 (host and kernel release made anonymous), and
made-up and hostile ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.messages import missing

from rtgauge.analysis.spikes import step_words
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from rtgauge_ext.importers.cyclictest import histogram_limit, interval_us, parse_text
from rtgauge_ext.importers.imported_record import import_file
from rtgauge_ext.importers.rt_tests import parse_json

DATA = Path(__file__).parents[4] / "tests" / "data" / "cyclictest"


def imported(source: Path, tmp_path: Path, **more) -> Record:
    return Record.open(import_file(source, tmp_path / "runs", **more))


def total(record: Record):
    return record.steps[0].total


def marks(record: Record) -> set[str]:
    return {mark.name for mark in record.steps[0].marks}


LINE = "T: {} (22174) P:90 I:1000 C:{:7} Min:     19 Act:   32 Avg:{} Max:     60\n"


@pytest.mark.parametrize("average", ["    0", " -nan", "-nan", " nan"])
def test_a_thread_without_a_cycle_does_not_hold(tmp_path, average):
    file = tmp_path / "log"
    file.write_text(LINE.format(0, 50_000, "   38") + LINE.format(1, 0, average))
    record = imported(file, tmp_path)
    step = record.steps[0]
    verdict = judge(parse_requirement("latency<=90us"), step, record.windows(step))
    assert verdict.word == "cannot tell"
    assert "thread 1" in verdict.reason


@pytest.mark.parametrize("second", [LINE.format(1, 50_000, "   38")[:40], LINE.format(2, 50_000, "   38")])
def test_a_thread_whose_line_is_lost_is_not_left_out(tmp_path, second):
    file = tmp_path / "log"
    file.write_text(LINE.format(0, 50_000, "   38") + second + "\n")
    with pytest.raises(InputError, match="thread 1 has"):
        imported(file, tmp_path)
    file.write_text(LINE.format(1, 40_000, "   38") + file.read_text() + LINE.format(2, 50_000, "   38"))
    assert imported(file, tmp_path).steps[0].total.count == 140_000


@pytest.mark.parametrize("source", sorted(DATA.iterdir()), ids=lambda p: p.name)
def test_every_real_file_becomes_a_record(source, tmp_path):
    record = imported(source, tmp_path, unit_ns=1 if source.name == "ns.txt" else None)
    assert record.run.state == "complete"
    step = record.steps[0]
    assert step.worst == "note"
    assert step.key.tool == "cyclictest"
    assert total(record).count == sum(series.count for series in step.series) > 0


def test_figures_are_those_that_cyclictest_printed(tmp_path):
    record = imported(DATA / "h.txt", tmp_path)
    item, two = record.steps[0].series
    assert [(s.count, s.min_ns, int(s.mean_ns / 1000), s.max_ns) for s in (item, two)] == [
        (2000, 8000, 13, 47000),
        (2000, 8000, 14, 79000),
    ]
    # Rows 8 to 12 hold 572 samples of thread 0, row 13 the next 748: the median is 13 us, not 13.099.
    assert item.p50_ns == 13_000
    assert item.lower_bounds == []
    assert "resolution-1us" in marks(record)


def test_a_summary_column_is_not_a_thread(tmp_path):
    record = imported(DATA / "histofall.txt", tmp_path)
    item, two = record.steps[0].series
    assert [(s.count, s.max_ns) for s in (item, two)] == [(2000, 5_258_000), (2000, 93_000)]
    # One sample above the histogram is the maximum itself: everything is known.
    assert item.std_ns is not None
    assert item.lower_bounds == []


def test_quantiles_above_the_histogram_are_lower_bounds(tmp_path):
    record = imported(DATA / "overflow.txt", tmp_path)
    item = record.steps[0].series[0]
    assert (item.count, item.p95_ns, item.p99_ns, item.p99_99_ns, item.max_ns) == (
        1000,
        17_000,
        20_000,
        65_000,
        65_000,
    )
    # 948 samples are at most 16 us and 963 at most 17 us; 978 lie below the limit.
    assert item.lower_bounds == ["p99_ns", "p99_9_ns", "mean_ns"]
    assert (item.mean_ns, item.std_ns) == (13_000, None)
    assert {"histogram-overflow", "mean-rounded", "missed-unknown"} <= marks(record)


def test_cycles_above_the_histogram_are_joined_over_the_threads(tmp_path):
    step = imported(DATA / "overflow.txt", tmp_path).steps[0]
    first, second = (result.values for result in step.results)
    assert (str(first["cycles"])[:11], first["others"], second["others"]) == ("10 30 31 13", 2, 0)
    # thread 0 has 14 groups of neighbours, thread 1 six cycles, of which 10 and 573 are also thread 0's
    assert not missing(step_words(step) or "", "26 outliers", "2 threads", "18 events", "2 of them")


def test_json_knows_cpus_time_and_interval(tmp_path):
    record = imported(DATA / "overflow.json", tmp_path)
    step = record.steps[0]
    assert [s.labels for s in step.series] == [{"cpu": 0}, {"cpu": 1}]
    # Cycles less the sum of the bins: 1000 - 852 and 1000 - 935.
    windows = record.windows(step)
    assert (windows.count - windows.bins.sums).tolist() == [148, 65]
    assert (step.tool, step.key.parameters.values) == (
        "cyclictest 2.40",
        {"interval_ns": 1_000_000, "priority": 80, "policy": "fifo", "dma_latency_us": 0},
    )
    assert step.started == "2026-11-21T11:13:34Z"
    assert step.series[0].mean_ns == 17_540
    assert record.systems["machine"].kernel.release == "6.12.0"


def test_ns_resolution_in_json(tmp_path):
    record = imported(DATA / "ns.json", tmp_path)
    assert (total(record).min_ns, total(record).max_ns) == (10_142, 33_283)
    assert "resolution-1us" not in marks(record)


def test_nanoseconds_in_text_need_the_option(tmp_path):
    with pytest.raises(InputError, match=r"12\.2 ms.*--ns.*--us"):
        imported(DATA / "ns.txt", tmp_path)
    assert total(imported(DATA / "ns.txt", tmp_path, unit_ns=1000)).max_ns == 5_025_357_000
    record = imported(DATA / "ns.txt", tmp_path, unit_ns=1)
    assert total(record).max_ns == 5_025_357
    assert "unit-assumed" not in marks(record)


def test_without_a_histogram_only_the_extremes_are_known(tmp_path):
    record = imported(DATA / "no-histogram.txt", tmp_path)
    assert {"no-histogram", "missed-derived"} <= marks(record)
    assert [(s.count, s.min_ns, s.max_ns, s.lower_bounds[0]) for s in record.steps[0].series] == [
        (200, 12_000, 38_000, "p50_ns"),
        (139, 12_000, 4_081_000, "p50_ns"),
    ]
    # 4.081 ms at 1.5 ms: two activations slept through.
    assert [s.missed for s in record.steps[0].series] == [0, 2]


def test_the_last_of_repeated_screens_counts(tmp_path):
    record = imported(DATA / "screen.txt", tmp_path)
    assert [s.count for s in record.steps[0].series] == [150, 150]
    assert record.steps[0].key.parameters.values == {
        "interval_ns": 1_000_000,
        "priority": 80,
        "dma_latency_us": 0,
    }


def test_missed_activations_follow_from_the_interval(tmp_path):
    source = tmp_path / "x.json"
    source.write_text(json.dumps(file_of([{11: 5, 2500: 1}], interval=1000)))
    record = imported(source, tmp_path)
    item = record.steps[0].series[0]
    assert (item.count, item.missed, item.filled.count, item.filled.p50_ns) == (6, 2, 8, 11_000)
    assert "missed-derived" in marks(record)
    # A latency of 1000 us cut to whole us was nearly surely later than the interval.
    source.write_text(json.dumps(file_of([{11: 5, 1000: 1}], interval=1000)))
    assert imported(source, tmp_path).steps[0].series[0].missed == 1


def test_a_verdict_takes_a_figure_as_up_to_999_ns_larger(tmp_path):
    source = tmp_path / "x.json"
    source.write_text(json.dumps(file_of([{50: 20_000, 200: 1}], interval=1000)))
    record = imported(source, tmp_path)
    step = record.steps[0]
    words = [
        judge(parse_requirement(f"latency<={bound}ns hardness=100%"), step, record.windows(step)).word
        for bound in (199_999, 200_000, 200_998, 200_999, 300_000)
    ]
    assert words == ["fails", "cannot tell", "cannot tell", "marginal", "holds"]


@pytest.mark.parametrize(
    ("command", "thread", "expected"),
    [
        ("cyclictest -i200", 0, 200),
        ("cyclictest -i 200 -t2", 1, 700),
        ("cyclictest --interval=250 -t 2 -d0", 1, 250),
        ("cyclictest -mqi300 -h 100", 1, 300),
        ("cyclictest -t2", 1, 1500),
        ("cyclictest -t2 -H400", 1, 1000),
        ("cyclictest -r -i200", 0, None),
        ("cyclictest --histfile=/x-i5 -h 10 -i 7", 0, 7),
    ],
)
def test_the_interval_by_the_command_line(command, thread, expected):
    assert interval_us(command, thread) == expected


def test_the_limit_by_the_command_line():
    assert [
        histogram_limit(f"cyclictest {o}")
        for o in ("-h 100", "-h100", "-qH 30", "--histogram=5", "--histofall 6", "-q", "--histfile=x")
    ] == [
        100,
        100,
        30,
        5,
        6,
        None,
        None,
    ]


# Made-up measurements: text and JSON as cyclictest writes them, from the same numbers.


def file_of(histograms, *, limit=100_000, interval=1000, overflow=None):
    threads = {}
    for n, histogram in enumerate(histograms):
        above = [] if overflow is None else overflow[n]
        values = [v for v, c in histogram.items() for _ in range(c)] + above
        threads[str(n)] = {
            "histogram": {str(v): c for v, c in sorted(histogram.items())},
            "cycles": len(values), "min": min(values, default=1_000_000), "max": max(values, default=0),
            "avg": round(sum(values) / len(values), 2) if values else 0.0, "cpu": n, "node": 0,
        }  # fmt: skip
    return {
        "file_version": 1, "cmdline:": f"cyclictest -p80 -i{interval} -h {limit}", "rt_test_version:": "2.40",
        "start_time": "Sat, 21 Nov 2026 11:13:32 +0000",
        "return_code": 0, "sysinfo": {"nodename": "m", "realtime": 0}, "num_threads": len(histograms),
        "resolution_in_ns": 0, "thread": threads,
    }  # fmt: skip


def text_of(histograms, overflow, *, limit, summed, spaces, with_total, skip_empty):
    n = len(histograms)
    summed = summed and n >= 2
    separator = " " if spaces else "\t"
    out = ["# /dev/cpu_dma_latency set to 0us", "# Histogram"]
    for value in range(limit):
        row = [h.get(value, 0) for h in histograms]
        if skip_empty and not any(row) and value != limit - 1:
            continue
        out.append(
            f"{value:06d} " + separator.join(f"{c:06d}" for c in [*row, *([sum(row)] if summed else [])])
        )
    counts = [sum(h.values()) for h in histograms]
    everything = [
        [v for v, c in h.items() for _ in range(c)] + o for h, o in zip(histograms, overflow, strict=True)
    ]

    def line(name, values, extra=()):
        out.append(f"# {name}: " + " ".join(f"{v:05d}" for v in [*values, *(extra if summed else ())]))

    maxima = [max(e, default=0) for e in everything]
    if with_total:
        line("Total", counts, [sum(counts)])
    line("Min Latencies", [min(e, default=1_000_000) for e in everything])
    line("Avg Latencies", [sum(e) // len(e) if e else 0 for e in everything])
    line("Max Latencies", maxima, [max(maxima)])
    line("Histogram Overflows", [len(o) for o in overflow], [sum(map(len, overflow))])
    out.append("# Histogram Overflow at cycle number:")
    out += [f"# Thread {i}: 00021 00038" + (" # 00128 others" if o else "") for i, o in enumerate(overflow)]
    return "\n".join(out) + "\n\n"


measurements = st.integers(2, 40).flatmap(
    lambda limit: st.tuples(
        st.just(limit),
        st.lists(
            st.tuples(st.dictionaries(st.integers(0, limit - 1), st.integers(1, 2_000), max_size=8), st.lists(st.integers(limit, 10**5), max_size=5)),
            min_size=1, max_size=4,
        ),
    )
)  # fmt: skip


@settings(max_examples=150)
@given(
    made=measurements,
    summed=st.booleans(),
    spaces=st.booleans(),
    with_total=st.booleans(),
    skip_empty=st.booleans(),
)
def test_text_and_json_of_the_same_measurement_read_the_same(made, summed, spaces, with_total, skip_empty):
    limit, threads = made
    histograms, overflow = [h for h, _ in threads], [o for _, o in threads]
    printed = text_of(
        histograms,
        overflow,
        limit=limit,
        summed=summed,
        spaces=spaces,
        with_total=with_total,
        skip_empty=skip_empty,
    )
    (by_text,) = parse_text(enumerate(printed.splitlines(), start=1), "x", unit_ns=1000)
    by_json = parse_json(file_of(histograms, limit=limit, overflow=overflow), "x")
    assert [t.histogram for t in by_text.series] == [
        {value * 1000: count for value, count in sorted(h.items())} for h in histograms
    ]
    assert [t.overflow for t in by_text.series] == [len(o) for o in overflow]
    for text, js in zip(by_text.series, by_json.series, strict=True):
        assert (text.histogram, text.count, text.overflow, text.limit_ns, text.minimum_ns, text.maximum_ns) == (
            js.histogram, js.count, js.overflow, js.limit_ns, js.minimum_ns, js.maximum_ns,
        )  # fmt: skip


GOOD = (DATA / "histofall.txt").read_text()
GOOD_JSON = (DATA / "histogram.json").read_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("hello world\n", "none of the formats"),
        (b"\xff\xfe\x01", "none of the formats"),
        ("{", "none of the formats"),
        ("{}", "none of the formats"),
        ('{"file_version": 2}', "file_version 1"),
        ('{"file_version": 1}', "resolution_in_ns"),
        ('{"file_version": 1', "is the file cut short"),
        ("[" * 100_000, "none of the formats"),
        ('{"file_version": 1, "a":' + '{"a":' * 100_000, "cut short"),
        ('{"file_version": 1, "a":' + "[" * 900 + "]" * 900 + "}", "not valid JSON"),
        ('{"file_version": 1, "a": "\\ud800"}', "not valid JSON"),
        (GOOD[: GOOD.index("# Max")], "'# Max Latencies:' is missing"),
        (GOOD[: GOOD.index("# Histogram Over")], "'# Histogram Overflows:' is missing"),
        (GOOD.replace("000013 ", "00001x ", 1), "not a row"),
        (GOOD.replace("# Total: 000001999", "# Total: 000001998"), "says 1998"),
        (GOOD.replace("000017 000023\t000031\t000054", "000017 000023\t000031\t000055"), "not the sum"),
        (GOOD.replace("000017 000023\t000031\t000054", "000017 000023"), "columns for 2 threads"),
        (GOOD.replace("# Max Latencies: 05258", "# Max Latencies: 00098"), "its maximum is 98000"),
        (
            GOOD.replace("# Min Latencies: 00011", "# Min Latencies: 00090"),
            "extends beyond its minimum|its minimum, .* its maximum",
        ),
        ("T: 0 ( 77) P:80 I:1000 C: 200 Min: -5 Act: 15 Avg: 16 Max: 38\n", "negative latency"),
        (GOOD_JSON.replace('"cycles": 2000', '"cycles": 3', 1), "3 cycles"),
        (GOOD_JSON.replace('"cycles": 2000', '"cycles": "many"', 1), "thread.0.cycles"),
        (GOOD_JSON.replace('"avg": 14.28', '"avg": NaN', 1), "not valid JSON"),
        (
            GOOD_JSON.replace('"cycles": 2000', '"cycles": 1000000000000000000', 1),
            "1000000000000000000 samples",
        ),
        (GOOD_JSON.replace('"max": 87', '"max": 4000000000000000000', 1), "a latency of"),
    ],
)
def test_foreign_and_damaged_files_end_in_one_line(content, words, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=words) as error:
        import_file(source, tmp_path / "runs")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert error.value.status == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("interval_ns", [0, -1000, 10_000 * 86_400 * 10**9])
def test_an_interval_that_no_tool_has_is_refused(interval_ns, tmp_path):
    with pytest.raises(InputError, match="at most 24h"):
        imported(DATA / "h.txt", tmp_path, interval_ns=interval_ns)
    assert not (tmp_path / "runs").exists()


def test_a_verdict_that_would_take_centuries_fits_the_record(tmp_path):
    record = imported(DATA / "h.txt", tmp_path, interval_ns=86_400 * 10**9)
    verdict = judge(
        parse_requirement("latency<=500us hardness=99.999999%"),
        record.steps[0],
        record.windows(record.steps[0]),
    )
    assert verdict.evidence["activations_needed"] > 10**8
    assert verdict.evidence["duration_needed_ns"] is None


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        import_file(tmp_path / "none", tmp_path)


@settings(max_examples=200)
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(str.encode),
        st.text(alphabet="0123456789 \t\n#:TotalMinxLecsHgrOvfws", max_size=300).map(str.encode),
        st.tuples(
            st.sampled_from([GOOD, GOOD_JSON, (DATA / "no-histogram.txt").read_text()]),
            st.integers(0, 3000),
            st.integers(0, 50),
            st.binary(max_size=10),
        ).map(lambda t: t[0].encode()[: t[1]] + t[3] + t[0].encode()[t[1] + t[2] :]),
    )
)
def test_hostile_bytes_are_a_record_or_an_input_error(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "source").write_bytes(data)
    try:
        Record.open(import_file(folder / "source", folder))
    except InputError as error:
        assert "\n" not in str(error)


def test_the_lines_of_the_screen_with_many_samples(tmp_path):
    """-v prints a line a sample; a cycle that is not there is a mark."""
    source = tmp_path / "v.txt"
    rows = [
        f"{thread:8d}:{cycle:8d}:{latency:8d}"
        for cycle, latency in enumerate((3, 4, 4, 90))
        for thread in (0, 1)
    ]
    source.write_text("# /dev/cpu_dma_latency set to 0us\nMax CPUs = 2\n" + "\n".join(rows) + "\n")
    record = imported(source, tmp_path)
    assert [(s.count, s.min_ns, s.p50_ns, s.max_ns, s.lower_bounds) for s in record.steps[0].series] == [
        (4, 3000, 4000, 90_000, [])
    ] * 2
    assert "samples-lost" not in marks(record)
    source.write_text("\n".join(rows[:2] + rows[4:]) + "\n")
    assert "samples-lost" in marks(imported(source, tmp_path))


def test_the_summary_alone_is_a_measurement_without_quantiles(tmp_path):
    source = tmp_path / "summary.txt"
    source.write_text(
        "\n".join(line for line in (DATA / "h.txt").read_text().splitlines() if line.startswith("#")) + "\n"
    )
    record = imported(source, tmp_path)
    assert [(s.count, s.min_ns, s.max_ns) for s in record.steps[0].series] == [
        (2000, 8000, 47_000),
        (2000, 8000, 79_000),
    ]
    assert all({"p50_ns", "p99_ns", "mean_ns"} <= set(s.lower_bounds) for s in record.steps[0].series)
    assert "no-histogram" in marks(record)


def test_cyclicdeadline_is_not_cyclictest(tmp_path):
    screen = tmp_path / "deadline.txt"
    screen.write_text("T: 0 ( 6549) I:1000 C:  10000 Min:      5 Act:    9 Avg:    8 Max:      40\n")
    document = tmp_path / "deadline.json"
    document.write_text(json.dumps(file_of([{5: 10, 9: 3}]) | {"cmdline:": "cyclicdeadline -D 10s -i 1000"}))
    for record in (imported(screen, tmp_path), imported(document, tmp_path)):
        step = record.steps[0]
        assert (step.key.tool, step.key.parameters.get("policy")) == ("cyclicdeadline", "deadline")
        assert "no-real-time-priority" not in marks(record)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-p 80 -i 200", set()),
        ("-i 200", {"no-real-time-priority"}),
        ("-p 80 --policy=other", {"no-real-time-priority"}),
        ("-p 10", {"low-priority"}),
    ],
)
def test_a_low_priority_is_a_mark(options, expected, tmp_path):
    source = tmp_path / "x.json"
    source.write_text(json.dumps(file_of([{5: 10}]) | {"cmdline:": f"cyclictest {options} -h 100"}))
    record = imported(source, tmp_path)
    assert marks(record) & {"no-real-time-priority", "low-priority"} == expected
    assert "short-measurement" in marks(record)


def test_a_command_line_that_is_not_escaped_is_read(tmp_path):
    source = tmp_path / "x.json"
    text = json.dumps(file_of([{5: 10}]), indent=2)
    assert '"cyclictest -p80 -i1000 -h 100000"' in text
    source.write_text(
        text.replace(
            '"cyclictest -p80 -i1000 -h 100000"', '"cyclictest -p80 -i1000 -h 100000 --histfile="C:\\a b""'
        )
    )
    assert imported(source, tmp_path).steps[0].key.parameters.get("interval_ns") == 1_000_000
