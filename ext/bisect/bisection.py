# SPDX-License-Identifier: MIT
"""Finds the commit that made something slower. `git bisect` halves the commits, and each commit is compared
with runs of both ends.

The next run depends only on earlier runs and the seed, so that a stopped search can continue.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from rtgauge.analysis.gate_test import Decision, Outcome, decide, pairs_to_measure
from rtgauge.errors import EXIT_CANNOT_TELL, RtgaugeError
from rtgauge.plan.alternating_plan import first_side
from rtgauge.record.alternation import DEFAULT_PAIRS
from rtgauge.record.strict_model import Model
from rtgauge.units import format_change, format_time
from rtgauge_ext.bisect.git_commits import BisectedCommits
from rtgauge_ext.bisect.placing import Placement, Round, error_of_each, place


class BisectionOptions(Model):
    """The options of a search. `good` and `bad` are full commit hashes."""

    repository: str
    before: str
    """The branch or commit that was checked out before the search."""
    good: str
    bad: str
    command: list[str]
    """The command that builds and boots the checked-out commit."""
    larger_than: float = Field(default=0.1, gt=0)
    """The smallest change that matters: 0.1 is 10 %."""
    max_pairs: int = DEFAULT_PAIRS
    extended_from: tuple[int, ...] = ()
    """Earlier limits of the number of pairs, which rtgauge resume has raised since."""
    seed: int


class BisectRun(Model):
    """One run of a commit. `value_ns` is None if the commit could not be built or booted, or if nothing was
    measured.
    """

    commit: str
    value_ns: float | None
    record: str | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class BisectResult:
    """The first bad commit, or every commit that may be the first, with the decisions that led there.

    `ends`: the comparison of both ends. `placed`: commit -> the end that it behaves like. `skipped`: commit
    -> why it was skipped.
    """

    first_bad: Sequence[str]
    ends: Decision
    placed: dict[str, Placement]
    skipped: dict[str, str]


Measure = Callable[[str, str], BisectRun]
"""Builds, boots and measures a commit, and returns its run. The second argument names the commit's role in
messages, such as "candidate".
"""


@dataclass
class CommitSearch:
    """A search. `measure` builds, boots and measures a commit. `notify` prints a line for each decision.
    `pairs`: (good, bad) in ns of each pair of runs of the ends.
    """

    options: BisectionOptions
    commits: BisectedCommits
    measure: Measure
    notify: Callable[[str], None]
    pairs: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def result(self) -> BisectResult:
        """Search for the first bad commit.

        Raises RtgaugeError if an end gives no value, and with the status of "cannot tell" if the ends do not
        differ or a commit's value is between the values of the ends.
        """
        ends = self._ends()
        error = error_of_each(self.commits.count())
        placed: dict[str, Placement] = {}
        skipped: dict[str, str] = {}
        while (commit := self.commits.next()) is not None:
            placement = self._place(commit, error)
            if not isinstance(placement, Placement):
                skipped[commit] = placement
                self.commits.mark(commit, "skip")
                self.notify(f"{commit[:12]} skipped: {placement}")
                continue
            placed[commit] = placement
            if placement is Placement.BETWEEN:
                raise RtgaugeError(
                    f"the value of {commit[:12]} lies between the values of the two ends, so more than one "
                    "commit made the change; search on each side of it with --good or --bad",
                    EXIT_CANNOT_TELL,
                )
            self.commits.mark(commit, placement.value)
            self.notify(f"{commit[:12]} is {placement.value}")
        return BisectResult(self.commits.first_bad(), ends, placed, skipped)

    def _ends(self) -> Decision:
        """Compare both ends as a gate does. The bad end must be worse."""
        options = self.options
        while True:
            ratios = [math.log(bad / good) for good, bad in self.pairs]
            decision = decide(
                ratios,
                larger_than=options.larger_than,
                max_pairs=options.max_pairs,
                before=options.extended_from,
            )
            if decision.outcome is not Outcome.GO_ON:
                break
            measured = len(self.pairs)
            more = pairs_to_measure(measured, measured, options.max_pairs, options.extended_from)
            for pair in range(measured, measured + more):
                ends = [options.good, options.bad]
                order = ends[::-1] if first_side(options.seed, pair) else ends
                values = {commit: self._value_of_end(commit) for commit in order}
                self.pairs.append((values[options.good], values[options.bad]))
        change_text = f"{format_change(decision.change)} in {decision.pairs} pairs"
        if decision.outcome is not Outcome.WORSE:
            raise RtgaugeError(
                f"the ends do not differ enough to search between them: {options.bad[:12]} differs from "
                f"{options.good[:12]} by {change_text}; name other ends or another series, or measure "
                f"for longer (--duration)",
                EXIT_CANNOT_TELL,
            )
        self.notify(f"the ends differ: {change_text}")
        return decision

    def _place(self, commit: str, error: float) -> Placement | str:
        """Decide which end the commit resembles, or return why it is skipped."""
        options, rounds = self.options, list[Round]()
        while True:
            order = [commit, options.good, options.bad]
            random.Random(f"{options.seed} {commit} {len(rounds)}").shuffle(order)  # noqa: S311
            values: dict[str, float] = {}
            for each in order:
                if each != commit:
                    values[each] = self._value_of_end(each)
                    continue
                run = self.measure(commit, "candidate")
                if run.value_ns is None:
                    return run.why_not or "no value"
                values[each] = run.value_ns
                self.notify(f"{commit[:12]}: {format_time(round(run.value_ns))}")
            rounds.append(Round(values[commit], values[options.good], values[options.bad]))
            placement = place(self.pairs, rounds, error)
            if placement is not Placement.OPEN:
                self.pairs += [(each.good, each.bad) for each in rounds]
                return placement

    def _value_of_end(self, commit: str) -> float:
        word = "good" if commit == self.options.good else "bad"
        run = self.measure(commit, f"the {word} end")
        if run.value_ns is None:
            raise RtgaugeError(f"the {word} end {commit[:12]} could not be measured: {run.why_not}")
        self.notify(f"{commit[:12]}, the {word} end: {format_time(round(run.value_ns))}")
        return run.value_ns
