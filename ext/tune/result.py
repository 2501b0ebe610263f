# SPDX-License-Identifier: MIT
"""Makes one document from the results of a tuning."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from rtgauge.analysis import change_words
from rtgauge.analysis.gate_test import detectable
from rtgauge.errors import (
    EXIT_CANNOT_MEASURE,
    EXIT_CANNOT_TELL,
    EXIT_FAILS,
    EXIT_INTERRUPTED,
    EXIT_OK,
)
from rtgauge.explain.analysis.mechanisms import mechanisms
from rtgauge.record.alternation import BLOCK
from rtgauge.record.model import Step, Verdict, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.record.strict_model import Model
from rtgauge.units import NS_PER_S, format_duration, format_span, plural
from rtgauge.verdict.decision import judge
from rtgauge.verdict.exit_status import worst
from rtgauge.verdict.run_verdict import exposure_of
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.costs import costs, isolated_in, of_the_rest
from rtgauge_ext.tune.gain import format_gain
from rtgauge_ext.tune.search import FALSE_KEEP, PairOutcome, PairTest, Purpose, rule_id
from rtgauge_ext.tune.tuning_options import TuningOptions
from rtgauge_ext.tune.tuning_study import Played, deployment, play


class TuneOutcome(StrEnum):
    """The possible answers of a tuning."""

    HOLDS = "holds as it is"
    FIXED = "fixed"
    BETTER = change_words.BETTER
    NOTHING = "no gain shown"
    CANNOT_TELL = change_words.CANNOT_TELL
    NOTHING_TO_TRY = "nothing to try"
    NOT_MEASURED = change_words.NOT_MEASURED
    UNFINISHED = change_words.UNFINISHED


class TestFigures(Model):
    """One test of settings. `gain`: 0.5 means that the baseline's value is 1.5 times the candidate's."""

    purpose: Purpose
    changed: list[str]
    """Settings that differ between the baseline and the candidate."""
    baseline: list[str]
    candidate: list[str]
    found: PairOutcome
    pairs: int
    gain: float
    low: float | None
    """Lower end of the gain's confidence interval, corrected for repeated tests; the true gain is below it
    with the probability `error`.
    """
    high: float | None
    error: float
    """Probability that the test says `better` (or `worse`) although the sides do not differ; also the
    probability that the true gain is beyond one given end of its interval.
    """
    would_show: float | None = None
    """Smallest gain that a test with this many pairs would show in nine of ten cases."""


class KeptSetting(Model):
    """A setting to keep, and the test that proved it (None: it was only proven together with others)."""

    rule: str
    title: str
    found: str
    """The value that the machine had before."""
    cost: str
    against: str | None
    """Published advice against the setting."""
    test: TestFigures | None


class Level(Model):
    """An attempt with fewer or more isolated CPUs, together with the other kept settings."""

    cpus: str
    """The isolated CPUs; empty: none."""
    verdict: Verdict
    rest: list[str]
    """Sentences that compare the loads' throughput and the energy with the original settings."""
    kept: bool


class TuneResult(Model):
    """The document of `rtgauge tune --json`."""

    outcome: TuneOutcome
    status: int
    """The exit status of the command."""
    conclusion: str
    record: str
    requirement: str
    before: Verdict | None
    """Worst verdict with the settings that the machine had before."""
    after: Verdict | None
    """Worst verdict with the kept settings."""
    culprits: list[str]
    """What made it late: mechanisms with the names of their culprits."""
    kept: list[KeptSetting]
    deployment: str
    """The kept settings as a value for --deployment; as-is: none were kept."""
    tests: list[TestFigures]
    confirmed: PairOutcome | None
    """Result of the test under loads that the search did not use."""
    confirm_loads: list[str]
    daemons: list[str] = Field(default=[])
    """Daemons that would undo settings; rtgauge stops them during trials."""
    costs: list[str]
    """Sentences on what the kept settings cost in CPUs, loads' throughput and energy."""
    isolated: list[Level] = Field(default=[])
    """Results of the search for the smallest number of isolated CPUs, the smallest first."""
    runs: int
    out_of_budget: bool
    left: list[str] = Field(default=[])
    """Settings whose tests had not ended when the budget ran out."""
    budget_s: float | None = None
    """The budget that the whole search would need, in seconds."""
    false_keep: float = FALSE_KEEP
    left_out: list[str]
    next: str | None = None

    @property
    def helps(self) -> bool:
        """Whether the tuning ended, and showed that the kept settings help."""
        return bool(self.kept) and self.outcome in {TuneOutcome.FIXED, TuneOutcome.BETTER}

    @staticmethod
    def of(record: Record) -> TuneResult:
        """Return the result of a record, finished or not. Raises InputError if it is not of a tuning."""
        played = play(record)
        tuned, options = played.search.result, played.options
        after = _verdict(record, played, tuned.final) if tuned.final else None
        confirmed = tuned.confirmation
        virtual = any(system.machine.virtual is True for system in record.systems.values())
        empty = TuneResult(
            outcome=TuneOutcome.UNFINISHED,
            status=EXIT_INTERRUPTED,
            conclusion="",
            record=str(record.path),
            requirement=options.requirement,
            before=_verdict(record, played, ()),
            after=after,
            culprits=[known.title for known in mechanisms(played.culprits, virtual=virtual)],
            kept=[_kept(name, played) for name in tuned.final],
            deployment=deployment(tuned.final, options),
            tests=[figures(test) for test in tuned.tests],
            confirmed=None if confirmed is None else confirmed.found,
            confirm_loads=options.confirm_loads,
            daemons=options.daemons,
            costs=costs(record.steps, deployment(tuned.final, options)) if tuned.final else [],
            isolated=_levels(record, played),
            runs=len(played.runs),
            out_of_budget=tuned.out_of_budget,
            left=list(tuned.left),
            budget_s=tuned.left_runs * options.run_s if tuned.left else None,
            left_out=[
                *(f"{left.what}: {left.reason}" for left in record.run.left_out),
                *(f"setting {name}: the machine refused it ({why})" for name, why in tuned.refused.items()),
            ],
        )
        return _concluded(empty, record, played)

    def ending(
        self, outcome: TuneOutcome, status: int, conclusion: str, next_: str | None = None
    ) -> TuneResult:
        """Return this document with its answer."""
        update = {"outcome": outcome, "status": status, "conclusion": conclusion, "next": next_}
        return self.model_copy(update=update)


def figures(test: PairTest) -> TestFigures:
    """Return a test as the document shows it."""
    decision = test.decision
    enough = decision.spread is not None and decision.pairs >= BLOCK
    return TestFigures(
        purpose=test.purpose,
        changed=list(test.changed),
        baseline=list(test.baseline),
        candidate=list(test.candidate),
        found=test.found,
        pairs=decision.pairs,
        gain=decision.change,
        low=decision.low if decision.low is None or math.isfinite(decision.low) else None,
        high=decision.high if decision.high is None or math.isfinite(decision.high) else None,
        error=test.error,
        would_show=detectable(decision.spread, decision.pairs, test.error)
        if enough and decision.spread is not None
        else None,
    )


def _levels(record: Record, played: Played) -> list[Level]:
    """Return every tried number of isolated CPUs; empty if the smallest number was not searched, or if
    nothing helps.
    """
    options, tuned = played.options, played.search.result
    levels: list[Level] = []
    for rule, forms in options.fewer.items() if tuned.final or tuned.met_before else ():
        kept = next((name for name in tuned.final if rule_id(name) == rule), None)
        others = [name for name in tuned.final if name != kept]
        for form in (None, *forms, rule):
            settings = [*others, form] if form is not None else others
            verdict = _verdict(record, played, settings)
            if verdict is not None:
                named = deployment(settings, options)
                cpus = isolated_in(record.steps, named)
                rest = of_the_rest(record.steps, named) if settings else []
                levels.append(Level(cpus=cpus, verdict=verdict, rest=rest, kept=form == kept))
    return levels


def _kept(name: str, played: Played) -> KeptSetting:
    name = rule_id(name)
    rule = tried_rules()[name]
    proofs = [
        test
        for test in played.search.result.tests
        if test.purpose in {Purpose.REMEDY, Purpose.PROOF} and test.changed == (name,)
    ]
    trial = rule.trial
    return KeptSetting(
        rule=name,
        title=rule.title,
        found=next(choice.found for choice in played.options.choices if choice.rule == name),
        cost="" if trial is None else trial.cost,
        against=None if trial is None else trial.against,
        test=figures(proofs[-1]) if proofs and name in played.search.result.kept else None,
    )


def steps_with(record: Record, played: Played, settings: Sequence[str]) -> list[Step]:
    """Return the steps of the runs with exactly these settings, including the confirmation."""
    numbers = {number for number, visit in enumerate(played.runs, 1) if set(visit.settings) == set(settings)}
    return [step for step in record.steps if step.key.repeat in numbers]


def _verdict(record: Record, played: Played, settings: Sequence[str]) -> Verdict | None:
    """Return the worst verdict on the runs with exactly these settings, including the confirmation, and their
    joint exposure. None if there are no such runs.
    """
    bound = played.options.bound
    judged = [
        (step, judge(bound, step, record.windows(step), record.system(step.key.targets["self"])))
        for step in steps_with(record, played, settings)
    ]
    decisive = worst([verdict for _, verdict in judged])
    if decisive is None:
        return None
    return decisive.model_copy(update={"exposure": exposure_of(bound, judged, record.run)})


STATUS = {
    VerdictWord.HOLDS: EXIT_OK,
    VerdictWord.FAILS: EXIT_FAILS,
    VerdictWord.MARGINAL: EXIT_CANNOT_TELL,
    VerdictWord.CANNOT_TELL: EXIT_CANNOT_TELL,
}


def _longer(options: TuningOptions) -> str:
    """Return the command, or the words, that measure for 10 min what was tuned."""
    bound = shlex.quote(options.requirement)
    if options.pid is not None:
        return f"rtgauge watch --pid {options.pid} --require {bound} --duration 10min"
    if options.interface is not None:
        return f"the path that was tuned, with --require {bound} --duration 10min"
    cpus = f" --cpu {options.cpus}" if options.cpus is not None else ""
    return f"rtgauge run --require {bound} --load {','.join(options.loads)}{cpus} --set duration=10min"


def _concluded(result: TuneResult, record: Record, played: Played) -> TuneResult:
    tuned, options = played.search.result, played.options
    again = f"rtgauge resume {shlex.quote(str(record.path))}"
    spent = f"{plural(len(played.runs), 'run')}, {format_span(len(played.runs) * options.run_s)}"
    if played.awaits_boot:
        return result.ending(
            TuneOutcome.UNFINISHED,
            EXIT_INTERRUPTED,
            f"{', '.join(tuned.final)} made the machine better ({spent}); this must be confirmed after "
            f"another boot",
            f"reboot the machine, then {again}",
        )
    if not tuned.finished:
        if record.run.state == "complete":
            why = "; ".join(result.left_out) or "the steps of the next test were left out"
            return result.ending(TuneOutcome.NOT_MEASURED, EXIT_CANNOT_MEASURE, why)
        return result.ending(TuneOutcome.UNFINISHED, EXIT_INTERRUPTED, f"unfinished after {spent}", again)
    before = STATUS[result.before.word] if result.before is not None else EXIT_CANNOT_MEASURE
    if not tuned.measured_before:
        why = "; ".join(result.left_out) or "the machine could not be measured with its present settings"
        return result.ending(TuneOutcome.NOT_MEASURED, EXIT_CANNOT_MEASURE, why)
    if tuned.met_before:
        word = result.before.word if result.before is not None else VerdictWord.CANNOT_TELL
        holds = word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}
        why = ", but only just" if word is VerdictWord.MARGINAL else ""
        return result.ending(
            TuneOutcome.HOLDS if holds else TuneOutcome.CANNOT_TELL,
            before,
            f"the first run met the requirement{why}, so nothing was tried"
            if holds
            else "the deciding value of the first run is within the bound, so nothing was tried, but the run "
            "cannot show that the requirement holds",
            f"measure for longer: {_longer(options)}",
        )
    if not options.choices:
        return result.ending(
            TuneOutcome.NOTHING_TO_TRY,
            before,
            "the machine already has every setting that can be tried",
            "see which settings need a boot: rtgauge tune --dry-run",
        )
    if not tuned.final and tuned.left:
        budget = format_duration(math.ceil(tuned.left_runs * options.run_s / 60) * 60 * NS_PER_S)
        return result.ending(
            TuneOutcome.CANNOT_TELL,
            EXIT_CANNOT_TELL,
            f"the budget ran out after {plural(len(result.tests), 'test')}, with "
            f"{plural(len(tuned.left), 'setting')} left to try; rtgauge kept nothing and restored every "
            "setting",
            f"{again} --budget {budget}",
        )
    if not tuned.final:
        by_boot = record.run.plan.get("deployments-by") == "boot"
        shown = [test.would_show for test in result.tests if test.would_show is not None]
        would = (
            f"; a gain of {format_gain(max(shown))} would have shown in nine of ten cases" if shown else ""
        )
        return result.ending(
            TuneOutcome.NOTHING,
            before,
            f"none of the settings{'' if by_boot else ' that work without a boot'} showed a gain ({spent})"
            f"{would}; rtgauge restored every setting",
            None if by_boot else "see which settings need a boot: rtgauge tune --dry-run",
        )
    word = result.after.word if result.after is not None else VerdictWord.CANNOT_TELL
    names = ", ".join(tuned.final)
    apart = (
        f"; {', '.join(tuned.together)} help together, but the budget ran out before rtgauge knew which of "
        "them matter"
        if tuned.together
        else ""
    )
    confirmed = _confirmation(result, booted=options.confirm_after_boot)
    if tuned.confirmation is not None and tuned.confirmation.found is PairOutcome.WORSE:
        return result.ending(
            TuneOutcome.NOTHING,
            EXIT_FAILS,
            f"{names} helped, but made latencies worse{confirmed}; do not keep this",
        )
    outcome = TuneOutcome.FIXED if word is VerdictWord.HOLDS else TuneOutcome.BETTER
    held = sum(set(visit.settings) == set(tuned.final) for visit in played.runs)
    judged = {
        VerdictWord.HOLDS: f"the requirement then holds in each of {plural(held, 'run')}",
        VerdictWord.MARGINAL: "the requirement then only just holds",
        VerdictWord.CANNOT_TELL: "longer runs must show whether the requirement then holds",
        VerdictWord.FAILS: "the requirement still fails",
    }[word]
    return result.ending(
        outcome,
        STATUS[word],
        f"{names}: {judged}{apart}; {confirmed}",
        f'rtgauge deploy apply "{result.deployment}"',
    )


def _confirmation(result: TuneResult, *, booted: bool) -> str:
    loads = ", ".join(result.confirm_loads) + (", after another boot" if booted else "")
    if result.confirmed is None:
        return f"not confirmed under {loads}"
    test = result.tests[-1]
    words = {
        PairOutcome.BETTER: f"confirmed under {loads} ({format_gain(test.gain)})",
        PairOutcome.WORSE: f" under {loads} ({format_gain(test.gain)})",
        PairOutcome.NO_DIFFERENCE: f"rtgauge did not find a difference under {loads}",
        PairOutcome.NOT_MEASURED: f"the confirmation could not be measured under {loads}",
        PairOutcome.REFUSED: f"the machine refused the settings under {loads}",
    }
    return words[result.confirmed]
