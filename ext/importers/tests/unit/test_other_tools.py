# SPDX-License-Identifier: MIT
"""Files in the layouts of other tools, with numbers of our own: each imports to the numbers that it holds,
and its traps are marks.
"""

from __future__ import annotations

import json
import os
import struct
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ext.importers.tests.foreign_files import FILES
from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.sides import sides_of
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge.report.compare.comparison_tables import figures_grid
from rtgauge.report.presenter import step_lines
from rtgauge.report.record_page import html
from rtgauge.report.terminal_summary import print_summary
from rtgauge_ext.importers.foreign_file import MAX_LINE_BYTES
from rtgauge_ext.importers.imported_record import import_file
from rtgauge_ext.importers.registry import by_name, importer_of

CYCLICTEST = Path(__file__).parents[4] / "tests" / "data" / "cyclictest"


def imported(name: str, tmp_path: Path, content: str | bytes | None = None, **more) -> Record:
    source = tmp_path / name
    data = FILES[name] if content is None else content
    source.write_bytes(data if isinstance(data, bytes) else data.encode())
    return Record.open(import_file(source, tmp_path / "runs", **more))


def marks(record: Record, step: int = 0) -> set[str]:
    return {mark.name for mark in record.steps[step].marks}


@pytest.mark.parametrize("name", FILES)
def test_every_layout_is_found_by_its_content(name, tmp_path):
    record = imported(name, tmp_path)
    assert record.run.command[-1] == name.split(".")[0].split("+")[0]
    assert {step.worst for step in record.steps} <= {None, "note", "doubtful"}


@pytest.mark.parametrize("name", ["rtla+osnoise.txt", "xenomai.txt"])
def test_a_page_is_made_of_results_alone_and_of_seconds(name, tmp_path):
    assert "<html" in html(imported(name, tmp_path))


@pytest.mark.parametrize("source", sorted(CYCLICTEST.iterdir()), ids=lambda path: path.name)
def test_cyclictest_is_found_by_its_content(source):
    assert importer_of(source).name == ("rt-tests" if source.suffix == ".json" else "cyclictest")


def figures(record: Record, step: int = 0):
    return [(s.labels, s.metric, s.count, s.min_ns, s.max_ns) for s in record.steps[step].series]


def test_hwlatdetect_has_gaps_and_a_duty_cycle(tmp_path):
    record = imported("hwlatdetect.txt", tmp_path)
    assert figures(record) == [({"cpu": 1}, "gap", 2, 12_000, 30_000), ({"cpu": 3}, "gap", 1, 19_000, 19_000)]
    assert {"duty-cycle", "small-gaps-unknown"} <= marks(record)
    assert record.steps[0].started == "2025-01-29T14:26:40Z"


@pytest.mark.parametrize(
    "lines",
    [
        "ts: 1738161000.000000001, inner:12, outer:30\nts: 1738161100.5, inner:19, outer:0, cpu:3\n",
        "1738161000.000000001\t12\t30\n1738161100.500000000\t19\t0\n",
        (
            "ts: 1738161000.000000001, delta:nan, inner:12, outer:30, cpu:0, count:1\nts: "
            "1738161100.5, delta:100.500000, inner:19, outer:0, cpu:3, count:1\n"
        ),
        (
            "ts: 14:30:00.000000001, delta:nan, inner:12, outer:30, cpu:0\nts: Wed, 29 Jan, "
            "delta:-0.250000, inner:19, outer:0, cpu:3\n"
        ),
    ],
)
def test_older_layouts_of_hwlatdetect(lines, tmp_path):
    record = imported("hwlatdetect.txt", tmp_path, lines)
    assert sum(series.count for series in record.steps[0].series) == 2
    assert record.steps[0].total.max_ns == 30_000
    assert "duty-cycle" in marks(record)


def test_gaps_without_a_cpu_are_on_none_in_the_summary(tmp_path):
    record = imported("hwlatdetect.txt", tmp_path, "1738161000.000000001\t12\t30\n")
    out = StringIO()
    print_summary(record, Console(file=out, width=100))
    assert "30.0" in out.getvalue()
    assert not [line for line in out.getvalue().splitlines() if line.split()[-1:] == ["gap"]]


def test_what_only_newer_versions_of_hwlatdetect_print(tmp_path):
    actual = (
        "ts: 1738161000.000000001, delta:nan, inner:12, outer:30, cpu:0, count:3\nts: 1738161100.5, "
        "delta:100.5, inner:19, outer:0, cpu:3, count:1\n"
    )
    summary = (
        "Max Latency: 30us\nSamples recorded: 2\nSamples exceeding threshold: 4\nMTBF: 33.500 "
        "seconds\n2 SMIs occured on cpu 1\nSMIs during run: 2\n"
    )
    record = imported("hwlatdetect.txt", tmp_path, summary + actual)
    assert figures(record) == [({"cpu": 0}, "gap", 1, 30_000, 30_000), ({"cpu": 3}, "gap", 1, 19_000, 19_000)]
    assert record.steps[0].results[0].values == {
        "samples": 2,
        "above_threshold": 4,
        "smi": 2,
        "smi of CPU 1": 2,
        "mtbf_s": 33.5,
    }
    (mark,) = [mark for mark in record.steps[0].marks if mark.name == "samples-missing"]
    assert mark.detail.startswith("the file lacks 2 further gaps")


def test_samples_missing_from_a_hwlatdetect_file_are_counted(tmp_path):
    assert "samples-missing" in marks(
        imported(
            "hwlatdetect.txt",
            tmp_path,
            FILES["hwlatdetect.txt"].replace("Samples recorded: 3", "Samples recorded: 4"),
        )
    )


def test_jitterdebugger(tmp_path):
    record = imported("jitterdebugger.json", tmp_path)
    assert figures(record) == [
        ({"cpu": 0}, "latency", 100, 3000, 40_000),
        ({"cpu": 2}, "latency", 100, 2000, 90_000),
    ]
    # 4 of CPU 2 are in no bin: above it, the largest of them 90 us.
    assert record.steps[0].series[1].lower_bounds == ["p99_ns"]
    assert record.steps[0].series[1].p95_ns == 5000
    assert "histogram-overflow" in marks(record)
    assert record.systems["board"].kernel.release == "6.1.0-rt"


def test_jitterdebugger_behind_the_lines_of_its_screen(tmp_path):
    screen = (
        "affinity: 0,2 = 2 [0x5]\nT: 0 (  614) A: 0 C:       100 Min:         3 Avg:    3.46 Max:        40\n"
    )
    record = imported("jitterdebugger.json", tmp_path, screen + FILES["jitterdebugger.json"])
    assert figures(record) == figures(imported("jitterdebugger.json", tmp_path))


@pytest.mark.parametrize("word", [4, 8])
def test_samples_of_targets_of_either_word_size(word, tmp_path):
    time = "ii" if word == 4 else "qq"
    samples = [(cpu, 5_000 + at, 999_999_999 - at, 10 + cpu + at % 7) for at in range(200) for cpu in (0, 1)]
    raw = b"".join(struct.pack(f"<I{time}Q", *sample) for sample in samples)
    record = imported("jitterdebugger-raw.raw", tmp_path, raw)
    assert figures(record) == [
        ({"cpu": 0}, "latency", 200, 10_000, 16_000),
        ({"cpu": 1}, "latency", 200, 11_000, 17_000),
    ]
    text = "".join(f"{cpu};{second}.{ns:09d};{value}\n" for cpu, second, ns, value in samples)
    assert figures(imported("jitterdebugger-csv.csv", tmp_path, text)) == figures(record)


def test_xenomai_has_a_window_a_second(tmp_path):
    record = imported("xenomai.txt", tmp_path)
    step = record.steps[0]
    windows = record.windows(step)
    assert (windows.count.tolist(), windows.max_ns.tolist(), windows.min_ns.tolist()) == (
        [10_000] * 3,
        [8_500, 21_250, 9_000],
        [-120, 300, 310],
    )
    assert windows.sum_ns.tolist() == [21_000_000, 25_000_000, 20_000_000]
    assert {"overruns", "early", "no-histogram"} <= marks(record)
    assert step.key.parameters.values == {
        "interval_ns": 100_000,
        "priority": 99,
        "space": "kernel",
        "context": "thread",
    }


def test_the_last_cell_of_xenomai_is_clipped(tmp_path):
    record = imported("xenomai+h.txt", tmp_path)
    series = record.steps[0].series[0]
    # 95 of 100 in cells below the last, which has all that is larger, up to 21.25 us.
    assert (series.count, series.min_ns, series.p95_ns, series.max_ns) == (100, 300, 2_000, 21_250)
    assert {"p99_ns"} <= set(series.lower_bounds)
    assert "last-bin-clipped" in marks(record)


def test_xenomai_for_gnuplot_counts_one_more_in_each_cell(tmp_path):
    record = imported("xenomai-gnuplot.txt", tmp_path)
    series = record.steps[0].series[0]
    assert (series.count, series.min_ns, series.p50_ns, series.max_ns) == (9 + 80 + 9, 850, 1_000, 3_900)
    assert "counts-plus-one" in marks(record)


def test_latmus(tmp_path):
    record = imported("latmus-gnuplot.txt", tmp_path)
    series = record.steps[0].series[0]
    assert (series.labels, series.count, series.min_ns, series.p50_ns, series.max_ns) == (
        {"cpu": 1},
        1000,
        1_443,
        2_000,
        410_500,
    )
    assert {"last-bin-clipped", "overruns"} <= marks(record)
    assert record.steps[0].key.parameters.values == {
        "interval_ns": 1_000_000,
        "priority": 98,
        "space": "user",
        "c_states": "restricted",
    }
    assert figures(imported("latmus.txt", tmp_path)) == [({"cpu": 1}, "latency", 2000, 1_100, 9_000)]


def test_rteval_mixes_the_quantities_of_timerlat(tmp_path):
    record = imported("rteval.xml", tmp_path)
    assert [step.key.tool for step in record.steps] == ["rteval cyclictest", "rteval timerlat"]
    assert figures(record) == [
        ({"cpu": 0}, "latency", 100, 2000, 20_000),
        ({"cpu": 1}, "latency", 50, 3000, 3000),
    ]
    assert "quantities-mixed" not in marks(record)
    assert figures(record, 1) == [({"cpu": 0}, "latency", 30, 1000, 9000)]
    assert {"quantities-mixed", "overflow-unknown"} <= marks(record, 1)
    assert record.steps[1].results[0].labels == {"cpu": "0"}
    assert record.systems["board"].kernel.preemption.model == "PREEMPT_RT"


def test_oslat_counts_its_own_loop_and_clips(tmp_path):
    record = imported("rt-tests+oslat.json", tmp_path)
    series = record.steps[0].series[0]
    assert (record.steps[0].key.probe, series.metric, series.count, series.min_ns, series.max_ns) == (
        "noise",
        "gap",
        1_000_109,
        1000,
        45_000,
    )
    assert {"loop-in-first-bin", "last-bin-clipped"} <= marks(record)


@pytest.mark.parametrize("tool", ["pmqtest", "ptsematest", "sigwaittest", "svsematest"])
def test_pairs_of_sender_and_receiver(tool, tmp_path):
    content = FILES["rt-tests+pmqtest.json"].replace("pmqtest", tool)
    record = imported("rt-tests+pmqtest.json", tmp_path, content)
    assert record.steps[0].key.probe == tool
    assert figures(record) == [({"cpu": 1}, "latency", 5000, 2000, 60_000)]


def test_results_that_are_no_distribution(tmp_path):
    assert imported("rt-tests+pi_stress.json", tmp_path).steps[0].results[0].values == {"inversions": 0}
    migrate = imported("rt-tests+migrate.json", tmp_path).steps[0]
    assert (migrate.key.probe, migrate.results[0].labels, migrate.results[0].values["max_us"]) == (
        "rt-migrate-test",
        {"thread": 0, "priority": 2},
        60.0,
    )


def test_signaltest(tmp_path):
    assert figures(imported("rt-tests+signaltest.json", tmp_path)) == [
        ({"cpu": 0}, "latency", 300, 4000, 70_000)
    ]


def test_what_another_tool_found_is_in_the_lines_of_its_step(tmp_path):
    step = imported("rteval.xml", tmp_path).steps[1]
    assert "x, explanation, cpu 0: worker" in step_lines([step], {step.id: "x"})


def test_different_methods_are_refused_or_listed(tmp_path):
    first = imported("xenomai-gnuplot.txt", tmp_path)
    slower = imported(
        "xenomai-gnuplot.txt",
        tmp_path,
        FILES["xenomai-gnuplot.txt"].replace("100 us period", "200 us period"),
    )
    with pytest.raises(InputError, match="interval"):
        sides_of([first, slower])
    lower = imported(
        "xenomai-gnuplot.txt", tmp_path, FILES["xenomai-gnuplot.txt"].replace("priority 99", "priority 20")
    )
    sides = sides_of([first, lower])
    result = compare(sides, pairs(sides, None), ComparisonOptions(intervals=False))
    reported = any("priority: 99" in note and "20 (" in note for note in figures_grid(result).notes)
    assert reported or {side.label for side in sides} == {"priority 99", "priority 20"}


def test_the_space_of_another_tool_is_that_of_rtgauge(tmp_path):
    """latency's three tasks, and user beside kernel space as sides of their own."""
    text = FILES["xenomai-gnuplot.txt"]
    words = {
        "periodic user-mode task": ("user", None),
        "in-kernel periodic task": ("kernel", "thread"),
        "in-kernel timer handler": ("kernel", "irq"),
    }
    records = [
        imported("xenomai-gnuplot.txt", tmp_path, text.replace("periodic user-mode task", word))
        for word in words
    ]
    keys = [record.steps[0].key for record in records]
    assert [(key.space, key.parameters.get("context")) for key in keys] == list(words.values())
    assert [side.traits["space"] for side in sides_of(records)] == [
        "user space",
        "kernel space",
        "kernel space",
    ]
    assert [side.traits["parameters"] for side in sides_of(records[:2])] == ["default parameters"] * 2


def test_what_is_no_regular_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match=r"not a regular file|Is a directory"):
            import_file(path, tmp_path / "runs")


def test_one_endless_line_takes_no_memory(tmp_path):
    source = tmp_path / "line"
    with source.open("wb") as file:
        file.write(b"# Histogram\n")
        file.truncate(1 << 30)
    with pytest.raises(InputError, match=f"longer than {MAX_LINE_BYTES >> 10} KiB"):
        import_file(source, tmp_path / "runs", form="cyclictest")
    for form in ("rt-tests", "rteval", "jitterdebugger"):
        with pytest.raises(InputError, match="larger than"):
            import_file(source, tmp_path / "runs", form=form)


def test_a_document_with_entities_is_refused(tmp_path):
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">]><rteval>&a;</rteval>'
    with pytest.raises(InputError, match="document type"):
        imported("rteval.xml", tmp_path, bomb)
    with pytest.raises(InputError, match="deep"):
        imported("rteval.xml", tmp_path, "<rteval>" + "<a>" * 500)


def test_an_unknown_format_names_the_nearest(tmp_path):
    with pytest.raises(InputError, match="rteval"):
        imported("rteval.xml", tmp_path, form="rtevall")


ALL = [
    (name.split(".")[0].split("+")[0], data if isinstance(data, bytes) else data.encode())
    for name, data in FILES.items()
]
SPOILERS = (b"-", b"9" * 18, b"1e999", b"\x1b[2J", b"{", b"\n", b"0", b"")
EDITS = st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=6) | st.sampled_from(SPOILERS))
KEYS = st.sampled_from(["cpu", "thread", "0", "histogram", "file_version", "min"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
EXAMPLES = 3000 if os.environ.get("RTGAUGE_NIGHTLY") else 150


def read_or_refused(folder: Path, data: bytes, form: str | None) -> None:
    """A record with a page, or one line of error."""
    (folder / "source").write_bytes(data)
    try:
        record = Record.open(import_file(folder / "source", folder, form=form))
        assert record.steps
    except InputError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 600


@settings(max_examples=EXAMPLES)
@given(which=st.sampled_from(ALL), edits=st.lists(EDITS, max_size=4), forced=st.booleans())
def test_damaged_files_are_a_record_or_one_line(which, edits, forced, tmp_path_factory):
    name, data = which
    for at, length, replacement in edits:
        start = int(at * len(data))
        data = data[:start] + replacement + data[start + length :]
    read_or_refused(tmp_path_factory.mktemp("damaged"), data, name if forced else None)


@settings(max_examples=EXAMPLES // 2)
@given(
    name=st.sampled_from(sorted(by_name())),
    data=st.binary(max_size=300) | DOCUMENTS.map(lambda value: json.dumps(value).encode()),
)
def test_any_bytes_forced_to_any_format(name, data, tmp_path_factory):
    read_or_refused(tmp_path_factory.mktemp("forced"), data, name)
