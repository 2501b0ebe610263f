# SPDX-License-Identifier: MIT
"""What a comparison concludes, what its sides are called, and what it must not claim."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.comparison_conclusion import ComparisonConclusion, conclude
from rtgauge.analysis.comparison_document import Comparison, ComparisonFinding, QuantileDifference
from rtgauge.analysis.record_names import record_names, system_name
from rtgauge.analysis.sides import Scope, Side, sides_of
from rtgauge.cli.main import main
from rtgauge.cli.record_argument import open_records
from rtgauge.errors import InputError
from rtgauge.record.merged_windows import merge
from rtgauge.record.reader import Record
from tests.support.messages import missing
from tests.support.records import Shape, write_record
from tests.unit.windows import row, windows_of

TRAITS = dict.fromkeys(("host", "kernel", "load", "deployment", "space", "tool", "parameters"), "") | {
    "processor": "not emulated",
    "deployment": "as-is",
}


def side_of(label: str, windows: list[np.ndarray], record: Record, *, rows: list[dict] | None = None) -> Side:
    """A side of these latencies (ns), one array a window."""
    columns = windows_of(*(rows or [row(values, index=i) for i, values in enumerate(windows)]))
    traits, run = {**TRAITS, "deployment": label}, np.zeros(len(columns), dtype=np.int64)
    steps = tuple(record.steps[:1])
    return Side(label, (record,), steps, traits, columns, columns.index, run, merge(columns), 1)


@pytest.fixture(name="record", scope="module")
def a_record(tmp_path_factory) -> Record:
    return Record.open(write_record(tmp_path_factory.mktemp("runs"), Shape(seconds=1, loads=("idle",))))


def body(seed: int, *, shift: float = 0, windows: int = 60) -> list[np.ndarray]:
    return list(
        np.random.default_rng(seed).lognormal(np.log(6_000), 0.2, (windows, 500)).astype(np.int64)
        + int(shift)
    )


def compared(sides: list[Side], **options) -> Comparison:
    return compare(sides, [(side, sides[0]) for side in sides[1:]], ComparisonOptions(**options))


# --- many sides


def test_the_papers_eighteen_sides_show_their_one_difference(record):
    sides = [side_of(f"side {n}", body(n, shift=1_500 if n == 11 else 0), record) for n in range(18)]
    result = compared(sides, within_ns=200)
    shown = {row.side for row in result.quantiles if row.quantile == "p50" and "differs" in row.says}
    assert shown == {"side 11"}
    assert any(row.says.startswith("the same within") for row in compared(sides).quantiles)
    assert "1 higher: side 11 (+1." in result.conclusion


# --- the width of bins


@pytest.mark.parametrize(
    ("at_ns", "bin_ns", "within_ns"), [(60_000, 500, 100), (60_000, 500, 300), (15_000_000, 100_000, 50_000)]
)
def test_nothing_is_the_same_within_less_than_a_bin(record, at_ns, bin_ns, within_ns):
    """The truth is 4/5 of a bin apart; all samples are in the same bin."""
    low, high = (
        side_of(name, [np.full(2_000, at_ns + offset)] * 40, record)
        for name, offset in (("a", 0), ("b", bin_ns * 4 // 5))
    )
    result = compared([low, high], within_ns=within_ns)
    for quantile in result.quantiles[:3]:
        assert quantile.no_interval is None
        assert quantile.bin_ns == bin_ns
        assert "the same" not in quantile.says
        assert quantile.low_ns is not None
        assert quantile.high_ns is not None
        assert quantile.low_ns <= bin_ns * 4 // 5 <= quantile.high_ns
    wide = compared([low, high], within_ns=bin_ns)
    assert all(quantile.says.startswith("the same") for quantile in wide.quantiles[:3])


# --- lower bounds


def overflowed(label: str, record: Record, above: int) -> Side:
    """A sample of 1,000 of which `above` are somewhere above 400 us, as other tools' histograms end."""
    values = np.full(1_000 - above, 5_000)
    rows = [{**row(values), "count": 1_000, "max_ns": 900_000}]
    return replace(
        side_of(label, [], record, rows=rows),
        merged=merge(windows_of(*rows), limits_ns={0: 400_000}),
    )


def test_a_lower_bound_is_no_figure(record):
    result = compared([side_of("whole", [np.full(1_000, 5_000)], record), overflowed("cut", record, 20)])
    by_quantile = {row.quantile: row for row in result.quantiles}
    assert not by_quantile["p50"].side_is_at_least
    assert by_quantile["p50"].difference_ns is not None
    assert by_quantile["p99"].side_is_at_least
    assert by_quantile["p99"].side_ns == 400_000
    assert by_quantile["p99"].difference_ns is None
    from rtgauge.report.compare.comparison_tables import quantile_grid

    cells = {line[1]: line for line in quantile_grid(result).rows}
    assert cells["p99"][2:5] == ["≥400.0", "5.0", "–"]
    assert "p99 unknown" in result.conclusion


# --- the sentence


def difference(
    quantile: str,
    ns: int | None,
    *,
    side="after",
    baseline="before",
    p=(1.0, 1.0, 1.0),
    why=None,
    runs=(3, 3),
) -> QuantileDifference:
    different, not_within, not_beyond = p if why is None else (None, None, None)
    return QuantileDifference(
        side=side, baseline=baseline, quantile=quantile, side_runs_ns=[0] * runs[0],
        baseline_runs_ns=[0] * runs[1],
        side_ns=10_000 + (ns or 0), baseline_ns=10_000, difference_ns=ns, no_interval=why,
        low_ns=None if ns is None else ns - 1_000, high_ns=None if ns is None else ns + 1_000,
        p_different=different, p_not_within=not_within,
        p_not_beyond=not_beyond, says="",
    )  # fmt: skip


BEYOND, DIFFERENT, SAME = (0.001, 1.0, 0.001), (0.001, 1.0, 1.0), (1.0, 0.001, 1.0)


@pytest.mark.parametrize(
    ("rows", "outcome", "sentence", "values"),
    [
        (
            [
                difference("p50", 100, p=SAME),
                difference("p99", 3_000, p=DIFFERENT),
                difference("p99.9", 12_300, p=BEYOND),
            ],
            "worse",
            (
                "after: p99.9 under cpu 2.2 times as large (+12.3 us, 95 %: +11.3 us to +13.3 us); +3.00 us "
                "at p99; the same within 2 us at p50"
            ),
            "p99.9: before 10.0 us -> after 22.3 us",
        ),
        (
            [difference("p50", -3_000, p=BEYOND)],
            "better",
            "after: p50 under cpu 30 % smaller (-3.00 us, 95 %: -4.00 us to -2.00 us)",
            "p50: before 10.0 us -> after 7.00 us",
        ),
        (
            [difference("p50", -3_000, p=BEYOND), difference("p99", 5_000, p=BEYOND)],
            "worse and better",
            ("after: p99 under cpu 50 % larger (+5.00 us, 95 %: +4.00 us to +6.00 us); -3.00 us at p50"),
            "p99: before 10.0 us -> after 15.0 us",
        ),
        (
            [difference("p50", 0, p=SAME), difference("p99", 0, p=SAME)],
            "the same",
            "after and before are the same within 2 us under cpu at p50 and p99",
            None,
        ),
        (
            [difference("p50", 900)],
            "cannot tell",
            "after and before do not clearly differ under cpu at p50; they may still differ by more than 2 us",
            None,
        ),
        (
            [difference("p50", 10, p=SAME), difference("p99", 900)],
            "cannot tell",
            "after and before do not clearly differ under cpu at p99; the same within 2 us at p50",
            None,
        ),
        (
            [difference("p50", 900, why="only 5 windows of time; at least 20 are needed")],
            "cannot tell",
            (
                "the runs do not show whether after differs from before under cpu (only 5 windows of time; at "
                "least 20 are needed); the measured difference is p50 +900 ns"
            ),
            None,
        ),
        ([], "cannot tell", "the sides cannot be compared, because one of them measured nothing", None),
    ],
)
def test_the_answer_of_two_sides(rows, outcome, sentence, values):
    assert conclude(rows, alpha=0.05, within_ns=2_000, load="cpu") == ComparisonConclusion(
        outcome, sentence, values
    )


def test_the_answer_counts_the_pairs_with_the_differences_sign():
    runs = {"side_runs_ns": [20, 30, 40, 50, 9, 60], "baseline_runs_ns": [10, 10, 10, 10, 10, 10]}
    paired = difference("p99", 10_000, p=BEYOND).model_copy(update={"paired": True, **runs})
    text = conclude([paired], alpha=0.05, within_ns=2_000).text
    assert not missing(text, "after", "p99 2.0 times", "+10.0 us", "+9.00 us to +11.0 us", "5 of 6 pairs")


@pytest.mark.parametrize(
    ("rows", "outcome", "sentence"),
    [
        (
            [difference("p50", 100, p=SAME, runs=(1, 1)), difference("p99", 12_300, p=BEYOND, runs=(1, 1))],
            "cannot tell",
            (
                "In these two runs, after: p99 2.2 times as large (+12.3 us, 95 %: +11.3 us to +13.3 us); "
                "the same within 2 us at p50"
            ),
        ),
        (
            [difference("p50", -3_000, p=BEYOND, runs=(1, 4))],
            "cannot tell",
            (
                "In one run of after and 4 runs of before, after: p50 30 % smaller (-3.00 us, 95 %: -4.00 us "
                "to -2.00 us)"
            ),
        ),
        (
            [difference("p50", 0, p=SAME, runs=(1, 1))],
            "cannot tell",
            "In these two runs, after and before are the same within 2 us at p50",
        ),
        (
            [difference("p50", 900, runs=(1, 1))],
            "cannot tell",
            (
                "In these two runs, after and before do not clearly differ at p50; they may still "
                "differ by more than 2 us"
            ),
        ),
        (
            [
                difference(
                    "p50", 4_000, side=f"after, {load}", baseline=f"before, {load}", p=BEYOND, runs=(1, 1)
                )
                for load in ("idle", "cpu")
            ],
            "cannot tell",
            "In single runs, after against before: 2 higher: idle (+4.00 us at p50), cpu (+4.00 us at p50)",
        ),
        (
            [
                difference("p50", 4_000, side=side, p=BEYOND, runs=(runs, 3))
                for side, runs in (("a", 3), ("b", 1))
            ],
            "worse",
            (
                "2 sides against before: 1 worse: a (+4.00 us at p50); 1 higher in single runs: b "
                "(+4.00 us at p50)"
            ),
        ),
    ],
)
def test_single_runs_get_a_sentence_and_the_command_for_more(rows, outcome, sentence):
    actual = conclude(rows, alpha=0.05, within_ns=2_000, repeat="COMMAND")
    assert (actual.outcome, actual.text) == (outcome, sentence)
    assert actual.next is not None
    assert not missing(actual.next, "chance", "repeat", "COMMAND")
    alone = conclude(rows, alpha=0.05, within_ns=2_000)
    assert alone.text.startswith(f"{sentence}; ")
    assert not missing(alone.text.removeprefix(sentence), "one run", "chance")
    assert alone.next is None


def test_the_sentence_of_two_records_begins_with_the_worst():
    rows = [
        difference("p99", ns, side=f"after, {load}", baseline=f"before, {load}", p=p)
        for load, ns, p in (
            ("idle", 10, SAME),
            ("cpu", 4_000, BEYOND),
            ("network", 38_000_000, BEYOND),
            ("memory", 500, (1.0, 1.0, 1.0)),
        )
    ]
    actual = conclude(rows, alpha=0.05, within_ns=2_000)
    assert actual.outcome is ComparisonFinding.WORSE
    worse, same, unclear = actual.text.split("; ")
    assert not missing(
        worse, "after", "before", "2 worse: network", "+38.0 ms at p99", "cpu", "+4.00 us at p99"
    )
    assert not missing(same, "1 the same", "2 us", "idle")
    assert not missing(unclear, "1 no difference", "memory")


def test_more_sides_than_a_line_has_room_for_are_counted():
    rows = [difference("p99", 1_000 * n, side=f"side {n}", baseline="Single", p=BEYOND) for n in range(1, 8)]
    text = conclude(rows, alpha=0.05, within_ns=2_000).text
    assert not missing(text, "side 5", "+5.00 us", "side 4", "+4.00 us", "3 more")
    assert missing(text, "side 3") == ["side 3"]


# --- names


def rewritten(record: Path, **changes) -> Path:
    """The record with its run.json changed."""
    file = record / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    return record


def made(tmp_path: Path, seed: int, created: str, **shape) -> Path:
    return rewritten(
        write_record(tmp_path, Shape(seconds=1, seed=seed, loads=("idle", "cpu"), **shape)), created=created
    )


def test_two_runs_of_one_day_are_split_by_their_time(tmp_path):
    paths = [made(tmp_path, seed, f"2026-11-21T1{seed}:03:22Z") for seed in (1, 2)]
    records = [Record.open(path) for path in paths]
    assert record_names(records) == ["11:03:22", "12:03:22"]
    assert [side.label for side in sides_of(records)] == [
        "11:03:22, idle",
        "11:03:22, cpu",
        "12:03:22, idle",
        "12:03:22, cpu",
    ]


def test_different_days_are_named_or_else_the_folders(tmp_path):
    first, second = (made(tmp_path, seed, f"2026-11-2{seed}T10:00:00Z") for seed in (1, 2))
    assert record_names([Record.open(first), Record.open(second)]) == [
        "2026-11-21 10:00:00",
        "2026-11-22 10:00:00",
    ]
    alike = [Record.open(rewritten(path, created="2026-11-21T10:00:00Z")) for path in (first, second)]
    assert record_names(alike) == [first.name, second.name]


def test_a_system_whose_target_is_no_folders_name_has_its_kernel(record):
    step = record.steps[0]
    on_guest = step.model_copy(update={"key": step.key.model_copy(update={"targets": {"self": "lab:rtai"}})})
    on_it = replace(record, steps=[on_guest], systems={"lab-rtai": next(iter(record.systems.values()))})
    assert system_name(on_it, on_guest).endswith(", 6.1.0-18-amd64")


def test_a_renamed_folder_and_a_given_name_come_first(tmp_path):
    first = made(tmp_path, 1, "2026-11-21T10:00:00Z")
    second = first.rename(tmp_path / "tuned")
    third = made(tmp_path, 3, "2026-11-21T11:00:00Z")
    assert record_names([Record.open(second), Record.open(third)]) == ["tuned", "11:00:00"]
    records = open_records([second], [f"before={third}"])
    assert [record.label for record in records] == [None, "before"]
    assert [side.label for side in sides_of(records)] == [
        "tuned, idle",
        "tuned, cpu",
        "before, idle",
        "before, cpu",
    ]
    assert {baseline.label for _, baseline in pairs(sides_of(records), "before")} == {
        "before, idle",
        "before, cpu",
    }


@pytest.mark.parametrize(
    ("parameters", "labels"),
    [
        (({"cpu": None}, {"cpu": "1"}), ["default cpu", "cpu 1"]),
        (({}, {"cpu": "1"}), ["default cpu", "cpu 1"]),
        (({"network": {"port": 1, "mtu": 9}}, {"network": {"port": 2, "mtu": 9}}), ["port 1", "port 2"]),
        (({"samples": True}, {"samples": False}), ["samples", "no samples"]),
        (({"cores": [1, 2]}, {"cores": [3]}), ["cores 1+2", "cores 3"]),
        (
            ({"duration_ns": 10**9, "priority": 5}, {"duration_ns": 2 * 10**9, "priority": 6}),
            ["duration 1s priority 5", "duration 2s priority 6"],
        ),
    ],
)
def test_parameters_in_labels_are_words(tmp_path, parameters, labels):
    path = write_record(tmp_path, Shape(seconds=1, loads=("idle", "cpu"), marks=False))
    for file, own in zip(sorted(path.glob("steps/*/step.json")), parameters, strict=True):
        step = json.loads(file.read_text(encoding="utf-8"))
        step["key"]["parameters"] = {"interval_ns": 1_000_000} | own
        step["key"]["load"] = "idle"
        file.write_text(json.dumps(step), encoding="utf-8")
    assert [side.label for side in sides_of([Record.open(path)])] == labels


def over(folder: Path, *paths: str) -> Record:
    """A record of two steps under one load, over these paths."""
    path = write_record(folder, Shape(seconds=1, loads=("idle", "cpu"), marks=False))
    for file, line in zip(sorted(path.glob("steps/*/step.json")), paths, strict=True):
        step = json.loads(file.read_text(encoding="utf-8"))
        step["key"] |= {"parameters": {"interval_ns": 1_000_000, "path": line}, "load": "idle"}
        file.write_text(json.dumps(step), encoding="utf-8")
    return Record.open(path)


def test_a_loop_is_compared_with_a_loop_and_wire_with_wire(tmp_path):
    sides = sides_of(
        [over(tmp_path / "stock", "loop:eventfd", "wire"), over(tmp_path / "xenomai", "loop:mqueue", "wire")]
    )
    assert [
        (side.traits["parameters"], baseline.traits["parameters"]) for side, baseline in pairs(sides, None)
    ] == [
        ("path loop:mqueue", "path loop:eventfd"),
        ("path wire", "path wire"),
    ]


def test_two_equally_near_names_have_to_be_chosen_from(tmp_path):
    sides = sides_of(
        [
            over(tmp_path / "stock", "loop:eventfd", "loop:pipe"),
            over(tmp_path / "xenomai", "loop:mqueue", "wire"),
        ]
    )
    with pytest.raises(
        InputError,
        match=r"loop:mqueue' .*loop:eventfd.*loop:pipe.*--baseline",
    ):
        pairs(sides, None)


# --- the command


def run(monkeypatch, capsys, *arguments: object) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["rtgauge", *map(str, arguments)])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().out


def test_the_first_line_is_the_conclusion_without_details(tmp_path, monkeypatch, capsys):
    path = write_record(tmp_path, Shape(seconds=25, loads=("idle", "cpu"), marks=False))
    status, out = run(monkeypatch, capsys, "compare", path)
    assert status == 0
    assert out.startswith("CANNOT TELL  In these two runs, cpu: ")
    assert "rtgauge run quick --repeats 5" in " ".join(out.split("\n\n")[0].split())
    assert "value (where)" not in out
    assert "value (where)" in run(monkeypatch, capsys, "compare", path, "--details")[1]


def several(tmp_path: Path, *medians_ns: int, seconds: int = 2) -> list[Path]:
    """Records of one load and such medians, each drawn anew."""
    return [
        write_record(
            tmp_path,
            Shape(seconds=seconds, seed=seed, loads=("idle",), marks=False, median_ns={"idle": median}),
        )
        for seed, median in enumerate(medians_ns, 1)
    ]


def labelled(**sides: list[Path]) -> list[str]:
    return [word for name, paths in sides.items() for path in paths for word in ("--side", f"{name}={path}")]


SCHEMA = Draft202012Validator(
    json.loads(
        (Path(__file__).parents[3] / "docs" / "formats" / "compare.schema.json").read_text(encoding="utf-8")
    )
)


def test_the_records_of_one_label_are_the_runs_of_one_side(tmp_path, monkeypatch, capsys):
    paths = several(tmp_path, 6_000, 6_100, 6_050, 12_000, 12_100, 12_200)
    words = ("compare", *labelled(before=paths[:3], after=paths[3:]))
    status, out = run(monkeypatch, capsys, *words)
    assert status == 0
    assert out.startswith("WORSE   after: p99 under idle 2.0 times as large (+14.")
    assert "rtgauge run" not in out
    text = run(monkeypatch, capsys, *words, "--json")[1]
    SCHEMA.validate(json.loads(text))
    result = Comparison.model_validate_json(text)
    assert [(side.label, side.runs, side.records) for side in result.sides] == [
        ("before", 3, [str(path) for path in paths[:3]]),
        ("after", 3, [str(path) for path in paths[3:]]),
    ]
    assert [len(row.side_runs_ns) for row in result.quantiles] == [3] * 4
    assert (result.worse, result.undetermined) == (["after"], [])


def test_repeats_of_a_step_are_runs(tmp_path, monkeypatch, capsys):
    path = write_record(tmp_path, Shape(seconds=2, repeats=3, loads=("idle", "cpu"), marks=False))
    assert run(monkeypatch, capsys, "compare", path)[1].startswith("WORSE   cpu: p99 46.1 % larger (+")


@pytest.mark.parametrize(
    ("medians_ns", "status"),
    [
        ((6_000, 6_010, 12_000, 12_010), 1),
        ((12_000, 12_010, 6_000, 6_010), 0),
        ((6_000, 6_010, 6_020, 6_000), 0),
        ((6_000, 12_000), 4),
    ],
)
def test_the_exit_status_says_whether_a_side_is_worse(tmp_path, monkeypatch, capsys, medians_ns, status):
    paths = several(tmp_path, *medians_ns, seconds=25 if len(medians_ns) == 2 else 3)
    half = len(paths) // 2
    words = ("compare", *labelled(before=paths[:half], after=paths[half:]))
    assert run(monkeypatch, capsys, *words, "--fail-if-worse")[0] == status
    assert run(monkeypatch, capsys, *words)[0] == 0


def test_a_requirement_judges_every_record(tmp_path, monkeypatch, capsys):
    quick, slow = (
        write_record(
            tmp_path,
            Shape(seconds=12, seed=n, loads=("idle",), marks=False, left_out=False, median_ns={"idle": us}),
        )
        for n, us in ((1, 6e3), (2, 9e5))
    )
    words = (
        "compare",
        "--side",
        f"quick={quick}",
        "--side",
        f"slow={slow}",
        "--no-intervals",
        "--require",
        "latency<=500us hardness=50%",
    )
    status, out = run(monkeypatch, capsys, *words)
    assert status == 1
    assert out.startswith("HOLDS  quick: ")
    _, fails, after = " ".join(out.split()).partition(" FAILS slow: ")
    assert fails
    assert after.partition(" In single runs")[0].count(" activations in 1 run, 1 boot") == 1
    document = Comparison.model_validate_json(run(monkeypatch, capsys, *words, "--json")[1])
    assert {name: verdict.word for name, verdict in document.verdicts.items()} == {
        "quick": "holds",
        "slow": "fails",
    }


@pytest.mark.parametrize("label", ["before", "=x", "before="])
def test_a_label_without_name_or_record_is_refused(label):
    with pytest.raises(InputError, match="write NAME=RECORD"):
        open_records([], [label])


def test_records_without_a_common_probe_are_refused(tmp_path, monkeypatch):
    first, second = (
        write_record(tmp_path / str(seed), Shape(seconds=1, seed=seed, loads=("idle",), marks=False))
        for seed in (1, 2)
    )
    file = next(second.glob("steps/*/step.json"))
    step = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(step | {"key": step["key"] | {"probe": "tire"}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"the probe is wakeup in .* but tire in"):
        sides_of([Record.open(first), Record.open(second)])
    monkeypatch.setattr(sys, "argv", ["rtgauge", "compare", str(first), str(second)])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def test_of_what_no_step_measured_there_is_no_side(record):
    assert sides_of([record], Scope(probe="no probe", metric="latency")) == []
    with pytest.raises(InputError, match="latencies to compare"):
        pairs([], None)
