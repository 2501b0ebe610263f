# SPDX-License-Identifier: MIT
"""What a tool says of the whole wins where the rows of its file do not cover it, and what they contradict is
said.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.messages import missing

from ext.importers.tests.foreign_files import FILES, rt_tests
from rtgauge.errors import InputError
from rtgauge.exporters.junit import junit
from rtgauge.record.model import SeriesSummary, Step, Verdict, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.report.figure_data import Source
from rtgauge.report.record_conclusion import exposure_text
from rtgauge.report.record_page import figures
from rtgauge.report.record_view import RecordView
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import exposure_of
from rtgauge_ext.importers.imported_record import import_file
from rtgauge_ext.papers.frequency.frequency import gather
from rtgauge_ext.papers.frequency.frequency_tables import frequency_grids, frequency_sentence


def imported(tmp_path: Path, text: str, **more) -> Record:
    source = tmp_path / "source"
    source.write_text(text)
    return Record.open(import_file(source, tmp_path / "runs", **more))


def only(record: Record) -> tuple[Step, SeriesSummary]:
    (step,) = record.steps
    (series,) = step.series
    return step, series


def marks(step: Step) -> dict[str, str]:
    return {mark.name: mark.severity.value for mark in step.marks}


def verdict(record: Record, text: str) -> Verdict:
    (step,) = record.steps
    return judge(parse_requirement(text), step, record.windows(step))


HEAD = "== Sampling period: 100 us\n== Test mode: periodic user-mode task\n"
RTT = "RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n"
ROW = "RTD|      0.310|      2.000|      4.930|       0|     0|      0.310|      4.930\n"
WHOLE = "RTS|      0.200|      2.500|    900.000|       3|     1|    00:10:00/00:10:00\n"


@pytest.mark.parametrize(
    "text", [RTT + ROW * 3 + WHOLE, HEAD + WHOLE], ids=["seconds missing", "the last line alone"]
)
def test_the_last_line_of_latency_is_the_whole(text, tmp_path):
    record = imported(tmp_path, text)
    step, series = only(record)
    assert (series.count, series.min_ns, series.max_ns, series.mean_ns) == (6_000_000, 200, 900_000, 2_500)
    assert {"overruns", "mode-switches"} <= marks(step).keys()
    assert verdict(record, "latency<=100us").word is VerdictWord.FAILS
    exported = junit(record).decode()
    assert "missed unknown, max 900.000 us" in exported, "latency says that some were, and not how late"
    assert "p99.9 at least" in exported, "no quantile is known"


def test_the_exposure_is_as_long_as_the_tool_measured(tmp_path):
    record = imported(tmp_path, HEAD + WHOLE)
    (step,) = record.steps
    requirement = parse_requirement("latency<=1ms")
    exposure = exposure_of(requirement, [(step, judge(requirement, step, record.windows(step)))], record.run)
    assert exposure is not None
    assert exposure.measured_s == 600
    assert exposure.next_s is not None
    assert exposure.next_s > 0


def test_an_exposure_of_unknown_length_says_so(tmp_path):
    record = imported(tmp_path, HEAD + WHOLE)
    (step,) = record.steps
    step = step.model_copy(update={"parameters": {**step.parameters, "duration_ns": None}})
    requirement = parse_requirement("latency<=1ms")
    exposure = exposure_of(requirement, [(step, judge(requirement, step, record.windows(step)))], record.run)
    assert exposure is not None
    assert exposure.next_s is None
    assert "an unknown time" in exposure_text(exposure)


def test_every_second_is_kept_where_they_are_the_whole(tmp_path):
    record = imported(tmp_path, FILES["xenomai.txt"])
    assert len(record.windows(record.steps[0])) == 3
    assert "seconds-missing" not in marks(record.steps[0])


def test_the_extremes_so_far_are_those_of_lines_that_are_missing(tmp_path):
    step, series = only(imported(tmp_path, RTT + ROW + ROW.replace("4.930\n", "77.000\n")))
    assert (series.count, series.max_ns, series.mean_ns) == (20_000, 77_000, None)
    assert marks(step)["seconds-missing"] == "doubtful"


def test_the_last_line_alone_needs_a_period(tmp_path):
    with pytest.raises(InputError, match="--interval"):
        imported(tmp_path, WHOLE)
    step, series = only(imported(tmp_path, WHOLE, interval_ns=200_000))
    assert series.count == 3_000_000
    assert "tool-assumed" in marks(step)


def test_the_screen_of_latmus_is_known_by_its_table(tmp_path):
    text = RTT.replace(
        "periodic user-mode task, 100 us period, priority 99",
        "user, 1000 us period, priority 98, CPU1-noisol",
    )
    step, series = only(imported(tmp_path, "warming up on CPU1 (not isolated)...\n" + text + ROW * 3 + WHOLE))
    assert (step.key.tool, series.labels, series.max_ns, series.count) == (
        "evl latmus",
        {"cpu": 1},
        900_000,
        600_000,
    )


def test_latency_with_a_histogram_has_its_own_average(tmp_path):
    _, series = only(
        imported(
            tmp_path,
            FILES["xenomai+h.txt"].replace("RTS|      0.300|      2.100", "RTS|      0.300|      2.345"),
        )
    )
    assert series.mean_ns == 2_345
    _, series = only(imported(tmp_path, FILES["xenomai-gnuplot.txt"]))
    assert (series.mean_ns, series.min_ns, series.p50_ns) == (1_300, 850, 1_000)


def test_latmus_for_gnuplot(tmp_path):
    """The average is latmus' own; the least cell begins below the minimum; newer versions count one more."""
    text = (
        FILES["latmus-gnuplot.txt"]
        .replace("1 100\n2 890\n", "1 890\n2 100\n")
        .replace("avg latency: 2.801", "avg latency: 4.801")
    )
    _, series = only(imported(tmp_path, text))
    assert (series.min_ns, series.p50_ns, series.mean_ns) == (1_443, 1_443, 4_801)
    newer = text.replace("1 890\n2 100\n3 0\n", "1 891\n2 101\n3 1\n")
    step, plus_one = only(imported(tmp_path, newer))
    assert (plus_one.count, plus_one.p50_ns, plus_one.p95_ns) == (series.count, series.p50_ns, series.p95_ns)
    assert "counts-plus-one" in marks(step)


WIDE = """# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 02:00:00
Index   Thr-000
0            80
5            15
10            5
over:         0
count:      100
min:          3
avg:          4
max:         12
"""


def test_rtla_with_wide_bins_keeps_its_average_and_minimum(tmp_path):
    _, series = only(imported(tmp_path, WIDE))
    assert (series.min_ns, series.p50_ns, series.mean_ns, series.max_ns) == (3_000, 3_000, 4_000, 12_000)
    assert "mean_ns" in series.lower_bounds, "it is cut to whole us"


def cyclic(**thread: object) -> str:
    return rt_tests(
        "cyclictest -m -p95 -i500 -h400 -q --json=x",
        num_threads=1,
        resolution_in_ns=0,
        thread={"0": {"cpu": 2, "node": 0, **thread}},
    )


def test_an_average_that_contradicts_the_histogram_is_marked(tmp_path):
    """Of 40,000 cycles 16,000 are in the histogram: were the others above its end, the average would be 240
    us or more.
    """
    record = imported(
        tmp_path, cyclic(histogram={"1": 8000, "3": 8000}, cycles=40_000, min=1, max=450, avg=2.0)
    )
    step, series = only(record)
    assert marks(step)["average-contradicts"] == "doubtful"
    assert series.p50_ns is not None
    assert series.p50_ns < 400_000, "nobody knows where the others are"
    assert "p50_ns" in series.lower_bounds
    assert verdict(record, "latency<=500us").word is VerdictWord.MARGINAL
    assert "may have any smaller value" in next(
        mark.detail for mark in step.marks if mark.name == "histogram-overflow"
    )
    descriptions = {
        figure.name: " ".join(figure.notes) for figure in figures(Source.of(RecordView(record))).values()
    }
    assert "the curve is an upper bound" in descriptions["exceedance"]
    assert not missing(descriptions["histogram"], "Not drawn", "24,000")


def test_frequencies_of_samples_in_no_bin_are_bounds(tmp_path):
    """Of 40,000 samples 16,000 lie at 1 and 3 us, the others anywhere: the median and 95 % of all may be
    anything from 1 to 450 us.
    """
    (table,) = gather(
        [imported(tmp_path, cyclic(histogram={"1": 8000, "3": 8000}, cycles=40_000, min=1, max=450, avg=2.0))]
    )
    lateness, frequency = frequency_grids([table])
    assert lateness.rows[0][-3:] == ["≤450.0", "≤450.0", "450.0"]
    assert frequency.rows[0][1:] == ["≥1.11 kHz", "1.11 kHz to 167 kHz", "1.11 kHz"]
    assert any(note.startswith("≤: ") for note in lateness.notes)
    assert "up to at least 1.11 kHz by 95 %" in str(frequency_sentence([table]))


@pytest.mark.parametrize("average", [1.0, 2.0, 2.9, 3.0])
def test_an_average_within_what_the_histogram_allows_is_none(average, tmp_path):
    step, _ = only(
        imported(tmp_path, cyclic(histogram={"1": 200, "3": 200}, cycles=400, min=1, max=3, avg=average))
    )
    # Of whole us each may be up to 999 ns more.
    assert ("average-contradicts" in marks(step)) == (average == 1.0)


def test_cyclictest_that_stopped_at_its_limit_and_counted_smis(tmp_path):
    text = cyclic(histogram={"1": 200}, cycles=201, min=1, max=450, avg=3.23, smi_count=7).replace(
        "-h400", "-h400 -b 300 --smi"
    )
    step, _ = only(imported(tmp_path, text))
    assert "stopped-at-threshold" in marks(step)
    assert [(result.name, result.labels, result.values) for result in step.results] == [
        ("smi", {"thread": 0}, {"smi": 7})
    ]
    step, _ = only(imported(tmp_path, text.replace("-b 300", "-b 900")))
    assert "stopped-at-threshold" not in marks(step)
    rows = (
        "000004 000010\n# Total: 000000010\n# Min Latencies: 00004\n# Avg Latencies: 00004\n# Max "
        "Latencies: 00004\n# Histogram Overflows: 00000\n"
    )
    step, _ = only(
        imported(
            tmp_path,
            f"# Histogram\n{rows}# SMIs: 00012\n# Thread Ids: 05123\n# Break thread: 5123\n# Break "
            "value: 310\n",
        )
    )
    assert "310 us" in next(mark.detail for mark in step.marks if mark.name == "stopped-at-threshold")
    assert [result.values for result in step.results if result.name == "smi"] == [{"smi": 12}]
    line = "T: 0 ( 5123) P:80 I:1000 C:    200 Min:     12 Act:   15 Avg:   16 Max:      38 SMI:       9\n"
    step, _ = only(imported(tmp_path, line))
    assert [result.values for result in step.results] == [{"smi": 9}]


def test_the_widths_of_a_line_show_the_unit(tmp_path):
    line = "T: 0 ( 5123) P:80 I:1000 C:    200 Min:   1204 Act:    2015 Avg:    3016 Max:  663000\n"
    step, series = only(imported(tmp_path, line))
    assert (series.max_ns, marks(step).get("unit-assumed")) == (663_000, None)
    line = "T: 0 ( 5123) P:80 I:1000 C:    200 Min:     12 Act:   15 Avg:   16 Max:      38\n"
    step, series = only(imported(tmp_path, line))
    assert (series.max_ns, marks(step).get("unit-assumed")) == (38_000, None)
    copied = "T: 0 (5123) P:80 I:1000 C: 200 Min: 12 Act: 15 Avg: 16 Max: 38\n"
    assert "unit-assumed" in marks(only(imported(tmp_path, copied))[0])
    with pytest.raises(InputError, match="give --ns, otherwise --us"):
        imported(tmp_path, "T: 0 (5123) P:80 I:1000 C: 200 Min: 1204 Act: 2015 Avg: 3016 Max: 663000\n")


def test_hwlatdetect_says_its_largest_itself(tmp_path):
    head = FILES["hwlatdetect.txt"].partition("ts:")[0]
    columns = "1738160800.0346151918\t12\t0\n1738161400.0550312752\t0\t30\n1738167900.0549331178\t19\t18\n"
    step, series = only(imported(tmp_path, head + columns))
    assert (series.count, series.max_ns, "samples-missing" in marks(step)) == (3, 30_000, False)
    record = imported(tmp_path, head)
    step, series = only(record)
    assert (series.count, series.min_ns, series.max_ns) == (3, 10_000, 30_000)
    assert "min_ns" in series.lower_bounds
    assert marks(step)["samples-missing"] == "doubtful"
    record = imported(tmp_path, head + columns.partition("\n")[0] + "\n")
    assert [part.max_ns for part in record.steps[0].series] == [12_000, 30_000]


def test_missed_activations_that_nobody_counted_are_not_0(tmp_path):
    record = imported(tmp_path, FILES["rteval.xml"])
    step = record.steps[-1]
    assert marks(step)["missed-unknown"] == "note"
    assert "missed unknown" in junit(Record(record.path, record.run, [step], record.systems)).decode()
    assert json.loads(step.model_dump_json())["total"]["missed"] == 0, "the record has a number, and the mark"
