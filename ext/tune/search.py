# SPDX-License-Identifier: MIT
"""Decides, from earlier measurements, which settings to measure next and which to keep. It measures nothing
itself.

It first tests the culprits' remedies, then everything together, then halves, until each remaining setting has
a test of its own. A test is a group sequential test on pairs of runs, in random balanced order
(`analysis/gate_test.py`). All tests that can keep a setting share one error level (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rtgauge.analysis import change_words
from rtgauge.analysis.gate_test import Decision, Outcome, decide
from rtgauge.plan.alternating_plan import first_sides
from rtgauge.record.alternation import BLOCK, DEFAULT_PAIRS, most_measured

FALSE_KEEP = 0.01
"""The probability that a whole tuning keeps a setting that does not help."""
OTHER_ERROR = 0.01
"""The error level of the tests that keep no setting: whether a setting hurts, and the confirmation."""
MOST_REMEDIES = 3


class PairOutcome(StrEnum):
    """What a test shows about its candidate."""

    BETTER = change_words.BETTER
    WORSE = change_words.WORSE
    NO_DIFFERENCE = change_words.NOT_SHOWN
    NOT_MEASURED = change_words.NOT_MEASURED
    REFUSED = "refused by the machine"


class Purpose(StrEnum):
    """The purpose of a test."""

    REMEDY = "remedy of a culprit"
    GROUP = "all together"
    PART = "a part of them"
    LEAVE_OUT = "left out"
    FEWER = "fewer isolated CPUs"
    PROOF = "proof"
    CONFIRMATION = "under another load"


Settings = tuple[str, ...]
"""Ids of rules. `isolated-cpus=3` is a rule with only some of the real-time CPUs."""


def rule_id(setting: str) -> str:
    """Return the id of the setting's rule."""
    return setting.partition("=")[0]


@dataclass(frozen=True)
class Visit:
    """A run: the settings in force, and the loads."""

    settings: Settings
    loads: Sequence[str]
    explained: bool = False


@dataclass(frozen=True)
class VisitResult:
    """What a run showed: the deciding value (ns), and whether it met the requirement. None: the run does not
    count. `refused`: setting -> the reason why the machine refused it.
    """

    value_ns: float | None
    meets: bool = False
    refused: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class PairTest:
    """A test of `candidate` against `baseline`. `decision` is about ln(baseline / candidate). Its interval
    has the error of the test.
    """

    purpose: Purpose
    baseline: Settings
    candidate: Settings
    found: PairOutcome
    decision: Decision
    error: float
    """The chance of a wrong `found` if the settings make no difference, and of each end of the interval."""
    meets: bool
    """Whether every run of the candidate met the requirement."""
    baseline_meets: bool = False

    @property
    def changed(self) -> Settings:
        """The settings that differ between the sides."""
        return _changed(self.baseline, self.candidate)


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search. `candidates`: rules by id, the most promising first, with their conflicts.

    `most_runs`: the budget in runs, including the confirmation. `larger_than`: the smallest gain that
    matters: 0.2 is 20 %.
    """

    candidates: Mapping[str, Sequence[str]]
    loads: Sequence[str]
    confirm_loads: Sequence[str]
    most_runs: int
    seed: int
    larger_than: float = 0.2
    max_pairs: int = DEFAULT_PAIRS
    fewer: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Setting -> its variants that cost less and may be enough, the cheapest first."""


@dataclass
class Tuned:
    """The result of a search. `kept`: settings that were each proven alone. `together`: settings that help
    together, when there was no time to find out which of them do. `refused`: setting -> why the machine
    refused it. `left`: settings that were not tried to the end when the budget ran out, and `left_runs`: how
    many runs the whole search takes at most.
    """

    met_before: bool = False
    kept: Settings = ()
    together: Settings = ()
    tests: list[PairTest] = field(default_factory=list[PairTest])
    confirmation: PairTest | None = None
    refused: dict[str, str] = field(default_factory=dict[str, str])
    left: Settings = ()
    left_runs: int = 0
    out_of_budget: bool = False
    finished: bool = False
    measured_before: bool = False

    @property
    def final(self) -> Settings:
        """The settings to keep."""
        return (*self.kept, *self.together)


Visits = Generator[Sequence[Visit], Sequence[VisitResult], None]


class _OutOfBudget(Exception):  # noqa: N818 - an end like others
    """The budget is too small for another test."""


class TuningSearch:
    """A search. `result` grows while the caller drives `visits`."""

    def __init__(self, options: SearchOptions) -> None:
        self._options = options
        self._runs = 0
        self._tested: set[str] = set()
        """Settings that need no further test."""
        self.suspects: Sequence[str] = ()
        """The remedies of the culprits, the worst culprit first. Set this after the first run."""
        self.result = Tuned()

    def visits(self) -> Visits:
        """Yield the next runs, and receive their results in the same order."""
        first = (yield from self._measured([Visit((), self._options.loads, explained=True)]))[0]
        self.result.measured_before = first.value_ns is not None
        self.result.met_before = first.meets
        if self._options.candidates and self.result.measured_before and not first.meets:
            try:
                yield from self._search()
                yield from self._fewest()
            except _OutOfBudget:
                self.result.out_of_budget = True
            if self.result.out_of_budget:
                self._note_left()
            if self.result.final:
                yield from self._confirm()
        self.result.finished = True

    def _search(self) -> Visits:
        for name in [each for each in self.suspects if each in self._options.candidates][:MOST_REMEDIES]:
            if name not in self.result.refused and self._fits((*self.result.kept, name)):
                test = yield from self._proven(name)
                self._note_tested([name])
                if test.found is PairOutcome.BETTER and test.meets:
                    return
        left = [name for name in self._options.candidates if name not in self.result.kept]
        # Settings that conflict with the others form a group of their own.
        while rest := self._fitting([name for name in left if name not in self.result.refused]):
            helpful = yield from self._helping(self.result.kept, rest, Purpose.GROUP)
            yield from self._prove_each(helpful)
            last = self.result.tests[-1]
            if last.found is PairOutcome.BETTER and last.meets:
                return
            self._note_tested(rest)
            left = [name for name in left if name not in rest]

    def _note_tested(self, names: Sequence[str]) -> None:
        """Note that these settings need no further test, unless the budget cut their test short."""
        if not self.result.out_of_budget:
            self._tested.update(names)

    def _note_left(self) -> None:
        """Note which settings the budget left untried, and how many runs the whole search takes at most: a
        test of each remaining remedy, of all others together and of each half, and the confirmation.
        """
        known = {*self._tested, *self.result.final, *self.result.refused}
        left = tuple(name for name in self._options.candidates if name not in known)
        remedies = sum(name in left for name in self.suspects[:MOST_REMEDIES])
        self.result.left = left
        self.result.left_runs = self._runs + (remedies + 3) * 2 * self._options.max_pairs + 2 * BLOCK

    def _accepted(self, names: Sequence[str]) -> Settings:
        """Return the settings that the machine has not refused."""
        return tuple(name for name in names if name not in self.result.refused)

    def _fitting(self, names: Sequence[str]) -> Settings:
        """Return as many of these settings, in order, as can be in force together with the kept ones."""
        fitting: Settings = ()
        for name in names:
            if self._fits((*self.result.kept, *fitting, name)):
                fitting = (*fitting, name)
        return fitting

    def _proven(self, name: str) -> Generator[Sequence[Visit], Sequence[VisitResult], PairTest]:
        """Test one setting in addition to the kept ones; keep it if it helps."""
        base = self.result.kept
        purpose = Purpose.REMEDY if name in self.suspects else Purpose.PROOF
        test = yield from self._test(purpose, base, (*base, name), self._keep_error)
        if test.found is PairOutcome.BETTER:
            self.result.kept = (*base, name)
        return test

    def _helping(
        self, base: Settings, group: Settings, purpose: Purpose, *, halves: bool = True
    ) -> Generator[Sequence[Visit], Sequence[VisitResult], Settings]:
        """Return the smallest part found of a group that helps in addition to `base`; empty if none does.

        `halves`: test the halves of a group that makes no difference, because one may hide the other.
        """
        test = yield from self._test(purpose, base, (*base, *group), self._keep_error)
        group = self._accepted(group)
        if test.found is PairOutcome.BETTER:
            self.result.together = (*self.result.together, *group)
            return (yield from self._smallest(base, group))
        same = test.found is PairOutcome.NO_DIFFERENCE
        if len(group) <= 1 or (same and not halves):
            return ()
        # If the group hurts or cannot be set, one setting may be the cause: try the others without it.
        half = len(group) // 2
        first = yield from self._helping(base, group[:half], Purpose.PART, halves=not same)
        second = yield from self._helping((*base, *first), group[half:], Purpose.PART, halves=not same)
        return (*first, *second)

    def _smallest(
        self, base: Settings, group: Settings
    ) -> Generator[Sequence[Visit], Sequence[VisitResult], Settings]:
        """Return a group that helps in addition to `base`, without the halves that are not needed."""
        if len(group) == 1:
            return group
        half = len(group) // 2
        for kept, dropped in ((group[half:], group[:half]), (group[:half], group[half:])):
            test = yield from self._test(
                Purpose.LEAVE_OUT, (*base, *group), (*base, *kept), OTHER_ERROR, aim=PairOutcome.WORSE
            )
            if test.found is not PairOutcome.WORSE:
                self.result.together = tuple(name for name in self.result.together if name not in dropped)
                return (yield from self._smallest(base, kept))
        first = yield from self._smallest((*base, *group[half:]), group[:half])
        second = yield from self._smallest((*base, *first), group[half:])
        return (*first, *second)

    def _prove_each(self, settings: Settings) -> Visits:
        """Keep each of these settings that the others need: without it, the result must be worse."""
        self.result.together = settings
        left = settings
        for name in settings:
            others = (*self.result.kept, *(each for each in left if each != name))
            test = yield from self._test(Purpose.PROOF, others, (*others, name), self._keep_error)
            left = tuple(each for each in left if each != name)
            if test.found is PairOutcome.BETTER:
                self.result.kept = (*self.result.kept, name)
            self.result.together = left

    def _fewest(self) -> Visits:
        """Find, by halving, a setting's cheapest variant that is as good or also meets the requirement."""
        for name in [each for each in self.result.final if each in self._options.fewer]:
            full, forms = name, self._options.fewer[name]
            # A variant below `low` is not enough. The setting itself comes after the last variant.
            low, high = 0, len(forms)
            while low < high:
                middle = (low + high) // 2
                final = self.result.final
                test = yield from self._test(
                    Purpose.FEWER,
                    final,
                    _replaced(final, full, forms[middle]),
                    OTHER_ERROR,
                    aim=PairOutcome.WORSE,
                )
                as_good = test.found in {PairOutcome.NO_DIFFERENCE, PairOutcome.BETTER}
                if as_good and (test.meets or not test.baseline_meets):
                    self.result.kept = _replaced(self.result.kept, full, forms[middle])
                    self.result.together = _replaced(self.result.together, full, forms[middle])
                    full, high = forms[middle], middle
                else:
                    low = middle + 1

    def _confirm(self) -> Visits:
        """Test the final settings under loads that the search did not use."""
        final = self.result.final
        self.result.confirmation = yield from self._test(
            Purpose.CONFIRMATION, (), final, OTHER_ERROR, loads=self._options.confirm_loads, reserved=0
        )

    @property
    def _keep_error(self) -> float:
        # Each setting has at most two tests of its own, as a remedy and at the end. N settings have fewer
        # than 2 N groups of halves.
        return FALSE_KEEP / (4 * len(self._options.candidates))

    def _fits(self, settings: Settings) -> bool:
        """Return whether no two of these settings conflict."""
        return not any(other in self._options.candidates[name] for name in settings for other in settings)

    def _measured(
        self, visits: Sequence[Visit]
    ) -> Generator[Sequence[Visit], Sequence[VisitResult], list[VisitResult]]:
        self._runs += len(visits)
        results = yield visits
        return list(results)

    def _test(
        self,
        purpose: Purpose,
        baseline: Settings,
        candidate: Settings,
        error: float,
        *,
        aim: PairOutcome = PairOutcome.BETTER,
        loads: Sequence[str] | None = None,
        reserved: int = 2 * BLOCK,
    ) -> Generator[Sequence[Visit], Sequence[VisitResult], PairTest]:
        """Measure pairs of runs of both sides until the test decides.

        `reserved`: how many runs to leave for the confirmation. Raises _OutOfBudget if the budget is too
        small for the first pairs.
        """
        options = self._options
        changed = _changed(baseline, candidate)
        gains: list[float] = []
        meets = {0: True, 1: True}
        planned = 0
        sign = 1 if aim is PairOutcome.BETTER else -1
        while True:
            if self._runs + 2 * BLOCK + reserved > options.most_runs:
                if not planned:
                    raise _OutOfBudget
                self.result.out_of_budget = True
                break
            firsts = first_sides(options.seed + len(self.result.tests), planned // BLOCK)
            planned += BLOCK
            sides = [side for first in firsts for side in (first, 1 - first)]
            visits = [Visit((baseline, candidate)[side], loads or options.loads) for side in sides]
            results = yield from self._measured(visits)
            for visit_result in results:
                self.result.refused.update(visit_result.refused)
            if not self._accepted(changed):
                break
            for at in range(0, len(results), 2):
                pair = {sides[at]: results[at], sides[at + 1]: results[at + 1]}
                before_ns, after_ns = pair[0].value_ns, pair[1].value_ns
                if before_ns and after_ns:
                    gains.append(math.log(before_ns / after_ns))
                    meets = {side: meets[side] and visit_result.meets for side, visit_result in pair.items()}
            if len(gains) >= BLOCK:
                better, worse = self._decisions(gains, error)
                mean = sum(gains) / len(gains)
                decided = (
                    Outcome.WORSE in (better.outcome, worse.outcome)
                    or len(gains) >= options.max_pairs
                    or sign * mean < math.log1p(options.larger_than)
                )
                if decided:
                    break
            elif planned >= options.max_pairs:
                break
            if planned >= most_measured(options.max_pairs):
                break
        test = self._judged(purpose, baseline, candidate, gains, error, meets)
        self.result.tests.append(test)
        return test

    def _decisions(self, gains: Sequence[float], error: float) -> tuple[Decision, Decision]:
        """Return two decisions: whether the candidate is better, and whether it is worse. In both, the gate's
        outcome WORSE means yes.
        """
        options = self._options
        better, worse = (
            decide(
                [sign * gain for gain in gains],
                larger_than=options.larger_than,
                max_pairs=options.max_pairs,
                error=of_sign,
                same_error=True,
            )
            for sign, of_sign in ((1, error), (-1, OTHER_ERROR))
        )
        return better, worse

    def _judged(
        self,
        purpose: Purpose,
        baseline: Settings,
        candidate: Settings,
        gains: Sequence[float],
        error: float,
        meets: Mapping[int, bool],
    ) -> PairTest:
        better, worse = self._decisions(gains, error)
        outcome, decision = PairOutcome.NO_DIFFERENCE, better
        if not self._accepted(_changed(baseline, candidate)):
            outcome = PairOutcome.REFUSED
        elif len(gains) < BLOCK:
            outcome = PairOutcome.NOT_MEASURED
        elif better.outcome is Outcome.WORSE:
            outcome = PairOutcome.BETTER
        elif worse.outcome is Outcome.WORSE:
            outcome, error = PairOutcome.WORSE, OTHER_ERROR
            decision = decide(
                gains,
                larger_than=self._options.larger_than,
                max_pairs=self._options.max_pairs,
                error=error,
                same_error=True,
            )
        return PairTest(
            purpose,
            baseline,
            candidate,
            outcome,
            decision,
            error,
            meets[1] and bool(gains),
            meets[0] and bool(gains),
        )


def _changed(baseline: Settings, candidate: Settings) -> Settings:
    """Return the settings that differ between the sides."""
    every = dict.fromkeys((*baseline, *candidate))
    return tuple(name for name in every if (name in baseline) != (name in candidate))


def _replaced(settings: Settings, old: str, new: str) -> Settings:
    return tuple(new if name == old else name for name in settings)
