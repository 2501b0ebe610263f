# SPDX-License-Identifier: MIT
"""`rtgauge import edges`: a file from an oscilloscope becomes a record like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rtgauge.errors import InputError
from rtgauge.record.model import Severity
from rtgauge.record.reader import Record
from rtgauge.report.record_page import html
from rtgauge_ext.importers.import_edges import EdgeOptions, import_edges
from rtgauge_ext.instrument.messages import Edges

STEP_NS = 100


def _write(
    path: Path, responses_ns: list[int], *, missing: tuple[int, ...] = (), extra_at_ns: int | None = None
) -> list[int]:
    """A CSV, a stimulus each 50 us, also before time 0 (the trigger); gives the times
    of the stimuli.
    """
    count = (len(responses_ns) + 1) * 500
    times = (np.arange(count) - 1000) * STEP_NS
    stimulus, answer = np.zeros(count), np.zeros(count)
    at: list[int] = []
    level = 0
    for i, response_ns in enumerate(responses_ns):
        begin = (i + 1) * 500 - 250
        stimulus[begin:] = level = 1 - level
        at.append(int(times[begin]))
        if i not in missing:
            answer[begin + response_ns // STEP_NS :] = level
    if extra_at_ns is not None:
        place = int(np.searchsorted(times, extra_at_ns))
        answer[place : place + 3] = 1 - answer[place]
    rows = "\n".join(
        f"{t / 1e9:.9f},{s:.0f},{a:.0f}" for t, s, a in zip(times, stimulus, answer, strict=True)
    )
    path.write_text(f"time_s,CH1,CH2\n{rows}\n")
    return at


def _record(path: Path, options: EdgeOptions) -> Record:
    return Record.open(
        import_edges(path, path.parent / "runs", options, command=["rtgauge", "import", "edges", str(path)])
    )


def test_responses_become_a_record_with_windows_and_outliers(tmp_path):
    responses = [5_000, 7_000, 6_000, 20_000, 8_000]
    at = _write(tmp_path / "scope.csv", responses)
    record = _record(tmp_path / "scope.csv", EdgeOptions("CH1", "CH2"))
    (step,) = record.steps
    assert step.total is not None
    assert (step.total.metric, step.total.count, step.total.missed, step.total.min_ns, step.total.max_ns) == (
        "response",
        5,
        0,
        5_000,
        20_000,
    )
    assert step.total.mean_ns == pytest.approx(np.mean(responses))
    assert step.total.std_ns == pytest.approx(np.std(responses, ddof=1))
    assert step.outliers[0].value_ns == 20_000
    assert abs(step.outliers[0].time_ns - at[3]) <= STEP_NS
    assert [mark.severity for mark in step.marks] == ["note"]
    assert step.tool == "oscilloscope (CSV)"
    assert record.windows(step).count.sum() == 5
    assert "response" in html(record)


def test_overtaken_stimuli_are_missed_and_extra_edges_marked(tmp_path):
    _write(tmp_path / "scope.csv", [5_000] * 6, missing=(1, 2), extra_at_ns=90_000)
    (step,) = _record(tmp_path / "scope.csv", EdgeOptions("CH1", "CH2")).steps
    assert step.total is not None
    assert step.total.missed == 2
    assert step.total.filled.count == step.total.count + 2
    assert step.total.filled.max_ns is not None
    assert step.total.filled.max_ns >= 50_000
    assert "extra-edges" in {mark.name for mark in step.marks}


@pytest.mark.parametrize(
    ("edges", "count", "nominal_ns"), [(Edges.BOTH, 9, 50_000), (Edges.RISING, 4, 100_000)]
)
def test_jitter_of_half_and_whole_periods_is_against_the_nominal(tmp_path, edges, count, nominal_ns):
    _write(tmp_path / "scope.csv", [5_000] * 10)
    (step,) = _record(tmp_path / "scope.csv", EdgeOptions("CH1", period_ns=100_000, edges=edges)).steps
    assert step.total is not None
    assert (step.key.probe, step.total.metric, step.total.count, step.total.min_ns, step.total.max_ns) == (
        "periodic",
        "jitter",
        count,
        0,
        0,
    )
    assert nominal_ns == EdgeOptions("CH1", period_ns=100_000, edges=edges).nominal_ns


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (EdgeOptions("CH1"), "give --answer"),
        (EdgeOptions("CH1", "CH2", period_ns=5), "leave out"),
        (EdgeOptions("CH1", "CH1"), "same channel"),
        (EdgeOptions("CH1", "3"), "the channel '3'; choose from CH1, CH2"),
        (EdgeOptions("CH1", period_ns=10, any_edge_answers=True), "--any-edge"),
    ],
)
def test_what_cannot_be_is_refused_and_no_record_begun(tmp_path, options, words):
    _write(tmp_path / "scope.csv", [5_000] * 3)
    with pytest.raises(InputError, match=words):
        _record(tmp_path / "scope.csv", options)
    assert not (tmp_path / "runs").exists()


def test_swapped_channels_give_answers_to_the_previous_stimulus(tmp_path):
    (tmp_path / "one.csv").write_text(
        "time_s,CH1,CH2\n" + "".join(f"{i}e-6,{int(i > 50)},{int(i > 40)}\n" for i in range(100))
    )
    with pytest.raises(InputError, match="did you swap the two channels"):
        _record(tmp_path / "one.csv", EdgeOptions("CH1", "CH2"))


def test_an_inverted_answer_names_the_option(tmp_path):
    rows = "".join(f"{i}e-6,{int(i // 10 % 2)},{int(1 - (i - 3) // 10 % 2)}\n" for i in range(200))
    (tmp_path / "one.csv").write_text("time_s,CH1,CH2\n" + rows)
    with pytest.raises(InputError, match="--any-edge"):
        _record(tmp_path / "one.csv", EdgeOptions("CH1", "CH2"))
    (step,) = _record(tmp_path / "one.csv", EdgeOptions("CH1", "CH2", any_edge_answers=True)).steps
    assert step.total is not None
    assert (step.total.p50_ns, step.total.missed) == (3_000, 0)


def test_one_mark_names_the_lost_toggle_and_the_option(tmp_path):
    """The terminal shows the begin of a mark."""
    rows = "".join(
        f"{i}e-6,{int(i // 10 % 2)},{int((i - 3) // 10 % 2 ^ (i >= 103))}\n" for i in range(5, 200)
    )
    (tmp_path / "one.csv").write_text("time_s,CH1,CH2\n" + rows)
    (step,) = _record(tmp_path / "one.csv", EdgeOptions("CH1", "CH2")).steps
    doubts = {mark.name: mark.detail for mark in step.marks if mark.severity is Severity.DOUBTFUL}
    assert doubts.keys() == {"answers-inverted"}
    assert "--any-edge" in doubts["answers-inverted"][:45]


@pytest.mark.parametrize("half_us", [40, 50])
def test_a_page_of_half_periods_that_are_all_early_or_exact(tmp_path, half_us):
    (tmp_path / "one.csv").write_text(
        "time_s,D0\n" + "".join(f"{i * half_us}e-6,{i % 2}\n" for i in range(300))
    )
    record = _record(tmp_path / "one.csv", EdgeOptions("D0", period_ns=100_000))
    assert record.steps[0].total.max_ns == (half_us - 50) * 1000
    assert "jitter" in html(record)


def test_times_of_another_unit_are_refused(tmp_path):
    (tmp_path / "far.csv").write_text(
        "time_s,CH1\n" + "".join(f"{i * 10**7},{int(i % 2)}\n" for i in range(30))
    )
    with pytest.raises(InputError, match="more than a year"):
        _record(tmp_path / "far.csv", EdgeOptions("CH1", period_ns=1000))


GROWS = """
import resource, sys
from pathlib import Path
from rtgauge_ext.importers.import_edges import EdgeOptions, import_edges
from rtgauge_ext.instrument.edge_file import EdgeFile
EdgeFile.edges.__kwdefaults__["block_bytes"] = 1 << 20
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import_edges(Path(sys.argv[1]), Path(sys.argv[1]).parent / "runs", EdgeOptions("CH1", "CH2"), command=["x"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_file_of_eight_times_the_size_takes_no_more_memory(tmp_path):
    _write(tmp_path / "period.csv", [5_000, 6_000] * 150)
    lines = (tmp_path / "period.csv").read_text().splitlines()[1:]
    rows = [line.split(",", 1)[1] for line in lines]
    grown: list[int] = []
    for name, repeats in (("small.csv", 1), ("large.csv", 8)):
        with (tmp_path / name).open("w") as file:
            file.write("time_s,CH1,CH2\n")
            for repeat in range(repeats):
                file.write(
                    "".join(f"{(repeat * len(rows) + i) * 1e-7:.7f},{row}\n" for i, row in enumerate(rows))
                )
        completed = subprocess.run(
            [sys.executable, "-c", GROWS, str(tmp_path / name)], capture_output=True, text=True, check=True
        )
        grown.append(int(completed.stdout))
    # Of 4 and 29 MB, read in blocks of 1 MB; the allocator's moods are some MB.
    assert grown[1] < grown[0] + 20_000
