# SPDX-License-Identifier: MIT
"""The commands that a verdict advises can be given as they are: every option of them exists."""

from __future__ import annotations

import functools
import shlex
from dataclasses import replace

import pytest
import typer

from rtgauge.cli.main import app
from rtgauge.probe.descriptor import key_names, normalise
from rtgauge.probe.notation import SAMPLES
from rtgauge.probe.notation import options_of as written_options
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.facts import Facts
from rtgauge.record.model import LeftOut, Result, Severity
from rtgauge.record.probe_parameters import Parameters
from rtgauge.verdict.next_step import Blame, NextStep, PastRun
from rtgauge.verdict.requirement import parse_requirement
from tests.unit.records import mark, run, step

RT = Facts.model_validate({"kernel": {"preemption": {"model": "PREEMPT_RT"}}})
JUDGED = [probe.name for probe in PROBES.values() if probe.takes_requirement]


@functools.cache
def options_of(*words):
    """The options of `rtgauge WORDS`."""
    command = typer.main.get_command(app)
    for word in words:
        command = command.get_command(None, word).made
    return {name for parameter in command.params for name in parameter.opts}


def check(advice, probe):
    for command in advice.split("rtgauge ")[1:]:
        words = shlex.split(command.split("; ")[0].split(", then")[0])
        if words[0] not in ("run", "probe", "watch"):
            continue
        known = options_of(*words[:2] if words[0] == "probe" else words[:1])
        words = words[: words.index("--")] if "--" in words else words
        for at, word in enumerate(words):
            if word == "--set":
                assert words[at + 1].partition("=")[0] in key_names(PROBES[probe]), advice
            elif word.startswith("--"):
                assert word in known, advice


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        *(("run", name) for name in JUDGED),
        *(("watch" if PROBES[name].command is None else "probe", name) for name in JUDGED),
    ],
)
def test_every_option_of_an_advice_exists(name, verb):
    probe = PROBES[name]
    requirement = parse_requirement(
        next(metric.bound.example for metric in probe.metrics if metric.bound is not None)
    )
    for parameters in (
        {"policy": "other"},
        {"policy": "fifo", "dma_latency_us": -1},
        {"policy": "fifo", "dma_latency_us": 0},
    ):
        for load in ("idle", "cpu"):
            recorded, _ = step([5], load=load, parameters=parameters)
            recorded = recorded.model_copy(update={"key": recorded.key.model_copy(update={"probe": name})})
            command = {
                "run": ["rtgauge", "run", "plan.toml"],
                "probe": ["rtgauge", "probe", name],
                "watch": ["rtgauge", "watch", "--", "cmd", "--own"],
            }[verb]
            past_run = PastRun.of_run(run().model_copy(update={"command": command}), [recorded], recorded)
            following = NextStep(past_run, recorded, requirement, Facts())
            for facts in (
                {},
                {"kernel": {"preemption": {"model": "voluntary"}}},
                {"kernel": {"preemption": {"model": "PREEMPT_RT"}}},
            ):
                following = NextStep(past_run, recorded, requirement, Facts.model_validate(facts))
                check(following.for_failure(), name)
            for advice in (
                following.with_more(10**12),
                following.with_more(None),
                following.when_close(),
                following.when_held(),
            ):
                check(advice, name)


def test_a_note_is_no_reason_to_doubt():
    recorded, _ = step([5], marks=[mark("steal", Severity.NOTE)])
    past_run = PastRun.of_step(recorded)
    facts = Facts.model_validate({"kernel": {"preemption": {"model": "PREEMPT_RT"}}})
    assert "isolate" in NextStep(past_run, recorded, parse_requirement("latency<=1us"), facts).for_failure()


def test_what_the_run_refused_is_not_proposed():
    recorded, _ = step([5])
    refused = [LeftOut(what=what, reason="-", remedy="-") for what in ("deployment MI", "load memory")]
    past_run = PastRun.of_run(run().model_copy(update={"left_out": refused}), [recorded], recorded)
    following = NextStep(past_run, recorded, parse_requirement("latency<=1us"), RT)
    assert "MI" not in following.for_failure()
    assert "--load idle,cpu,network" in following.when_held()


@pytest.mark.parametrize("verb", ["gate", "tune", "bisect"])
@pytest.mark.parametrize("name", JUDGED)
def test_what_another_command_measured_is_measured_by_its_probe(name: str, verb: str):
    """The step's own probe, with the parameters that it had, under its load and on its target."""
    probe, (changed, _) = PROBES[name], step([5], load="cpu")
    targets = {"self": "ssh://board"}
    key = changed.key.model_copy(update={"probe": name, "targets": targets})
    changed = changed.model_copy(update={"key": key})
    past_run = PastRun.of_run(run().model_copy(update={"command": ["rtgauge", verb]}), [changed], changed)
    expected = "rtgauge run" if name == "wakeup" else probe.called
    command = " ".join(past_run.command)
    assert command.startswith(expected)
    assert command.endswith("--target ssh://board")
    assert ("--load cpu" in command) is (probe.command is not None and name != "wakeup")
    check(NextStep(past_run, changed, parse_requirement("latency<=1us"), RT).with_more(None), name)


@pytest.mark.parametrize("name", [name for name in JUDGED if not PROBES[name].watches])
def test_parameters_are_written_as_the_command_reads_them(name: str):
    """Each example of a probe's help, read, written and read again."""
    probe, command = PROBES[name], typer.main.get_command(app)
    for word in probe.called.split()[1:]:
        command = command.get_command(None, word).made

    def read(words: list[str]) -> Parameters:
        given = command.make_context(name, words).params
        values = {each.alias: given.get(key) for key, each in probe.parameters.model_fields.items()}
        files = {SAMPLES, *probe.files}
        values = {key: value for key, value in values.items() if value is not None and key not in files}
        return normalise(probe, values, "the command")

    for example in probe.examples:
        if "--live" not in shlex.split(example):
            parameters = read(shlex.split(example))
            assert read(written_options(probe, parameters)).values == parameters.values


def test_an_imported_steps_advice_is_about_its_machine():
    recorded, _ = step([5])
    recorded = recorded.model_copy(update={"end_reason": "imported"})
    following = NextStep(
        PastRun.of_run(run(), [recorded], recorded), recorded, parse_requirement("latency<=1us"), RT
    )
    for advice in (following.for_failure(), following.when_held(), following.with_more(None)):
        assert advice.endswith("(on the machine that was measured)")


def test_a_watched_thread_gets_a_priority_before_marks():
    recorded, _ = step([5], marks=[mark("switches-missing", Severity.DOUBTFUL)])
    recorded = recorded.model_copy(
        update={"results": [Result(name="thread", labels={"task": "control"}, values={"policy": "other"})]}
    )
    following = NextStep(
        PastRun.of_step(recorded), recorded, parse_requirement("latency<=1us"), RT, "control"
    )
    assert following.for_failure().startswith("give thread control a real-time priority")
    assert "priority" not in replace(following, task="other").for_failure()


def test_a_program_that_ended_by_itself_has_to_run_for_longer():
    recorded, _ = step([5])
    recorded = recorded.model_copy(update={"end_reason": "program-ended"})
    following = NextStep(PastRun.of_step(recorded), recorded, parse_requirement("latency<=1us"), RT)
    for advice in (following.with_more(None), following.with_more(10**12), following.when_close()):
        assert advice.startswith("let the program run for longer, and ")


def test_a_mark_on_another_metric_is_not_what_to_mend():
    doubt = mark("switches-missing", Severity.DOUBTFUL).model_copy(update={"series": 1})
    recorded, _ = step([5], marks=[doubt])
    other = recorded.series[0].model_copy(update={"series": 1, "metric": "execution"})
    recorded = recorded.model_copy(update={"series": [*recorded.series, other]})
    advice = NextStep(
        PastRun.of_step(recorded), recorded, parse_requirement("latency<=1us"), RT
    ).for_failure()
    assert "isolate a CPU" in advice


@pytest.mark.parametrize(("requirement", "proposed"), [("latency<=1us", True), ("gap<=1us", False)])
def test_a_poller_is_not_troubled_by_deep_c_states(requirement: str, proposed: bool):
    recorded, _ = step([5], parameters={"policy": "fifo", "dma_latency_us": -1})
    recorded = recorded.model_copy(update={"key": recorded.key.model_copy(update={"probe": "watch"})})
    advice = NextStep(PastRun.of_step(recorded), recorded, parse_requirement(requirement), RT).for_failure()
    assert ("C-states" in advice) is proposed


@pytest.mark.parametrize(
    ("deepest_us", "bound", "proposed"),
    [(None, "1ms", True), (100, "1ms", True), (99, "1ms", False), (890, "1ms", True), ("none", "1us", False)],
)
def test_c_states_are_proposed_if_exits_matter_for_the_bound(
    deepest_us: int | str | None, bound: str, proposed: bool
):
    recorded, _ = step([5], parameters={"policy": "fifo", "dma_latency_us": -1})
    facts = Facts.model_validate({"cpu": {"idle": {"deepest_latency_us": deepest_us}}})
    advice = NextStep(
        PastRun.of_step(recorded), recorded, parse_requirement(f"latency<={bound}"), facts
    ).for_failure()
    assert ("C-states" in advice) is proposed


@pytest.mark.parametrize(("worst_ns", "first"), [(900, False), (2_000, True)])
def test_a_culprit_that_breaks_the_bound_comes_before_marks(worst_ns: int, first: bool):
    recorded, _ = step([5], marks=[mark("steal", Severity.DOUBTFUL)])
    blame = Blame("task hog", 0.3, worst_ns, is_own_work=False, remedy="move hog")
    finished = replace(PastRun.of_step(recorded), blame_of=lambda _: blame)
    advice = NextStep(finished, recorded, parse_requirement("latency<=1us"), RT).for_failure()
    assert advice.startswith("move hog") is first


def test_the_options_of_a_watched_program_stay_its_own():
    recorded, _ = step([5])
    requirement = parse_requirement("latency<=1ms hardness=100%")
    past_run = PastRun.of_run(
        run().model_copy(
            update={"command": ["rtgauge", "watch", "--duration", "5s", "--", "control", "--duration", "1h"]}
        ),
        [recorded],
        recorded,
    )
    command = NextStep(past_run, recorded, requirement, Facts()).with_more(10**12).partition(": ")[2]
    assert command == f'rtgauge watch --duration 17min --require "{requirement}" -- control --duration 1h'
