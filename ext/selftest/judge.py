# SPDX-License-Identifier: MIT
"""Checks whether the explanations are right.

It compares injected stalls (load/stall.py) with the explanations of their step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, culprit_name
from rtgauge.explain.analysis.ranking import general
from rtgauge.explain.trace.contexts import CALLED_BY
from rtgauge.input_file import MIB
from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.marks import MarkKind, is_doubt
from rtgauge.record.model import Severity, Step
from rtgauge.record.reader import Record
from rtgauge.record.record_folder import damaged
from rtgauge.record.windows import largest, least
from rtgauge.units import format_share, plural

LOAD = "stall:"
PROGRAMS = {"throttle": "rtgauge-fair"}
"""Kind of stall -> the program whose time is the stall, if others may share it."""
LOG = "load.log"
OUTSIDE, OUTSIDE_LOG = "stopped", "stalls.ndjson"
"""The kind of stalls that the measuring side makes without a load, and the record's file that lists them."""
ALL_CPUS = -1
MOST_LOG = 16 * MIB
NAMED_GOAL = SIZED_GOAL = 0.95
OWN_SHARE = 0.25
"""A machine is too busy to tell if it has so many latencies of its own per stall."""
UNATTRIBUTED_GOAL_NS = 5_000
LEAST_SIZE_NS, SIZE_SHARE = 5_000, 0.01
"""A size is right if it differs by at most the larger of 5 us and 1 %."""
ANY = "*"
"""Stands for any name, because the culprit's name depends on the machine."""
EXPECTED: dict[str, tuple[tuple[Kind, str], ...]] = {
    "hog": ((Kind.TASK, "rtgauge-hog"),),
    "from-idle": ((Kind.TASK, "rtgauge-woken"),),
    "two-cpus": ((Kind.TASK, "rtgauge-two"),),
    "catch-up": ((Kind.OWN, ANY),),
    "softirq": ((Kind.SOFTIRQ, "NET_RX"),),
    "timers": ((Kind.INTERRUPT, "local timer"), (Kind.IRQ, "arch_timer")),
    "throttle": ((Kind.THROTTLED, ""),),
    "fault": ((Kind.PAGE_FAULT, ""),),
    "idle": ((Kind.IDLE_EXIT, ANY),),
    "irqs-off": ((Kind.INTERRUPTS_OFF, "rtgauge-irqsoff"),),
    "preempt-off": ((Kind.PREEMPTION_OFF, "rtgauge-preempt"),),
    "stopped": ((Kind.NO_SOFTWARE, ""), (Kind.STEAL, "")),
}
"""Kind of stall -> (kind, name) of each right culprit; the architecture decides which one it is."""
FUNCTIONS = {"irqs-off": "rtgauge_stall_irqs_off", "preempt-off": "rtgauge_stall_preempt_off"}
"""Kind of stall -> the kernel function that the explanation must also name."""


@dataclass(frozen=True)
class Injected:
    """A stall, whose program had the CPU from `start_ns` to `end_ns` (the target's CLOCK_MONOTONIC).

    If `cpu` is -1, all CPUs were stopped from outside: the length is exact, but the times are another
    clock's. `before_ns`, `after_ns`: how much longer the program may have had the CPU at the two ends.
    `inside_ns`: the part between the two readings of the clock that is not the stall.
    """

    kind: str
    cpu: int
    start_ns: int
    end_ns: int
    before_ns: int = 0
    after_ns: int = 0
    inside_ns: int = 0


@dataclass(frozen=True)
class JudgedStall:
    """The judgement of one stall.

    `answer`: the culprit that the stall was attributed to; None if it was not found. `expected_ns`: how long
    it delayed the latency, by the program's clock. `found_ns`: the explained time from the stall's start or
    the release, if later, to its end, interrupts included. `size_error_ns`: the difference, beyond what the
    program's clock leaves open.
    """

    injected: Injected
    answer: Culprit | None
    named: bool
    expected_ns: int
    found_ns: int
    unattributed_ns: int
    size_error_ns: int = 0

    @property
    def size_right(self) -> bool:
        """Whether the found size is right within the larger of 5 us and 1 %."""
        tolerance_ns = max(LEAST_SIZE_NS, SIZE_SHARE * self.expected_ns)
        return self.answer is not None and self.size_error_ns <= tolerance_ns


@dataclass(frozen=True)
class KindResult:
    """The results of all stalls of one kind. The sizes are None if no stall was named correctly, and the
    unattributed time is None if no stall was found.

    `busy`: why the machine may have been too busy for a right result; empty if it was not. `ends`,
    `ends_right`: how many latencies and responses of a watched program were explained, and for how many of
    them the explanation knows what the thread did at the end; 0 if no program was watched.
    """

    kind: str
    injected: int
    found: int
    named: int
    sizes_right: int
    size_error_median_ns: int | None
    size_error_p95_ns: int | None
    unattributed_median_ns: int | None
    answers: dict[str, int]
    busy: str = ""
    ends: int = 0
    ends_right: int = 0

    @property
    def is_right(self) -> bool:
        """Whether stalls came, all were found, 95 % are named, 95 % of these have the right size, the median
        unattributed time is at most 5 us, and 95 % of the ends of a watched program's cycles are known.
        """
        return (
            0 < self.injected == self.found
            and self.named >= NAMED_GOAL * self.injected
            and self.sizes_right >= SIZED_GOAL * self.named
            and (self.unattributed_median_ns or 0) <= UNATTRIBUTED_GOAL_NS
            and self.ends_right >= NAMED_GOAL * self.ends
        )


@dataclass(frozen=True)
class SelfTest:
    """The confusion matrix by rows.

    `others`: explained latencies that no stall caused. `not_tried`: kind -> why it was not tried. `invalid`:
    kind -> why its measurement is invalid.
    """

    kinds: list[KindResult]
    others: int
    not_tried: dict[str, str] = field(default_factory=dict[str, str])
    invalid: dict[str, str] = field(default_factory=dict[str, str])

    def total(self, name: Literal["injected", "found", "named", "sizes_right"]) -> int:
        """Return one of the numbers of stalls, of all kinds together."""
        return sum(getattr(kind, name) for kind in self.kinds)

    @property
    def passed(self) -> bool:
        """Whether the results of all kinds are right, and no measurement is invalid."""
        return bool(self.kinds) and not self.invalid and all(kind.is_right for kind in self.kinds)

    @property
    def too_busy(self) -> bool:
        """Whether each result that is not right may be so because the machine was too busy."""
        wrong = [kind for kind in self.kinds if not kind.is_right]
        return not self.invalid and bool(wrong) and all(kind.busy for kind in wrong)


_INJECTED = cache(lambda: TypeAdapter(Injected))


def stall_kind(step: Step) -> str | None:
    """Return the kind of stalls under which a step was measured; None if there were none."""
    return step.key.load.removeprefix(LOAD).partition(":")[0] if step.key.load.startswith(LOAD) else None


def injected_stalls(text: str) -> list[Injected]:
    """Parse the stalls from the JSON lines of the load's program. Other lines are ignored."""
    stalls: list[Injected] = []
    for line in text.splitlines():
        if line.startswith("{") and len(line) <= 1_000:
            with suppress(ValidationError):
                stalls.append(_INJECTED().validate_json(line, strict=True))
    return [stall for stall in stalls if 0 <= stall.start_ns < stall.end_ns < 1 << 62]


def self_test(record: Record) -> SelfTest | None:
    """Judge all steps with stalls; None if the record has none. Raises RecordError for a damaged record."""
    judged: dict[str, list[JudgedStall]] = {}
    own: dict[str, int] = defaultdict(int)
    busy: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, list[bool]] = defaultdict(list)
    outside = record.folder.file(OUTSIDE_LOG)
    all_steps = record.folder.has(OUTSIDE_LOG)
    steps = [step for step in record.steps if all_steps or stall_kind(step) is not None]
    kinds = {step.id: stall_kind(step) or OUTSIDE for step in steps}
    invalid = {
        kinds[step.id]: f"{mark.name}: {mark.detail}"
        for step in steps
        for mark in step.marks
        if mark.severity is Severity.INVALID
    }
    for explained in explained_steps(record, steps):
        kind = stall_kind(explained.step) or OUTSIDE
        file = outside if kind == OUTSIDE else record.file(explained.step, LOG)
        try:
            text = file.read(MOST_LOG).decode(errors="replace")
        except OSError as error:
            raise damaged(file, error) from None
        begin, end = _measured(record, explained.step)
        above = int(explained.step.key.parameters.get("explain_above_ns") or 1)
        # The first release within a stall comes at most one interval after the stall's start.
        threshold = above + int(explained.step.key.parameters.get("interval_ns") or 0)
        stalls = [
            stall
            for stall in injected_stalls(text)
            if begin <= stall.start_ns and stall.end_ns + threshold <= end
        ]
        long_enough = [stall for stall in stalls if stall.end_ns - stall.start_ns >= threshold]
        judged.setdefault(kind, []).extend(
            judge_stall(stall, explained.explanations, above, _undisturbed_ns(explained.step))
            for stall in long_enough
        )
        own[kind] += sum(
            not any(_overlap(known, stall) for stall in stalls) for known in explained.explanations
        )
        busy[kind] += _busy(explained.step)
        if probe_of(explained.step).watches:
            ends[kind] += [end_known(known, stalls) for known in explained.explanations]
    not_tried = {
        missing.what.partition(LOAD)[2].partition(" ")[0]: missing.reason
        for missing in record.run.left_out
        if missing.what.startswith(f"load {LOAD}")
    }
    if not judged:
        return None
    for kind, stalls in judged.items():
        if own[kind] > OWN_SHARE * max(len(stalls), 1):
            busy[kind].append(f"{own[kind]} latencies had causes other than the stalls")
    results = [
        _result(kind, judged.get(kind, []), "; ".join(busy[kind]), ends[kind])
        for kind in dict.fromkeys(kinds.values())
    ]
    return SelfTest(results, sum(own.values()), not_tried, invalid)


def end_known(known: Explanation, stalls: Sequence[Injected]) -> bool:
    """Return whether the explanation knows what the thread did at the end of a latency or response, and
    whether a response with a whole stall by the program itself ends when the program went to sleep.
    """
    end_ns = known.moment.end_ns
    unknown = sum(
        end - start
        for part in known.parts
        if part.culprit.kind in {Kind.EITHER, Kind.UNATTRIBUTED}
        for start, end, _ in part.spans
        if end == end_ns
    )
    own = [
        stall
        for stall in stalls
        if stall.after_ns and known.moment.release_ns <= stall.start_ns < stall.end_ns <= end_ns
    ]
    late_ns = max((end_ns - stall.end_ns - stall.after_ns for stall in own), default=0)
    return unknown <= LEAST_SIZE_NS and late_ns <= LEAST_SIZE_NS


def _busy(step: Step) -> list[str]:
    """Return why a step's machine was too busy to explain every latency."""
    missing = 0 if step.explain is None else sum(step.explain.not_captured.values())
    kept = [f"{missing} latencies were not kept"] if missing else []
    return [
        *kept,
        *(mark.detail for mark in step.marks if mark.kind is MarkKind.STEAL and is_doubt(mark.severity)),
    ]


def _measured(record: Record, step: Step) -> tuple[int, int]:
    """Return the start and end of the measured phase in ns; an empty interval if there is no window."""
    windows = record.windows(step, bins=False)
    begin, end = least(windows.start_ns[windows.measured]), largest(windows.end_ns[windows.measured])
    return (begin, end) if begin is not None and end is not None else (0, -1)


def _overlap(explanation: Explanation, stall: Injected) -> int:
    moment = explanation.moment
    return max(min(moment.end_ns, stall.end_ns) - max(moment.release_ns, stall.start_ns), 0)


def _undisturbed_ns(step: Step) -> int:
    """Return the shortest latency (ns) of a step; 0 if there is none."""
    return round((step.total.min_ns if step.total is not None else 0) or 0)


def judge_stall(
    stall: Injected, explanations: Sequence[Explanation], least_ns: int, undisturbed_ns: int = 0
) -> JudgedStall:
    """Judge a stall by the explanation that overlaps it longest.

    An overlap below `least_ns` belongs to another latency, because the stall's own latency overlaps longer.
    `undisturbed_ns`: how long the measured thread takes to run and to read the clock without a stall. The
    gap that `timers` reports contains this time if it ends after the latency.
    """
    best = max(explanations, key=lambda known: _overlap(known, stall), default=None)
    expected = 0 if best is None else _overlap(best, stall)
    if best is not None and stall.cpu == ALL_CPUS and expected > 0:
        expected = stall.end_ns - stall.start_ns
    if best is None or expected < least_ns:
        return JudgedStall(stall, None, named=False, expected_ns=expected, found_ns=0, unattributed_ns=0)
    answer = general(best.main.culprit)
    expected_names = EXPECTED.get(stall.kind, ())
    named = (answer.kind, answer.name) in expected_names or (answer.kind, ANY) in expected_names
    own = [part for part in best.parts if general(part.culprit) == answer]
    function = FUNCTIONS.get(stall.kind)
    if function is not None:
        named = named and any(function in where.split(CALLED_BY) for part in own for where in part.where)
    # Other tasks may also run while the thread is throttled.
    own = [part for part in own if part.culprit.name == PROGRAMS.get(stall.kind)] or own
    if stall.kind == "timers":  # The program sees only the end of the softirqs after the interrupt.
        own += [part for part in best.parts if part.culprit.kind in {Kind.IRQ, Kind.SOFTIRQ}]
    spans = [span for part in own for span in part.spans]
    # A program may have had a page fault of its own before, and several stalls may be in one latency.
    spans = [span for span in spans if span[1] > stall.start_ns] or spans
    if stall.cpu != ALL_CPUS:
        spans = [span for span in spans if span[0] < stall.end_ns] or spans
    begin = best.moment.release_ns
    within = stall.start_ns > begin
    if within:
        begin = min(start for start, _, _ in spans)
    explained_ns = max(end for _, end, _ in spans) - begin
    most = expected + within * stall.before_ns + stall.after_ns
    inside = stall.inside_ns
    if stall.kind == "timers" and stall.end_ns > best.moment.end_ns:
        inside += undisturbed_ns
    error = max(expected - inside - explained_ns, explained_ns - most, 0)
    return JudgedStall(stall, answer, named, expected, explained_ns, best.unattributed_ns, error)


def _middle(values: list[int], share: float) -> int | None:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


def _result(kind: str, stalls: list[JudgedStall], busy: str, ends: list[bool]) -> KindResult:
    explained = [stall for stall in stalls if stall.answer is not None]
    right = [stall for stall in explained if stall.named]
    answers = ("not found" if stall.answer is None else culprit_name(stall.answer) for stall in stalls)
    errors = [stall.size_error_ns for stall in right]
    return KindResult(
        kind,
        injected=len(stalls),
        found=len(explained),
        named=len(right),
        sizes_right=sum(stall.size_right for stall in right),
        size_error_median_ns=_middle(errors, 0.5),
        size_error_p95_ns=_middle(errors, 0.95),
        unattributed_median_ns=_middle([stall.unattributed_ns for stall in explained], 0.5),
        answers=dict(Counter(answers).most_common()),
        busy=busy,
        ends=len(ends),
        ends_right=sum(ends),
    )


def verdict_words(result: SelfTest) -> str:
    """Return the result of a self test in one sentence."""
    wrong = [kind for kind in result.kinds if not kind.is_right]
    never = [kind.kind for kind in wrong if not kind.injected]
    if result.passed:
        word = "The explanations are right"
    elif result.invalid:
        kind, why = next(iter(result.invalid.items()))
        word = f"The self test is invalid ({kind}: {why})"
    elif result.too_busy:
        reasons = "; ".join(f"{kind.kind}: {kind.busy}" for kind in wrong)
        word = f"The machine was too busy to tell whether the explanations are right ({reasons})"
    else:
        failing = ", ".join(kind.kind for kind in wrong if kind.injected)
        word = "The explanations are not right" + (f" ({failing})" if failing else "")
        word += (
            f", and the self test did not cause stalls of these kinds: {', '.join(never)}" if never else ""
        )
    injected, found, named = (result.total(name) for name in ("injected", "found", "named"))
    share = format_share(named / injected) if injected else "none"
    latencies = "1 other latency" if result.others == 1 else f"{result.others} other latencies"
    others = f"; {latencies} had other causes" if result.others else ""
    sizes = f"{result.total('sizes_right')} of them with the right size"
    return (
        f"{word}: of {plural(injected, 'injected stall')}, {found} {'was' if found == 1 else 'were'} found "
        f"and {named} named correctly ({share}), {sizes}{others}"
    )
