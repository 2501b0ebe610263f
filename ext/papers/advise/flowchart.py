# SPDX-License-Identifier: MIT
"""Walks through a flowchart, from the measurements to a way of implementing the task, with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK
from rtgauge.record.facts import Facts
from rtgauge.record.model import Model, Step
from rtgauge.record.reader import Record
from rtgauge.units import format_multiple
from rtgauge.verdict.requirement import Requirement, format_percent
from rtgauge.verdict.run_verdict import BlameOf, past_run_of
from rtgauge_ext.papers.advise.flowchart_file import Chart, Flowchart, Hardness, Way
from rtgauge_ext.papers.advise.margin import ORDER, Evidence, Margin, evidence
from rtgauge_ext.papers.advise.open_questions import OpenQuestion, measure_command, questions


class Stage(Model):
    """One way on the walk: its measurement, what this means, and the next way in the chart."""

    way: str
    name: str
    margin: Margin | None
    """How the measured figures compare with the bound; None: this implementation was not measured."""
    why: str
    leads_to: str | None
    """The next implementation; None: the walk ends here."""
    evidence: list[Evidence] = Field(default_factory=list[Evidence])


class Aside(Model):
    """A step that does not count as evidence, and why."""

    record: str
    step: str
    why: str


class Advice(Model):
    """The answer and everything that it is based on."""

    requirement: str
    hardness: Hardness
    """The branch of the chart that applies: 100%, or 95% for every hardness below 100%."""
    chart: str
    about_chart: str
    differs: str | None
    """How this chart differs from the chart in the paper at this hardness."""
    thresholds: dict[str, float]
    use: str | None
    """Id of the implementation to choose; None: not yet known."""
    use_name: str | None
    measured: bool
    """Whether the chosen implementation was measured under load and is good enough."""
    answer: str
    walk: list[Stage]
    costs: list[str]
    """What the chosen implementation costs, according to the paper."""
    today: list[str]
    """What has changed since the paper was written."""
    published: dict[str, list[int]]
    """Latencies that the paper measured, in us: the median, the 95 % quantile and the maximum."""
    also_measured: list[Stage]
    """Implementations that were measured although the chart does not ask for them here."""
    aside: list[Aside]
    """Steps that do not count as evidence."""
    not_measured: list[OpenQuestion]
    """Missing measurements that could change the answer."""
    next: str
    """What to do next: a command for a measurement, or a preparation."""

    @property
    def status(self) -> int:
        """The exit status: 0 measured and good enough, 1 no software way is left, 4 not yet measured."""
        if self.measured:
            return EXIT_OK
        return EXIT_FAILS if self.walk and self.walk[-1].why == NO_SOFTWARE else EXIT_CANNOT_TELL


NOT_MEASURED = "not measured"
NO_SOFTWARE = "no software solution is left to try on this machine"


@dataclass(frozen=True)
class _Case:
    requirement: Requirement
    flowchart: Flowchart
    chart: Chart
    hardness: Hardness
    by_way: dict[str, list[Evidence]]

    def worst(self, way: str) -> Evidence | None:
        """Return the evidence that decides about a way; None if the way was not measured."""
        return max(
            self.by_way.get(way, []),
            key=lambda evidence: (ORDER.index(evidence.margin), evidence.times_the_bound or 0.0),
            default=None,
        )


def kernel_of(facts: Facts) -> str | None:
    """Return stock or preempt-rt; None if the record does not show which."""
    model = facts.kernel.preemption.model
    return None if model is None else "preempt-rt" if model == "PREEMPT_RT" else "stock"


def _why_not(step: Step, requirement: Requirement, facts: Facts) -> str | None:
    """Return why a step does not count as evidence; None if it counts."""
    if not any(summary.metric == requirement.metric for summary in step.series):
        return f"it did not measure {requirement.metric}"
    if step.tasks:
        return "it measured a task set, whose tasks delay each other (see rtgauge sched)"
    if step.parameters.get("policy", step.key.parameters.get("policy")) == "other":
        return "it was measured without a real-time priority"
    return "the record does not say which kernel ran" if kernel_of(facts) is None else None


def _facts_of(record: Record, step: Step) -> Facts:
    return record.system(step.key.targets.get("self", next(iter(step.key.targets.values()), "local")))


def _machine_of(facts: Facts) -> str:
    return facts.identity.hash or facts.host or ""


def machines_of(records: Sequence[Record]) -> dict[str, str]:
    """Return each measured machine: the value for `advise`, and its host name."""
    known = (_facts_of(record, step) for record in records for step in record.steps)
    return {_machine_of(facts): facts.host or "an unnamed machine" for facts in known}


def _sorted_out(
    requirement: Requirement,
    records: Sequence[Record],
    flowchart: Flowchart,
    blame_of: BlameOf | None,
    machine: str | None,
) -> tuple[dict[str, list[Evidence]], list[Aside]]:
    """Return the evidence for each way, and the steps that are not evidence."""
    evidence_of: dict[str, list[Evidence]] = {}
    aside: list[Aside] = []
    for record in records:
        for step in record.steps:
            facts = _facts_of(record, step)
            if machine not in {None, _machine_of(facts)}:
                continue
            kernel = kernel_of(facts)
            kernel = "xenomai" if step.key.rt == "cobalt" else kernel
            ways = flowchart.measured_by(kernel or "", step.key.space)
            why = _why_not(step, requirement, facts)
            if why is None and not ways:
                why = (
                    f"the chart does not contain an implementation in {step.key.space} space on a {kernel} "
                    "kernel"
                )
            if why is not None:
                aside.append(Aside(record=str(record.path), step=step.id, why=why))
                continue
            evidence_of.setdefault(ways[0], []).append(
                evidence(
                    requirement,
                    record,
                    step,
                    facts.kernel.release or "kernel unknown",
                    facts,
                    flowchart.thresholds,
                    past_run_of(record, step, requirement, blame_of),
                )
            )
    return evidence_of, aside


def _reason_text(worst: Evidence) -> str:
    times = (
        "" if worst.times_the_bound is None else f", {format_multiple(worst.times_the_bound)} times the bound"
    )
    return f"{worst.step} decides{times}: {worst.reason}"


def _stage(case: _Case, way: Way) -> Stage:
    worst = case.worst(way.id)
    if worst is None:
        return Stage(way=way.id, name=way.name, margin=None, why=NOT_MEASURED, leads_to=None)
    leads = (
        case.chart.after(case.hardness, way.id, worst.margin.value)
        if worst.margin in {Margin.MARGINAL, Margin.TROUBLE, Margin.OFF}
        else None
    )
    return Stage(
        way=way.id,
        name=way.name,
        margin=worst.margin,
        why=_reason_text(worst),
        leads_to=leads,
        evidence=case.by_way[way.id],
    )


def _walk(case: _Case) -> list[Stage]:
    stages: list[Stage] = []
    at: str | None = case.chart.start[case.hardness]
    while at is not None:
        way = case.flowchart.of(at)
        if way.kernel == "none":
            stages.append(Stage(way=way.id, name=way.name, margin=None, why=NO_SOFTWARE, leads_to=None))
            break
        stage = _stage(case, way)
        if stages and stage.margin is None and _reached_from(case, at):
            after = case.chart.after(case.hardness, at, Margin.TROUBLE.value)
            stage = stage.model_copy(
                update={
                    "why": f"{NOT_MEASURED}, but an implementation later in the chart was measured and is "
                    "good enough",
                    "leads_to": after,
                }
            )
        stages.append(stage)
        at = stage.leads_to
    return stages


def _reached_from(case: _Case, at: str) -> bool:
    """Return whether the chart leads from `at`, which was not measured, to a way that is clearly in the
    black.
    """
    while case.flowchart.of(at).kernel != "none":
        at = case.chart.after(case.hardness, at, Margin.TROUBLE.value)
        worst = case.worst(at)
        if worst is not None:
            return worst.margin is Margin.BLACK
    return False


def _answer(walk: Sequence[Stage], requirement: Requirement, *, loaded: bool) -> str:
    last = walk[-1]
    share = (
        "every activation"
        if requirement.allowed == 0
        else f"{format_percent(requirement.hardness)} of the activations"
    )
    if last.why == NO_SOFTWARE:
        return f"Use {last.name}: {last.why}."
    if last.margin is None:
        return (
            f"Try {last.name} next. It was not measured, so this advice comes from the chart, not from a "
            f"measurement."
        )
    if last.margin is Margin.CANNOT_TELL:
        return f"It is unknown so far whether {last.name} is good enough: {last.why}."
    skipped = " and ".join(stage.name for stage in walk if stage.margin is None)
    before = f" The chart asks first for {skipped}, which was not measured." if skipped else ""
    if not loaded:
        return (
            f"Use {last.name} if it also stays within the bound under load: for {share} measured, it stayed "
            f"within the bound, but the machine was idle.{before}"
        )
    return f"Use {last.name}: it is clearly in the black for {share} measured.{before}"


def advise(
    requirement: Requirement,
    records: Sequence[Record],
    flowchart: Flowchart,
    chart: Chart,
    blame_of: BlameOf | None = None,
    machine: str | None = None,
) -> Advice:
    """Walk through the chart with the evidence in the records. `blame_of`: finds the culprit that made a step
    late. `machine`: use only the steps of this machine (see `machines_of`).

    Raises RecordError for a damaged record.
    """
    by_way, aside = _sorted_out(requirement, records, flowchart, blame_of, machine)
    hardness: Hardness = "100%" if requirement.allowed == 0 else "95%"
    case = _Case(requirement, flowchart, chart, hardness, by_way)
    walk = _walk(case)
    last = walk[-1]
    way = flowchart.of(last.way)
    loaded = any(evidence.load != "idle" for evidence in last.evidence)
    good = last.margin is Margin.BLACK
    walked = {stage.way for stage in walk}
    others = [
        _stage(case, other).model_copy(update={"leads_to": None})
        for other in flowchart.way
        if other.id in by_way and other.id not in walked
    ]
    settled = good or last.why == NO_SOFTWARE or last.margin is None
    opens = questions(
        requirement,
        records,
        walk[-1].evidence if good else [evidence for stage in walk for evidence in stage.evidence],
        on_the_way=not good,
    )
    if last.margin is None and last.why != NO_SOFTWARE:
        opens = [_unmeasured(case, way), *opens]
    return Advice(
        requirement=str(requirement),
        hardness=hardness,
        chart=chart.id,
        about_chart=f"{chart.name}: {chart.about}",
        differs=chart.differs.get(hardness),
        thresholds=flowchart.thresholds.model_dump(),
        use=last.way if settled else None,
        use_name=last.name if settled else None,
        measured=good and loaded,
        answer=_answer(walk, requirement, loaded=loaded),
        walk=walk,
        costs=list(way.costs) if settled else [],
        today=list(way.today) if settled else [],
        published={str(key): value for key, value in way.published.items()} if last.margin is None else {},
        also_measured=others,
        aside=aside,
        not_measured=opens,
        next=_next(case, walk, opens),
    )


def _next(case: _Case, walk: Sequence[Stage], opens: Sequence[OpenQuestion]) -> str:
    """Return what the verdict on the last measured way of the walk proposes, or on another measured way, as
    `rtgauge run` does. If nothing was measured, ask for the first measurement.
    """
    for way in (*(stage.way for stage in reversed(walk)), *case.by_way):
        worst = case.worst(way)
        if worst is not None:
            return worst.next
    return opens[0].command if opens else measure_command(case.requirement, longer=True)


def _unmeasured(case: _Case, way: Way) -> OpenQuestion:
    """Ask for a measurement of the walk's last way, if it is missing."""
    # The presets of other metrics already have the kernel-space steps.
    in_kernel = (
        ("--set space=kernel",) if way.space == "kernel" and case.requirement.metric == "latency" else ()
    )
    command = way.instead or measure_command(case.requirement, *in_kernel)
    about = f" ({way.about_instead})" if way.instead and way.about_instead else ""
    before = f"{way.get}, then: " if way.get else ""
    return OpenQuestion(
        what=way.name,
        changes="depending on the measurement, the chart continues from there or ends there",
        command=f"{before}{command}{about}",
    )
