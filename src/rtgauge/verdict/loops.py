# SPDX-License-Identifier: MIT
"""Judges the threads of a watched program, each by its own releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Step, Verdict, VerdictWord
from rtgauge.record.watched_loop import WatchedLoop
from rtgauge.record.windows import Windows
from rtgauge.units import format_duration, format_time, plural
from rtgauge.verdict.cannot_tell import cannot_tell
from rtgauge.verdict.exit_status import worst
from rtgauge.verdict.next_step import next_for_mark
from rtgauge.verdict.requirement import Requirement
from rtgauge.verdict.violations import TOO_COARSE, Violations, count_violations, late_time

MOST_NAMED = 4
"""The most threads that an answer lists."""
OF_THREAD = (
    *("metric", "bound_ns", "hardness", "activations", "missed", "violations_certain", "violations_possible"),
    *("activations_needed", "max_ns", "in_doubt"),
)
"""The evidence on each thread that the evidence of a step of `watch` has."""
UNDECIDED = 10
"""An answer names the releases of which nobody knows whether they were late from one in so many on."""
OWN_PART = 100
"""rtgauge's own delays are in doubt from one part in so many of the late time on."""
WAIT_FOR_EACH = (
    "let the loop wait for each release, even a late one, as clock_nanosleep with TIMER_ABSTIME does (C++'s "
    "sleep_until does not make a call then), and measure again"
)
NOT_ALL = (MarkKind.THREADS_LEFT_OUT, MarkKind.THREADS_UNWATCHED)
"""Marks of threads that nobody looked at. With them, nothing holds."""


def count_of_loop(loop: WatchedLoop, metric: str, windows: Windows, bound_ns: int) -> Violations:
    """Count the releases of a thread that broke the bound, for a metric that `watch` bounds.

    A release for which the thread did not wait was run late, or skipped; no event shows which. It is a
    certain violation if the thread did not have the CPU from the release until after the bound, else a
    possible one. After a response, the thread may also have run later releases before it waited again: then
    it is only a possible violation. The response of all of these is certainly late if it cannot have ended
    within the bound: the thread would then have waited for the next release. An activation that the end of
    the step cut counts if it is older than the bound.
    """
    own = [loop.series[name] for name in (metric, "overrun") if name in loop.series]
    counted = count_violations(windows, bound_ns, series=own)
    overruns = count_violations(windows, bound_ns, series=own[1:]) if len(own) > 1 else None
    certain, possible, releases = counted.certain, counted.possible, counted.activations
    missed = counted.missed
    if overruns is not None:
        possible += overruns.activations - overruns.possible
        missed += overruns.certain
    if metric == "response":
        if "uncertain" in loop.series:
            uncertain = count_violations(windows, bound_ns, series=[loop.series["uncertain"]])
            certain = max(0, certain - uncertain.possible)
        if "least-response" in loop.series:
            least = count_violations(windows, bound_ns, series=[loop.series["least-response"]])
            certain += max(0, least.certain - (overruns.certain if overruns is not None else 0))
        releases += loop.lost_ends
        possible += loop.lost_ends
    cut = (loop.cut_latency_ns if metric == "latency" else loop.cut_response_ns) > bound_ns
    releases, possible, certain = releases + cut, possible + cut, certain + cut
    return replace(counted, activations=releases, certain=certain, possible=possible, missed=missed)


def doubts_of_loop(loop: WatchedLoop, step: Step, metric: str, windows: Windows, bound_ns: int) -> list[Mark]:
    """Return the doubtful marks on a thread: all except marks on other threads.

    rtgauge's own delays are in doubt if they exceed 1 % of the time by which the thread was later than the
    bound. Without late values, they changed nothing.
    """
    own = {None, *loop.series.values()}
    doubts = [
        mark
        for mark in step.doubts_on(metric)
        if mark.series in own and mark.kind is not MarkKind.DELAYED_BY_RTGAUGE
    ]
    late_ns = late_time(windows, bound_ns, loop.series[metric]) if metric in loop.series else 0
    if loop.own_ns * OWN_PART > late_ns > 0:
        doubts.append(
            MarkKind.DELAYED_BY_RTGAUGE.mark(
                f"rtgauge itself kept {loop.task} from running for {format_time(loop.own_ns)}, more than 1 % "
                f"of the {format_time(late_ns)} by which the thread was late"
            )
        )
    return doubts


def worst_of_both(verdicts: Sequence[Verdict], requirement: Requirement) -> Verdict:
    """Return the verdict on a requirement with two bounds: the worse one, which says which bound it is on."""
    decisive = worst(verdicts) or verdicts[0]
    return decisive.model_copy(
        update={
            "requirement": str(requirement),
            "reason": f"{decisive.evidence.get('metric', requirement.metric)}: {decisive.reason}",
        }
    )


def worst_part(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """Return the worst verdict on the parts of a program, given with their names. It says which part it is
    on.
    """
    decisive = worst([verdict for _, verdict in verdicts]) or verdicts[0][1]
    name = next(part for part, verdict in verdicts if verdict is decisive)
    return decisive.model_copy(update={"reason": f"part {name}: {decisive.reason}"})


def _unseen_stops(step: Step, facts: Facts) -> str | None:
    """Say what may have stopped pollers without an event that `watch` records; None if nothing may."""
    pollers = [result for result in step.results if result.values.get("kind") == "poller"]
    smis = next((result.values.get("smis") for result in step.results if result.name == "watched"), None)
    if not all(result.values.get("interrupts_traced") is True for result in pollers):
        return "rtgauge recorded when other tasks stopped the thread, but not when interrupts did"
    if facts.machine.virtual is not False:
        host = "the" if facts.machine.virtual else "if this is a virtual machine, its"
        return f"{host} host may have stopped the thread, too, which no event shows"
    if not isinstance(smis, int):
        return (
            "the firmware may have interrupted the CPUs (SMI), which neither an event nor a counter shows "
            "here"
        )
    if smis:
        return f"the firmware interrupted the CPUs {plural(smis, 'time')} (SMI), which no event shows"
    if any(mark.kind is MarkKind.TRACE_DROPPED for mark in step.marks) or any(
        result.values.get("unknown_stops") != 0 for result in pollers
    ):
        return "the kernel's events do not show all times at which the thread was stopped"
    return None


def gaps_of_pollers(verdict: Verdict, step: Step, facts: Facts) -> Verdict:
    """Return the verdict on the gaps of watched pollers. Nothing holds if they may have been stopped by
    something that the kernel's events do not show.
    """
    unseen = _unseen_stops(step, facts)
    if verdict.word not in {VerdictWord.HOLDS, VerdictWord.MARGINAL} or unseen is None:
        return verdict
    bound = format_duration(verdict.evidence["bound_ns"])
    by_clock = f'measure by the clock: rtgauge probe noise --cpu CPU --require "gap<={bound}"'
    return verdict.untold(f"{verdict.reason}; {unseen}", by_clock)


def chosen_loops(requirement: Requirement, step: Step, loops: Sequence[WatchedLoop]) -> list[WatchedLoop]:
    """Return the threads that the requirement is about: those with its period, or all that ran."""
    ran = [loop for loop in loops if loop.releases or loop.kind == "poller"]
    if requirement.period_ns is None or step.parameters.get("threads") is not None:
        return ran
    return [loop for loop in ran if loop.has_period(requirement.period_ns)]


def _no_such_period(requirement: Requirement, step: Step, loops: Sequence[WatchedLoop]) -> Verdict:
    ran = sorted((loop for loop in loops if loop.releases), key=lambda loop: -loop.releases)
    period = format_duration(requirement.period_ns or 0)
    periods = "; ".join(f"{loop.task} {loop.waits}" for loop in ran[:MOST_NAMED])
    why = next((text for loop in ran if (text := loop.why_it_drifts())), None)
    trouble = next((text for loop in loops for text in loop.trouble if loop.stuck or loop.ended), None)
    reason = f"none of the threads has a period of {period}" + (f": {periods}" if periods else "")
    following = (
        f"correct the period: {why}"
        if why
        else "give the period that the loop really has, or name its thread: --threads"
    )
    return cannot_tell(requirement, step, f"{trouble}; {reason}" if trouble else reason, following, why=why)


def _of_thread(
    requirement: Requirement,
    step: Step,
    loop: WatchedLoop,
    judge_thread: Callable[[WatchedLoop], Verdict],
    against_breaker: Callable[[WatchedLoop], str | None],
) -> Verdict:
    """Judge one thread."""
    if loop.kind == "poller":
        return cannot_tell(
            requirement,
            step,
            f"{loop.task} never sleeps, so it has no releases",
            'judge how long it is stopped: --require "gap<=20us"',
        )
    marks = [mark for mark in step.marks if mark.series == loop.series.get("latency")]
    unclear = next((mark for mark in marks if mark.kind is MarkKind.CYCLE_UNCLEAR), None)
    if unclear is not None:
        return cannot_tell(requirement, step, unclear.detail, next_for_mark(unclear))
    if requirement.period_ns is not None and loop.kind == "own-schedule":
        return cannot_tell(
            requirement,
            step,
            f"{loop.task} {loop.waits}: these times are not evenly spaced, so releases may be missing",
            "leave out period=, or name the wait that begins its cycle: --cycle CALL[:FD]",
        )
    judged = judge_thread(loop)
    clock = next((mark for mark in marks if mark.kind is MarkKind.WALL_CLOCK_SET), None)
    if clock is not None and judged.word is not VerdictWord.FAILS:
        judged.evidence.pop("activations_needed", None)  # no longer measurement removes this reason
        return judged.untold(clock.detail, next_for_mark(clock))
    possible, certain = (
        int(judged.evidence.get(f"violations_{name}") or 0) for name in ("possible", "certain")
    )
    undecided = possible - certain
    may = requirement.allowed * int(judged.evidence.get("activations") or 0)
    decides = undecided * UNDECIDED > possible and certain <= may < possible
    if judged.word is VerdictWord.CANNOT_TELL and decides:
        why = (
            f"{plural(undecided, 'release')} came while {loop.task} was busy, and nothing shows whether "
            "it ran them late or skipped them"
        )
        figures = judged.reason.removesuffix(f"; {TOO_COARSE}")  # busy releases leave it open, not the bins
        return judged.untold(f"{figures}; {why}", against_breaker(loop) or WAIT_FOR_EACH, why=why)
    return judged


def _is_too_few(verdict: Verdict) -> bool:
    """Return whether a thread has too few activations to tell, and none late."""
    return verdict.word is VerdictWord.CANNOT_TELL and verdict.evidence.get("violations_possible") == 0


def judge_loops(
    requirement: Requirement,
    step: Step,
    loops: Sequence[WatchedLoop],
    judge_thread: Callable[[WatchedLoop], Verdict],
    against_breaker: Callable[[WatchedLoop], str | None],
) -> Verdict:
    """Judge a step of `watch`: the worst thread decides, and the reason names it. `against_breaker`: what to
    change about a thread if one culprit alone broke the bound.

    A requirement with a period is about the threads that have this period, otherwise about all that ran. A
    thread with too few activations, none of them late, does not hide the verdict on the others. If threads
    were not watched, the requirement does not hold.
    """
    chosen = chosen_loops(requirement, step, loops)
    if not chosen:
        if requirement.period_ns is not None:
            return _no_such_period(requirement, step, loops)
        return cannot_tell(
            requirement,
            step,
            "none of the watched threads had a release",
            "watch the program while it works, or for longer",
        )
    judged = [(loop, _of_thread(requirement, step, loop, judge_thread, against_breaker)) for loop in chosen]
    known = [(loop, verdict) for loop, verdict in judged if not _is_too_few(verdict)]
    decisive = worst([verdict for _, verdict in known or judged]) or judged[0][1]
    loop = next(loop for loop, verdict in judged if verdict is decisive)
    killed = next((mark for mark in step.marks if mark.kind is MarkKind.PROGRAM_KILLED), None)
    trouble = [killed.detail] if killed is not None else loop.trouble[:1] if loop.stuck or loop.ended else []
    verdict = _named(requirement, loop, decisive, len(judged), trouble, killed=killed is not None)
    verdict.evidence["threads"] = [_of_evidence(loop, verdict) for loop, verdict in judged]
    few = [
        f"{other.task}: {plural(other.releases, 'activation')}, none of them late, but too few to tell"
        for other, small in judged
        if small is not decisive and _is_too_few(small)
    ]
    if few and known:
        verdict = verdict.model_copy(update={"reason": f"{verdict.reason}; {'; '.join(few[:MOST_NAMED])}"})
    return _with_unwatched(step, verdict)


def _of_evidence(loop: WatchedLoop, verdict: Verdict) -> dict[str, object]:
    """Return what a thread's verdict rests on, for the evidence of the step."""
    known = {name: verdict.evidence[name] for name in OF_THREAD if name in verdict.evidence}
    return {"task": loop.task, "word": str(verdict.word), "reason": verdict.reason, **known}


def _named(
    requirement: Requirement,
    loop: WatchedLoop,
    verdict: Verdict,
    threads: int,
    trouble: list[str],
    *,
    killed: bool,
) -> Verdict:
    """Put the thread's name and the trouble with it in front of the reason."""
    drift = loop.drift(requirement.period_ns) if requirement.period_ns is not None else None
    remarks = [*([drift] if drift else [])]
    if loop.overruns and not loop.stuck:
        remarks.append(f"it did not wait for {plural(loop.overruns, 'release')}")
    subject = loop.task if threads == 1 else f"{loop.task}, the worst of {threads} threads"
    reason = "; ".join([*trouble, f"{subject}: {verdict.reason}", *remarks])
    return verdict.model_copy(
        update={
            "reason": reason,
            "evidence": {
                **verdict.evidence,
                "task": loop.task,
                "cycle": loop.waits,
                "missed_releases": loop.overruns,
                "trouble": trouble,
                "ended": loop.ended and not loop.stuck and not killed,
                "drift": drift,
            },
        }
    )


def _with_unwatched(step: Step, verdict: Verdict) -> Verdict:
    """Nothing holds if there were threads that nobody looked at, or if the program crashed or was killed."""
    killed = next((mark for mark in step.marks if mark.kind is MarkKind.PROGRAM_KILLED), None)
    if killed is not None and verdict.word is not VerdictWord.FAILS:
        return verdict.untold(verdict.reason, next_for_mark(killed))
    mark = next((mark for mark in step.marks if mark.kind in NOT_ALL), None)
    if mark is None or verdict.word not in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        return verdict
    return verdict.untold(f"{mark.detail}; of the others: {verdict.reason}", next_for_mark(mark))
