# SPDX-License-Identifier: MIT
"""The study delgado2020: its plans, and its choice (sec. IV) on made-up comparisons, without measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.analysis.comparison_document import Comparison, SideFigures
from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.plan.study_state import newest_record
from rtgauge.probe.wakeup import PROBE as WAKEUP
from rtgauge.record.model import Distribution, Run
from rtgauge.record.reader import Record
from rtgauge.study.study_registry import adaptive_study, study_of_record
from rtgauge.system.deployment.definition import NAMED
from rtgauge_ext.papers import delgado2020
from rtgauge_ext.papers.chi_square import ChiSquareTest
from rtgauge_ext.papers.comparison_part import PapersComparison
from rtgauge_ext.papers.delgado2020 import idle_plan, loaded_plan
from rtgauge_ext.papers.deployment_choice import (
    ChosenDeployment,
    ComparedDeployments,
    choose,
    choose_deployment,
)
from rtgauge_ext.papers.selection import ChiSquarePair, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.model import StepKey

NOTHING = Distribution(
    count=0,
    min_ns=None,
    mean_ns=None,
    std_ns=None,
    p50_ns=None,
    p95_ns=None,
    p99_ns=None,
    p99_9_ns=None,
    p99_99_ns=None,
    max_ns=None,
)


def comparison(
    statistics: dict[str, float | None], critical: float = 33.924
) -> tuple[Comparison, PapersComparison]:
    """The paper's table 4: deployment -> its statistic against Single, None where there is no test."""

    def side(name: str) -> SideFigures:
        return SideFigures(
            label=f"idle, {name}",
            record="r",
            steps=[],
            traits={"deployment": name},
            baseline=None,
            missed=0,
            worst_mark=None,
            measured=NOTHING,
            filled=NOTHING,
        )

    def test(value: float | None) -> ChiSquareTest:
        rejected = value is not None and value > critical
        return ChiSquareTest(
            statistic=value,
            critical=critical,
            rejected=rejected,
            cannot="the sample is empty" if value is None else None,
        )

    pairs = [
        ChiSquarePair(
            side=f"idle, {name}",
            baseline="idle, Single",
            paper=test(value),
        )
        for name, value in statistics.items()
    ]
    kept = {
        f"idle, {name}": value
        for name, value in statistics.items()
        if value is not None and value <= critical
    }
    best = min(kept, key=lambda name: kept[name]) if kept else None
    sides = [side(name) for name in [*statistics, "Single"]]
    selections = [Selection(baseline="idle, Single", best=best)]
    return (
        Comparison(alpha=0.05, within_ns=2000, sides=sides, settings={}, quantiles=[]),
        PapersComparison(pairs=pairs, selections=selections, tails=[]),
    )


def test_the_papers_own_numbers_choose_mi() -> None:
    assert choose(*comparison({"HM": 51.13, "HMI": 65.12, "M": 43.98, "MI": 23.26})).deployment == "MI"


def test_if_all_are_rejected_the_nearest_continues() -> None:
    choice = choose(*comparison({"HM": 90.0, "M": 70.5, "MI": None}))
    assert choice.deployment == "M"
    assert "every deployment differs" in choice.reason
    assert "70.5" in choice.reason


def test_without_any_test_there_is_no_choice() -> None:
    with pytest.raises(MeasureError, match="the sample is empty"):
        choose(*comparison({"M": None}))


def test_the_first_part_is_every_deployment_idle() -> None:
    plan = idle_plan(Overrides(seed=1))
    assert {key.deployment for key in plan.steps} == set(NAMED)
    for key in plan.steps:
        p = WAKEUP.own(key)
        assert (key.load, p.interval_ns, p.priority, p.phase, p.duration_ns) == (
            "idle",
            100_000,
            99,
            "fixed",
            600 * 10**9,
        )
        assert p.dma_latency_us == (-1 if key.deployment == "CHM" else 0)
    assert [key.deployment for key in plan.steps] != [
        key.deployment for key in idle_plan(Overrides(seed=2)).steps
    ]


def test_duration_repeats_and_deployments_follow_the_options() -> None:
    overrides = Overrides(
        parameters={"duration": "2s"}, repeats=2, deployments=["M", "Single"], loads=["cpu"], seed=1
    )
    first = idle_plan(overrides)
    assert len(first.steps) == 4
    assert {(key.deployment, key.load, key.parameters.get("duration_ns")) for key in first.steps} == {
        ("M", "idle", 2 * 10**9),
        ("Single", "idle", 2 * 10**9),
    }
    second = loaded_plan("M", overrides)
    assert [(key.deployment, key.load) for key in second.steps] == [("M", "cpu"), ("M", "cpu")]
    assert loaded_plan("MI", Overrides()).steps[0].load == "papers"


def a_run(plan: dict[str, Any], planned: list[StepKey]) -> Run:
    return Run(
        id="x",
        created="",
        state="partial",
        rtgauge="0",
        command=[],
        plan=plan,
        targets=["local"],
        seed=1,
        planned=planned,
    )


@pytest.fixture
def choice_is_m(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        delgado2020,
        "choose_deployment",
        lambda record: ComparedDeployments([], [], None, ChosenDeployment("M", "made up")),
    )


def test_the_chosen_deployment_is_loaded_in_the_same_record(tmp_path: Path, choice_is_m: None) -> None:
    overrides = Overrides(parameters={"duration": "2s"}, deployments=["M", "Single"], loads=["cpu"])
    study = adaptive_study("delgado2020", overrides)
    plan = study.plan()
    # a resumed study knows what its record has kept, and nothing else
    resumed = study_of_record(a_run(plan.written, plan.steps))
    assert resumed == study
    for which in (study, resumed):
        steps = which(Record(tmp_path, a_run(plan.written, plan.steps), [], {}))
        assert [(key.deployment, key.load, key.parameters.get("duration_ns")) for key in steps] == [
            ("M", "cpu", 2 * 10**9)
        ]


def test_without_single_the_study_ends_without_a_choice(tmp_path: Path) -> None:
    study = adaptive_study("delgado2020", Overrides())
    record = Record(tmp_path, a_run({}, []), [], {})
    assert not study(record)
    with pytest.raises(MeasureError, match="baseline, Single"):
        choose_deployment(record)


def test_a_study_is_of_one_machine() -> None:
    with pytest.raises(InputError, match="for each --target"):
        adaptive_study("delgado2020", Overrides(targets=["local", "ssh://board"])).plan()


def test_idle_is_no_load_of_the_last_part() -> None:
    with pytest.raises(InputError, match="leave this load out of --load"):
        adaptive_study("delgado2020", Overrides(loads=["idle", "cpu"])).plan()


def test_the_newest_record_of_a_study(tmp_path: Path) -> None:
    plans = [adaptive_study(name, Overrides()).plan() for name in ("delgado2020", "delgado2020", "sustained")]
    for number, plan in enumerate(plans):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(a_run(plan.written, []).model_dump_json())
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "run.json").write_text("{")
    assert newest_record(tmp_path, "delgado2020") == tmp_path / "1"
    with pytest.raises(InputError, match="a record of the study garre2014"):
        newest_record(tmp_path, "garre2014")


def test_jo2022_is_a_preset() -> None:
    plan = load_plan("jo2022", Overrides(seed=1))
    assert {(key.load, key.deployment, key.parameters.get("duration_ns")) for key in plan.steps} == {
        ("idle", "MI", 100 * 10**9),
        ("papers", "MI", 100 * 10**9),
    }


def test_c_states_are_not_held_off_where_they_are_to_be_on() -> None:
    with pytest.raises(InputError, match="keeps C-states off"):
        idle_plan(Overrides(parameters={"dma-latency": 0}, deployments=["CHM"]))


def test_the_time_of_a_study_has_its_last_part() -> None:
    study = adaptive_study(
        "delgado2020",
        Overrides(parameters={"duration": "10s"}, loads=["cpu", "memory"], deployments=["M", "Single"]),
    )
    first = study.plan().steps
    later_s = study.later_s(first)
    assert later_s is not None
    assert 20 < later_s < 40
    assert study.later_s([*first, first[0].model_copy(update={"load": "cpu"})]) == 0


def test_the_time_of_a_search_gets_shorter_with_its_rounds() -> None:
    study = adaptive_study("sustained", Overrides(repeats=2))
    first = study.plan().steps
    at_first, shortest = study.later_s(first), min(first, key=lambda key: key.parameters.get("interval_ns"))
    halved = [
        shortest.with_parameters(interval_ns=70_000).model_copy(update={"repeat": repeat})
        for repeat in (1, 2)
    ]
    after_a_round = study.later_s([*first, *halved])
    assert at_first is not None
    assert after_a_round is not None
    assert after_a_round == pytest.approx(at_first * 3 / 4)
