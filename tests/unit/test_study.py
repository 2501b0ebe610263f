# SPDX-License-Identifier: MIT
"""The study delgado2020: its plans, and the choice as the paper makes it (sec. IV), on made-up comparisons and without measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.analysis.chi_square import Convention, Scale
from rtgauge.analysis.comparison import Comparison, Pair, Selection, SideFigures
from rtgauge.analysis.comparison import Test as Outcome
from rtgauge.errors import InputError, MeasureError, RecordError
from rtgauge.plan.plan import Overrides, load_plan
from rtgauge.record.model import Distribution, Run
from rtgauge.study import delgado2020
from rtgauge.study.delgado2020 import Choice, Hands, Selected, choose, idle_plan, loaded_plan, resume_study, run_study
from rtgauge.study.study_state import kept_of, newest_of
from rtgauge.system.deployment.definition import NAMED

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.plan.plan import Plan

NOTHING = Distribution(count=0, min_ns=None, mean_ns=None, std_ns=None, p50_ns=None, p95_ns=None, p99_ns=None, p99_9_ns=None, p99_99_ns=None, max_ns=None)


def comparison(statistics: dict[str, float | None], critical: float = 33.924) -> Comparison:
    """The paper's table 4: deployment -> its statistic against Single, None where there is no test."""

    def side(name: str) -> SideFigures:
        return SideFigures(
            label=f"idle, {name}", record="r", steps=[], traits={"deployment": name}, baseline=None, missed=0, worst_mark=None, measured=NOTHING, filled=NOTHING
        )

    def test(convention: Convention, value: float | None) -> Outcome:
        rejected = value is not None and value > critical
        return Outcome(
            convention=convention,
            scale=Scale.PERCENT,
            statistic=value,
            critical=critical,
            rejected=rejected,
            cannot="the sample is empty" if value is None else None,
        )

    pairs = [
        Pair(
            side=f"idle, {name}",
            baseline="idle, Single",
            paper=test(Convention.PAPER, value),
            textbook=test(Convention.TEXTBOOK, value),
            wasserstein_us=None,
            cramers_v=None,
        )
        for name, value in statistics.items()
    ]
    kept = {f"idle, {name}": value for name, value in statistics.items() if value is not None and value <= critical}
    best = min(kept, key=lambda name: kept[name]) if kept else None
    return Comparison(
        alpha=0.05,
        within_ns=2000,
        resamples=0,
        seed=1,
        sides=[side(name) for name in [*statistics, "Single"]],
        settings={},
        pairs=pairs,
        selections=[Selection(baseline="idle, Single", convention=convention, best=best) for convention in Convention],
        quantiles=[],
        tails=[],
    )


def test_the_papers_own_numbers_choose_mi() -> None:
    assert choose(comparison({"HM": 51.13, "HMI": 65.12, "M": 43.98, "MI": 23.26})).deployment == "MI"


def test_where_all_are_rejected_the_nearest_goes_on_and_it_is_said() -> None:
    choice = choose(comparison({"HM": 90.0, "M": 70.5, "MI": None}))
    assert choice.deployment == "M"
    assert "every deployment is rejected" in choice.reason
    assert "70.5" in choice.reason


def test_without_any_test_there_is_no_choice() -> None:
    with pytest.raises(MeasureError, match="the sample is empty"):
        choose(comparison({"M": None}))


def test_the_first_part_is_every_deployment_idle_with_the_papers_settings() -> None:
    plan = idle_plan(Overrides(seed=1))
    assert {key.deployment for key in plan.steps} == set(NAMED)
    for key in plan.steps:
        p = key.parameters
        assert (key.load, p["interval_ns"], p["priority"], p["phase"], p["duration_ns"]) == ("idle", 100_000, 99, "fixed", 600 * 10**9)
        assert p["dma_latency_us"] == (-1 if key.deployment == "CHM" else 0)
    assert [key.deployment for key in plan.steps] != [key.deployment for key in idle_plan(Overrides(seed=2)).steps]


def test_duration_repeats_and_deployments_follow_the_command_line() -> None:
    overrides = Overrides(parameters={"duration": "2s"}, repeats=2, deployments=["M", "Single"], loads=["cpu"], seed=1)
    first = idle_plan(overrides)
    assert len(first.steps) == 4
    assert {(key.deployment, key.load, key.parameters["duration_ns"]) for key in first.steps} == {("M", "idle", 2 * 10**9), ("Single", "idle", 2 * 10**9)}
    second = loaded_plan(Choice("M", ""), overrides)
    assert [(key.deployment, key.load) for key in second.steps] == [("M", "cpu"), ("M", "cpu")]
    assert loaded_plan(Choice("MI", ""), Overrides()).steps[0].load == "papers"


SECOND = {"deployments": ["M", "Single"], "loads": ["cpu"], "parameters": {"duration": "2s"}}


def written(folder: Path, plan: Plan, state: str = "complete") -> tuple[Path, Run]:
    """The record of a plan, without steps."""
    path = folder / f"{len(list(folder.iterdir())):02d}-{plan.name}{'' if state == 'complete' else '.partial'}"
    run = Run(id=path.name.removesuffix(".partial"), created="", state=state, rtgauge="0", command=[], plan=plan.written, targets=["local"])  # pyright: ignore[reportArgumentType]
    path.mkdir()
    (path / "run.json").write_text(run.model_dump_json())
    return path, run


class Table:
    """A study's hands that measure nothing and write down what they are asked."""

    def __init__(self, folder: Path, *states: str) -> None:
        self.folder, self.states = folder, list(states)
        self.plans: list[Plan] = []
        self.resumed: list[str] = []
        self.chosen: list[str] = []

    @property
    def hands(self) -> Hands:
        return Hands(self.measure, self.resume, lambda selected: self.chosen.append(selected.choice.deployment))

    def measure(self, plan: Plan) -> tuple[Path, Run]:
        self.plans.append(plan)
        return written(self.folder, plan, self.states.pop(0))

    def resume(self, folder: Path) -> tuple[Path, Run]:
        self.resumed.append(folder.name)
        run = Run.model_validate_json((folder / "run.json").read_text()).model_copy(update={"state": self.states.pop(0)})
        path = folder.rename(folder.with_name(run.id)) if run.state == "complete" else folder
        (path / "run.json").write_text(run.model_dump_json())
        return path, run


@pytest.fixture
def choice_is_m(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delgado2020, "select", lambda first: Selected(first, [], [], None, Choice("M", "made up")))


def test_a_study_that_was_stopped_makes_no_choice(tmp_path: Path) -> None:
    table = Table(tmp_path, "interrupted")
    run_study(table.hands, Overrides())
    assert (len(table.plans), table.chosen) == (1, [])


def test_the_choice_is_told_before_it_is_measured(tmp_path: Path, choice_is_m: None) -> None:
    table = Table(tmp_path, "complete", "complete")
    run_study(table.hands, Overrides(**SECOND))  # pyright: ignore[reportArgumentType]
    assert table.chosen == ["M"]
    assert [(key.deployment, key.load) for key in table.plans[1].steps] == [("M", "cpu")]


def test_a_stopped_study_goes_on_to_its_end_from_its_first_record(tmp_path: Path, choice_is_m: None) -> None:
    table = Table(tmp_path, "interrupted", "complete", "complete")
    run_study(table.hands, Overrides(**SECOND))  # pyright: ignore[reportArgumentType]
    (first,) = tmp_path.iterdir()
    resume_study(table.hands, first)
    assert table.resumed == [first.name]
    assert table.chosen == ["M"]
    # what was asked at the beginning holds for the second part too
    assert [(key.deployment, key.load, key.parameters["duration_ns"]) for key in table.plans[1].steps] == [("M", "cpu", 2 * 10**9)]
    with pytest.raises(InputError, match="the study is complete"):
        resume_study(table.hands, tmp_path / first.name.removesuffix(".partial"))


@pytest.mark.parametrize("which", [0, 1])
def test_stopped_in_its_second_part_it_goes_on_from_either_record(tmp_path: Path, choice_is_m: None, which: int) -> None:
    table = Table(tmp_path, "complete", "interrupted", "complete")
    run_study(table.hands, Overrides(**SECOND))  # pyright: ignore[reportArgumentType]
    records = sorted(tmp_path.iterdir())
    resume_study(table.hands, records[which])
    assert table.resumed == [records[1].name]
    assert (len(table.plans), table.chosen) == (2, ["M", "M"])


def test_stopped_between_its_parts_it_says_how_to_go_on_and_does(tmp_path: Path, choice_is_m: None) -> None:
    table = Table(tmp_path, "complete", "complete")
    measure = table.measure

    def busy(plan: Plan) -> tuple[Path, Run]:
        if table.plans:
            raise MeasureError("this machine is held by another run")
        return measure(plan)

    with pytest.raises(MeasureError, match=r"held by another run; go on with: rtgauge run --resume .*00-delgado2020$"):
        run_study(Hands(busy, table.resume, table.chosen.append), Overrides(**SECOND))  # pyright: ignore[reportArgumentType]
    assert newest_of(tmp_path, "delgado2020") == tmp_path / "00-delgado2020"
    resume_study(table.hands, tmp_path / "00-delgado2020")
    assert [plan.name for plan in table.plans] == ["delgado2020", "delgado2020-load"]


def test_a_study_is_of_one_machine() -> None:
    with pytest.raises(InputError, match="one --target"):
        run_study(Hands(pytest.fail, pytest.fail, pytest.fail), Overrides(targets=["local", "ssh://board"]))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_a_damaged_record_of_a_study_is_one_error(kept: object) -> None:
    run = Run(id="x", created="", state="complete", rtgauge="0", command=[], plan={"study": kept}, targets=[])
    if kept is None:
        assert kept_of(run) is None
    else:
        with pytest.raises(RecordError, match="damaged"):
            kept_of(run)


def test_jo2022_is_a_preset() -> None:
    plan = load_plan("jo2022", Overrides(seed=1))
    assert {(key.load, key.deployment, key.parameters["duration_ns"]) for key in plan.steps} == {("idle", "MI", 100 * 10**9), ("papers", "MI", 100 * 10**9)}


def test_c_states_are_not_held_off_where_they_are_to_be_on() -> None:
    with pytest.raises(InputError, match="holds C-states off"):
        idle_plan(Overrides(parameters={"dma-latency": 0}, deployments=["CHM"]))
