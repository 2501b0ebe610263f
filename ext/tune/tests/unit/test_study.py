# SPDX-License-Identifier: MIT
"""The search on a record: which steps come next, and the value of a run."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.messages import missing
from tests.unit import records

from rtgauge.analysis import change_words
from rtgauge.cli.decided import question_of
from rtgauge.errors import InputError, RecordError
from rtgauge.plan.make_plan import Plan
from rtgauge.record.alternation import BLOCK
from rtgauge.record.model import (
    DeploymentReport,
    LoadPart,
    LoadReport,
    Mark,
    Run,
    SettingMade,
    Severity,
    Step,
    VerdictWord,
)
from rtgauge.record.reader import Record
from rtgauge.record.windows import Windows
from rtgauge.units import NS_PER_S, parse_duration_ns
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.answer import TuneAnswer
from rtgauge_ext.tune.candidates import Candidate
from rtgauge_ext.tune.result import TuneOutcome, TuneResult
from rtgauge_ext.tune.search import PairOutcome, Visit
from rtgauge_ext.tune.tuning_options import TuningOptions, options_of, plain, resolution, tune_plan
from rtgauge_ext.tune.tuning_page import basis, figures, page, tables
from rtgauge_ext.tune.tuning_study import (
    Played,
    deployment,
    next_runs,
    play,
    refused_in,
    value_ns,
    visit_result,
    with_more_budget,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def measured(latencies: list[int], **options: object) -> Step:
    step, _ = records.step(latencies, **options)  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
    return step


def bound(hardness: str) -> Requirement:
    return parse_requirement(f"latency<=1ms {hardness}")


MINUTE_NS = 60 * NS_PER_S


def candidates(*names: str) -> list[Candidate]:
    rules = [tried_rules()[name] for name in names]
    return [
        Candidate(rule, rule.trial, "1", f"settings={rule.id}" if rule.trial.set else "isolate=2-3")
        for rule in rules
        if rule.trial is not None
    ]


def planned(requirement: str = "period=1ms latency<=100us", *names: str, **changes: Any) -> Plan:
    options: dict[str, Any] = {
        "cpus": None,
        "pid": None,
        "loads": ["cpu"],
        "confirm_loads": ["memory"],
        "budget_ns": 30 * MINUTE_NS,
        "duration_ns": 10 * NS_PER_S,
        "larger_than": 0.2,
        "target": "local",
        "seed": 3,
    }
    return tune_plan(
        parse_requirement(requirement), candidates(*names or ("thp", "ksm")), **{**options, **changes}
    )


@pytest.mark.parametrize("name", ["loads", "confirm_loads"])
def test_a_record_without_loads_is_damaged(name: str) -> None:
    run = Run.model_construct(id="a", plan={"tune": {**planned().written["tune"], name: []}})
    with pytest.raises(RecordError, match="does not say what it tunes"):
        options_of(run)


def test_the_first_run_is_the_machine_as_it_is_explained() -> None:
    plan = planned(cpus="1", loads=["cpu", "idle"])
    assert [key.load for key in plan.steps] == ["cpu", "idle"]
    for key in plan.steps:
        assert key.deployment == "as-is"
        assert key.parameters.get("explain")
        assert not plain(key).parameters.get("explain")
        assert key.parameters.get("interval_ns") == 1_000_000
    options = TuningOptions.model_validate(plan.written["tune"])
    assert options.search(3).candidates == {"thp": [], "ksm": []}
    assert "tests and a confirmation" in resolution(options, 10 * NS_PER_S)


def test_a_path_is_judged_by_its_responses() -> None:
    plan = planned("period=2ms response<=1ms", path="icmp:192.0.2.1", interface="eth1")
    (key,) = plan.steps
    assert key.probe == "path"
    assert key.parameters.get("path") == "icmp:192.0.2.1"
    assert key.parameters.get("interval_ns") == 2_000_000
    options = TuningOptions.model_validate(plan.written["tune"])
    assert "interface=eth1" in deployment(["thp"], options)
    with pytest.raises(InputError, match="judges a path by response, not by latency"):
        planned("latency<=1ms", path="icmp:192.0.2.1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"loads": ["cpu"], "confirm_loads": ["cpu"]}, "a load that --load does not"),
        ({"budget_ns": MINUTE_NS}, "too short for one test"),
        ({"loads": ["cpuu"]}, "unknown load 'cpuu'"),
        ({"confirm_loads": ["cpuu"]}, "unknown load 'cpuu'"),
        ({"pid": 17, "reboot": True}, "leave out --boot each-deployment"),
    ],
)
def test_wrong_input_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        planned(**changes)


def test_only_latency_is_tuned() -> None:
    with pytest.raises(InputError, match="tune judges by latency"):
        planned("jitter<=1ms")


def test_a_budget_pays_for_whole_runs() -> None:
    options = TuningOptions.model_validate(planned().written["tune"])
    assert options.most_runs == int(1800 / options.run_s)
    assert options.most_runs > 1 + 4 * BLOCK


def test_the_value_is_the_hardness_quantile_or_the_maximum() -> None:
    step = measured([*range(1_000, 101_000, 100)])
    assert step.total is not None
    assert value_ns(step, bound("hardness=99%")) == step.total.filled.p99_ns
    assert value_ns(step, bound("hardness=100%")) == step.total.filled.max_ns
    assert value_ns(step, bound("hardness=99.99%")) == step.total.filled.max_ns


def test_the_worst_load_counts_and_a_missing_one_leaves_no_value() -> None:
    requirement = parse_requirement("latency<=100us")
    quiet = measured([20_000] * 10)
    loud = measured([20_000, 150_000], load="cpu")
    observed = visit_result([quiet, loud], Visit((), ["idle", "cpu"]), requirement)
    assert observed.value_ns == 150_000
    assert not observed.meets
    assert visit_result([quiet], Visit((), ["idle"]), requirement).meets
    assert visit_result([quiet], Visit((), ["idle", "cpu"]), requirement).value_ns is None
    invalid = measured([20_000], marks=[Mark(name="throttled", severity=Severity.INVALID, detail="why")])
    assert visit_result([invalid], Visit((), ["idle"]), requirement).value_ns is None


def no_facts(_: str) -> None:
    """Nothing is known of the machine."""


def no_moments(_: Step) -> None:
    """Nothing was explained."""


def simulated(
    plan: Plan, mended_by: str = "thp", *, booted: bool = True, made: Sequence[SettingMade] = ()
) -> Record:
    """The record of a search on a machine where a setting takes 4/5 of the latency away. `made`: the settings
    that each deployment made.
    """
    plain_run = records.run().model_dump()  # pyright: ignore[reportUnknownMemberType]
    run = Run.model_validate(plain_run | {"plan": plan.written, "planned": plan.steps, "seed": plan.seed})
    steps: list[Step] = []
    measured: dict[int, Windows] = {}

    def windows(step: Step) -> Windows:
        return measured[step.key.repeat]

    record = cast(
        "Record",
        SimpleNamespace(
            run=run,
            steps=steps,
            moments=no_moments,
            windows=windows,
            system=no_facts,
            systems={},
            path="record",
        ),
    )
    planned = [*plan.steps]
    while planned:
        for key in planned:
            isolated = key.deployment.removeprefix("isolate=") if "isolate=" in key.deployment else ""
            latency_ns = 60_000 if mended_by in key.deployment else 300_000
            step, measured[key.repeat] = records.step([latency_ns] * 100)  # pyright: ignore[reportUnknownMemberType]
            part = LoadPart(program="hackbench", argv=[], reached={"rounds": 120 - 30 * len(isolated)})
            update = {
                "key": key,
                "load": LoadReport(name=key.load, parts=[part]),
                "deployment": DeploymentReport(
                    name=key.deployment, words=key.deployment, isolated=isolated, settings=[*made]
                ),
            }
            steps.append(step.model_copy(update=update))
        planned = [*next_runs(record, booted=booted)]
        run.planned += planned
    return record


def test_a_larger_budget_continues_an_open_search() -> None:
    names = ("thp", "ksm", "timer-migration", "numa-balancing")
    plan = planned("latency<=100us hardness=50%", *names, budget_ns=8 * MINUTE_NS)
    record = simulated(plan, mended_by="nothing")
    result = TuneResult.of(record)
    assert (result.outcome, result.status) == (TuneOutcome.CANNOT_TELL, 4)
    reported = "the budget ran out after 1 test, with 4 settings left to try; rtgauge kept nothing and restored every setting"
    assert result.conclusion == reported
    assert "Left to try: thp, ksm, timer-migration, numa-balancing." in basis(result)
    assert result.next is not None
    budget = result.next.removeprefix("rtgauge resume record --budget ")
    with pytest.raises(InputError, match="is not more than the record's"):
        with_more_budget(record, 8 * MINUTE_NS)
    assert with_more_budget(record, None) == {}
    assert with_more_budget(record, parse_duration_ns(budget))
    assert next_runs(record)
    whole = TuneResult.of(simulated(planned("latency<=100us hardness=50%", *names), mended_by="nothing"))
    assert whole.outcome is TuneOutcome.NOTHING
    assert "nine of ten" in whole.conclusion


def test_a_first_run_that_proves_nothing_is_not_called_holds() -> None:
    result = TuneResult.of(simulated(planned("latency<=400us hardness=99%")))
    assert result.before is not None
    assert result.before.word is VerdictWord.CANNOT_TELL
    assert (result.outcome, result.status) == (TuneOutcome.CANNOT_TELL, 4)
    assert "cannot show" in result.conclusion
    sure = TuneResult.of(simulated(planned("latency<=400us hardness=50%")))
    assert (sure.outcome, sure.status) == (TuneOutcome.HOLDS, 0)


def test_a_search_that_was_confirmed_does_not_go_on() -> None:
    names = ("thp", "ksm", "timer-migration", "numa-balancing")
    record = simulated(planned("latency<=100us hardness=50%", *names, budget_ns=11 * MINUTE_NS))
    assert TuneResult.of(record).out_of_budget
    with pytest.raises(InputError, match="has confirmed what it kept"):
        with_more_budget(record, 60 * MINUTE_NS)


THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def made(path: str, error: str | None = None) -> SettingMade:
    return SettingMade(path=path, old="1", wanted="2", now="1", error=error)


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ([made(THP, "Invalid argument")], {"thp": f"{THP}: Invalid argument"}),
        ([made(THP)], {}),
        ([made("/sys/kernel/mm/ksm/run", "Invalid argument")], {}),
        ([], {}),
    ],
)
def test_a_setting_refused_as_a_whole_is_refused(
    settings: list[SettingMade], refused: dict[str, str]
) -> None:
    report = DeploymentReport(name="x", words="x", settings=settings)
    step = measured([1_000] * 10).model_copy(update={"deployment": report})
    assert refused_in([step], ("thp",)) == refused


def test_a_refused_setting_is_left_out_with_its_reason() -> None:
    plan = planned("latency<=100us hardness=50%", "thp")
    result = TuneResult.of(simulated(plan, mended_by="nothing", made=[made(THP, "Invalid argument")]))
    assert [test.found for test in result.tests] == [PairOutcome.REFUSED]
    assert result.left_out == [f"setting thp: the machine refused it ({THP}: Invalid argument)"]


def searched(plan: Plan, *, booted: bool) -> Played:
    return play(simulated(plan, booted=booted))


def test_how_few_isolated_cpus_suffice_and_what_they_cost() -> None:
    plan = planned("latency<=100us hardness=50%", "isolated-cpus", cpus="2-3", fewer=["3"])
    assert {key.parameters.get("cpu") for key in plan.steps} == {"3"}
    result = TuneResult.of(simulated(plan, mended_by="isolate="))
    assert result.deployment == "isolate=3"
    assert result.conclusion.startswith("isolated-cpus=3: ")
    assert not missing(result.conclusion, "holds", "each of 12 runs")
    assert [(level.cpus, level.kept) for level in result.isolated] == [
        ("", False),
        ("3", True),
        ("2-3", False),
    ]
    assert [level.verdict.word for level in result.isolated][:2] == ["fails", "holds"]
    assert [level.rest for level in result.isolated] == [
        [],
        ["cpu: rounds of hackbench -25.0 %", "memory: rounds of hackbench -25.0 %"],
        ["cpu: rounds of hackbench -75.0 %"],
    ]
    assert [table.title for table in tables(result)] == ["Kept", "Isolated CPUs", "Tests"]


def test_each_verdict_has_the_exposure_of_all_its_runs() -> None:
    record = simulated(planned("latency<=100us hardness=50%", "thp"))
    result = TuneResult.of(record)
    for tuned, verdict in ((False, result.before), (True, result.after)):
        runs = [step for step in record.steps if (step.key.deployment != "as-is") is tuned]
        assert runs
        assert verdict is not None
        assert verdict.exposure is not None
        assert verdict.exposure.activations == 100 * len(runs)
    assert sum("activations in" in line for line in basis(result)) == 2


def test_the_page_begins_with_the_answer_and_both_verdicts() -> None:
    record = simulated(planned("latency<=100us hardness=50%", "thp"))
    result = TuneResult.of(record)
    text = page(result, record)
    box = text[text.index('<div class="verdict holds">') :].partition("</div>")[0]
    assert f'<p class="word">{result.outcome[:1].upper()}{result.outcome[1:]}</p>' in box
    assert box.index("Before, the verdict is fails") < box.index("After, the verdict is holds")
    assert text.count("Before, the verdict is") == 1
    (drawn,) = figures(record)
    for load, spec in zip(drawn.titles, drawn.specs, strict=True):
        assert load in {"cpu", "memory"}
        words = str(spec["description"])
        assert "before: of" in words
        assert "100 % later than 100 us, none later than 300 us" in words
        assert "after: of" in words
        assert not missing(words, "none later than 100 us", "none later than 60.0 us", "50 % allowed")
    assert text.index('id="figure-before-after"') < text.index("Tests</h2>")


@pytest.mark.parametrize(("target", "reboot"), [("lab:debian", False), ("local", True)])
def test_the_confirmation_awaits_another_boot(target: str, *, reboot: bool) -> None:
    plan = planned(target=target, reboot=reboot)
    assert not plan.by_boot
    waits = searched(plan, booted=False)
    assert waits.awaits_boot
    assert waits.search.result.final == ("thp",)
    assert {load for visit in waits.next for load in visit.loads} == {"memory"}
    search = searched(plan, booted=True)
    assert not search.awaits_boot
    assert search.search.result.confirmation is not None


def test_a_guest_booted_for_each_run_needs_no_other_boot() -> None:
    plan = planned(target="lab:debian", reboot=True, budget_ns=90 * MINUTE_NS)
    assert plan.by_boot
    assert not searched(plan, booted=False).awaits_boot
    assert not searched(planned(), booted=False).awaits_boot


def test_a_watched_program_of_a_lab_guest_needs_no_boot() -> None:
    plan = planned(target="lab:debian", pid=17)
    assert not searched(plan, booted=False).awaits_boot


def test_the_question_of_a_tuning_names_its_requirement() -> None:
    plan = planned(loads=["cpu", "idle"])
    run = Run.model_validate(records.run().model_dump() | {"plan": plan.written, "planned": plan.steps})
    asked = ("period=1ms latency<=100us hardness=100%", "under cpu, idle", "a gain of 20 %", "2 settings")
    assert not missing(question_of(run), *asked)


def test_it_says_the_same_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("thp", "ksm", "timer-migration", "numa-balancing")
    record = simulated(
        planned("latency<=100us hardness=50%", *names, budget_ns=8 * MINUTE_NS), mended_by="nothing"
    )
    answer = TuneAnswer.of(record)
    answer.print(brief=True)
    document = json.loads(answer.result.model_dump_json())
    reported = f"{document['outcome'].upper()} {document['conclusion']} next {document['next']}"
    assert " ".join(capsys.readouterr().out.split()).startswith(reported)


OF_TUNE = {"holds as it is", "fixed", "no gain shown", "nothing to try"}
"""The answers that only a tuning has."""


def test_each_other_answer_is_one_of_the_common_words() -> None:
    words = {value for name, value in vars(change_words).items() if name.isupper()}
    assert set(TuneOutcome) - OF_TUNE <= words
