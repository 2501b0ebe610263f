# SPDX-License-Identifier: MIT
"""The models of a record: run.json, step.json and the document of `--json`. Times are integers in ns."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from rtgauge.errors import RecordError
from rtgauge.record.facts import Calibration, Facts
from rtgauge.record.marks import Mark, MarkKind, Severity, worst_severity
from rtgauge.record.parameters import OpenParameters, Parameters, check_clock, check_parameters
from rtgauge.record.strict_model import Model

SCHEMA_VERSION = 1
ModelT = TypeVar("ModelT", bound=Model)


def _utf8(value: object) -> object:
    """Escape invalid UTF-8, which paths and arguments may contain but JSON may not."""
    return (
        value.encode(errors="surrogateescape").decode(errors="replace") if isinstance(value, str) else value
    )


SystemText = Annotated[str, BeforeValidator(_utf8)]
"""Text from the command line or the file system."""


SEGMENT = "segment"
"""The label that marks a segment of a response, which is not a response by itself."""
OVERFLOW_CYCLES = "overflow cycles"
"""Name of the results that list the cycles in which a cyclictest thread exceeded its histogram.

Their values are `cycles` (separated by spaces), `others` and `interval_ns`.
"""
COKERNELS = {"cobalt": "Cobalt", "rtai": "RTAI"}
"""Value of the parameter `rt` -> the co-kernel's name."""


class ThreadCounts(Model):
    """The kernel's counters of the measuring thread; None if they could not be read."""

    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    run_delay_ns: int | None = None
    cpu_ns: int | None = None
    context_switches: int | None = Field(
        default=None, description="on a co-kernel, which does not distinguish voluntary switches"
    )
    mode_switches: int | None = Field(
        default=None, description="how often a co-kernel handed the thread to Linux"
    )


class Distribution(Model):
    """Count, extremes, moments and quantiles of one set of values.

    `lower_bounds` names the fields that are lower bounds because the histogram overflows. All values are None
    if `count` is 0.
    """

    count: int
    min_ns: int | None
    mean_ns: float | None
    std_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p99_9_ns: int | None
    p99_99_ns: int | None
    max_ns: int | None
    lower_bounds: list[str] = Field(default_factory=list[str])


class WarmUp(Model):
    """The warm-up phase."""

    count: int = 0
    missed: int = 0
    max_ns: int | None = None


class SeriesSummary(Distribution):
    """The summary of one measured quantity, or of all CPUs together if `series` is None."""

    series: int | None
    metric: str
    unit: str
    labels: dict[str, str | int]
    missed: int
    lost: int = 0
    impossible: int = 0
    exact_quantiles: bool = Field(
        description="true: from raw samples; false: from the histogram (at most 1 % too large)"
    )
    filled: Distribution = Field(
        description="with the missed activations filled in; equal to the plain figures if none was missed"
    )
    warm_up: WarmUp
    thread: ThreadCounts | None = None


class Outlier(Model):
    """One of the largest latencies, with its expected release time and its CPU."""

    series: int
    time_ns: int
    value_ns: int
    cpu: int | None


class TableLine(Model):
    """How much a line of /proc/interrupts or /proc/softirqs grew, by CPU, without zeros. A counter that went
    backwards is null.
    """

    name: str
    total: int | None
    per_cpu: dict[str, int | None] = Field(default_factory=dict[str, int | None])


class NumberChange(Model):
    """A number before and after a step."""

    before: int
    after: int


class TextChange(Model):
    """A text before and after a step; `unknown` if it could not be read."""

    before: str
    after: str


Unknown = Literal["unknown"]
Growth = dict[str, int | None]


class Changes(Model):
    """What changed on a target over a step. Counters have only what grew; one that went backwards is null.
    `unknown`: it could not be read.
    """

    interrupts: dict[str, TableLine] | Unknown = Field(default_factory=dict[str, TableLine])
    softirqs: dict[str, TableLine] | Unknown = Field(default_factory=dict[str, TableLine])
    counters: dict[str, int | Unknown] = Field(
        default_factory=dict[str, int | Unknown], description="of /proc/stat"
    )
    cpu_time_ns: dict[str, Growth] = Field(
        default_factory=dict[str, Growth], description="CPU -> kind -> time, of /proc/stat"
    )
    vmstat: Growth = Field(default_factory=Growth)
    temperature_millicelsius: dict[str, NumberChange] = Field(default_factory=dict[str, NumberChange])
    frequency_khz: dict[str, NumberChange] = Field(
        default_factory=dict[str, NumberChange], description="by CPU"
    )
    energy_uj: Growth = Field(default_factory=Growth, description="by package, of RAPL")
    throttle_counts: Growth = Field(default_factory=Growth, description="by heat, of each CPU and package")
    clock_source: TextChange | None = None
    online_cpus: TextChange | None = None


class RunSegment(Model):
    """An interval in which a task ran without interruption; times count from the release of its task set."""

    task: str
    activation: int = Field(description="from 1")
    start_ns: int
    end_ns: int


class TaskCounts(Model):
    """Counters of one task in the measured phase. Its times are in its series."""

    task: str
    cpu: int | None
    activations: int
    deadline_misses: int
    preemptions: int | None = Field(description="involuntary switches while it was at work")


class LoadPart(Model):
    """One program of a load, with its requested and reached rates."""

    program: str
    version: str | None = None
    argv: list[str]
    wanted: dict[str, Any] = Field(default_factory=dict)
    reached: dict[str, Any] = Field(default_factory=dict)
    ended_early: str | None = Field(
        default=None, description="why it died while it was needed; None: it did not die"
    )


class LoadReport(Model):
    """A load as it ran during a step. Times are the target's CLOCK_MONOTONIC."""

    name: str
    parts: list[LoadPart] = Field(default_factory=list[LoadPart])
    notes: list[str] = Field(default_factory=list[str])
    started_ns: int | None = None
    warm_ns: int | None = None
    ended_ns: int | None = None


class LeftOut(Model):
    """A part of the plan that this run could not measure."""

    what: str
    reason: str
    remedy: str


class SettingMade(Model):
    """One setting that was changed for a step.

    `error` is None if the machine accepted it. `put_back` is the result of restoring it.
    """

    path: SystemText = Field(
        description="a file, or thread:TID:START:policy, group:DIR, ... (docs/formats/agent.md)"
    )
    old: SystemText | None
    wanted: SystemText
    now: SystemText | None
    error: str | None = None
    put_back: str | None = Field(
        default=None, description="restored, gone, left-changed-by-other, failed, ...; None: not yet"
    )


class DeploymentReport(Model):
    """A deployment as it was applied for a step and restored afterwards."""

    name: str
    words: str
    by: Literal["settings", "boot"] = Field(
        default="settings",
        description="boot: the machine was booted for it, and only settings without a boot parameter were "
        "made",
    )
    boot_words: str | None = Field(
        default=None, description="the boot parameters for it; null: the machine was not booted for it"
    )
    recognised: str | None = Field(
        default=None, description="the deployment that the machine's facts showed after that boot"
    )
    isolated: str = Field(default="", description="CPUs that were set aside for measuring")
    settings: list[SettingMade] = Field(default_factory=list[SettingMade])
    noted: int = Field(
        default=0, description="settings that hotplug or moves may change, noted before and put back after"
    )
    moved: int = Field(default=0, description="tasks that were moved off the isolated CPUs")
    not_moved: list[SystemText] = Field(
        default_factory=list[SystemText], description="the first tasks that refused, with the reason"
    )
    not_moved_count: int = 0
    not_put_back: list[SystemText] = Field(default_factory=list[SystemText])
    controller: bool = Field(
        default=False,
        description=("priorities of the controller, other real-time threads and IRQ threads were also set"),
    )
    not_found: list[SystemText] = Field(
        default_factory=list[SystemText], description="devices that have no IRQ thread to raise"
    )
    not_in_effect: list[str] = Field(
        default_factory=list[str], description="boot parameters that this kernel does not know"
    )

    @property
    def refused(self) -> list[SettingMade]:
        """The settings that the machine refused."""
        return [setting for setting in self.settings if setting.error is not None]


class Result(Model):
    """A result that is not a distribution, e.g. of `inversion`: name, labels and values."""

    name: str
    labels: dict[str, str | int] = Field(default_factory=dict)
    values: dict[str, bool | int | float | str | None]


OpenValues = Annotated[dict[str, Any], AfterValidator(check_parameters)]
"""Parameters as an engine or another tool reports them."""
Clock = Annotated[dict[str, Any], AfterValidator(check_clock)]


class Peer(NamedTuple):
    """The target that plays the other role in a step with two ends."""

    role: str
    target: str


def _parameters(value: object, info: ValidationInfo) -> object:
    """Keep a probe's own model as it is; check the values of a file by the names that every reader knows."""
    if not isinstance(value, dict):
        return value
    return OpenParameters(**check_parameters(cast("dict[str, Any]", value), info))


StepParameters = Annotated[
    SerializeAsAny[Parameters],
    BeforeValidator(_parameters),
    WithJsonSchema({"additionalProperties": True, "type": "object"}),
]


class StepKey(Model):
    """The identity of a step; it does not depend on the rest of the plan. Keys are equal if their ids are."""

    model_config = ConfigDict(frozen=True)

    probe: str
    parameters: StepParameters
    load: str
    deployment: str
    targets: dict[str, str] = Field(
        description="role -> target, e.g. {'self': 'local'}, or {'self': 'ssh://board', 'master': 'local'}"
    )
    repeat: int
    tool: str = Field(
        default="rtgauge",
        description=(
            "'rtgauge', or the tool that checks it: 'cyclictest', 'rtla', 'xenomai-latency', "
            "'xenomai-switchtest', 'rtai-latency', 'rtai-switches'"
        ),
    )

    @property
    def id(self) -> str:
        """The content of the key as text: JSON with sorted names."""
        return self.id_without()

    def id_without(self, *names: str) -> str:
        """Return the id without these fields and parameters: steps that differ only in these share the id."""
        fields = self.model_dump(mode="json", exclude=set(names))
        parameters = fields.get("parameters", {})
        fields["parameters"] = {name: parameters[name] for name in parameters if name not in names}
        return json.dumps(fields, sort_keys=True)

    @property
    def without_load(self) -> str:
        """The id without load and deployment: steps that are armed alike share this id."""
        return self.id_without("load", "deployment", "targets", "repeat")

    def with_parameters(self, **values: Any) -> StepKey:
        """Copy the key with these parameter values."""
        return self.model_copy(update={"parameters": self.parameters.but(**values)})

    def __eq__(self, other: object) -> bool:
        """Return whether both name the same step, even if they were read from different places."""
        return isinstance(other, StepKey) and self.id == other.id

    def __hash__(self) -> int:
        """Return the hash of the id."""
        return hash(self.id)

    @property
    def space(self) -> str:
        """The space in which the measured task ran: user or kernel."""
        return str(self.parameters.get("space") or "user")

    @property
    def rt(self) -> str:
        """The system that ran the measured threads: linux, or a co-kernel such as cobalt."""
        return str(self.parameters.get("rt") or "linux")

    @property
    def peer(self) -> Peer | None:
        """The other machine; None if the step has only one."""
        return next((Peer(role, target) for role, target in self.targets.items() if role != "self"), None)


class PeerReport(Model):
    """The other machine of a step with two ends. Its own clock timed its measurements."""

    target: str
    role: str = Field(description="its role: master or slave")
    parameters: OpenValues = Field(description="parameters as its engine understood them")
    cpus: list[int]
    clock: Clock = Field(default_factory=dict)
    series: list[int] = Field(description="the series of the step that it measured")
    clock_offset_ns: int = Field(
        description="the offset added to its CLOCK_MONOTONIC to place its windows and outliers on "
        "the target's; no measured time includes it"
    )
    clock_uncertainty_ns: int = Field(
        description="half the time that reading the three clocks took, which bounds the error of the offset"
    )


class ClockDriftReport(Model):
    """How much faster this machine's clock ran than the instrument's. No time is corrected for this."""

    ppm: float
    low_ppm: float = Field(description="95 % interval")
    high_ppm: float
    seconds: float = Field(description="the time over which it was estimated")


class ExactFigures(Model):
    """Totals that the instrument keeps over all values, including any that its stream did not deliver.

    A total that it does not know is None.
    """

    count: int
    min_ns: float | None
    mean_ns: float | None
    std_ns: float | None
    max_ns: float | None


class InstrumentReport(Model):
    """The instrument that measured a step from outside, with its own clock."""

    address: str = Field(description="as given: serial:/dev/ttyACM0, latmon:board")
    id: str = Field(description="unique id of its flash chip; for a latmon, host and port")
    firmware: str
    resolution_ns: float
    configuration: dict[str, Any] = Field(description="what it was set to")
    series: list[int] = Field(description="the series of the step that it measured")
    loopback_ns: tuple[float, float] | None = Field(
        default=None,
        description=(
            "its own smallest and largest latency without wires, right before the step; None: not measured"
        ),
    )
    wire_offset_ns: int | None = Field(
        default=None, description="latency of the wires, as given with wire-offset; it is never subtracted"
    )
    counters: dict[str, int] = Field(description="what it counted in the measured phase")
    exact: ExactFigures | None = None
    drift: ClockDriftReport | None = Field(
        default=None, description="None: the step was too short to estimate it"
    )
    clock_offset_ns: int = Field(
        description="the target's CLOCK_MONOTONIC when its time was 0; used only to place windows and "
        "outliers"
    )
    clock_uncertainty_ns: int = Field(
        description="half the time that starting it and reading the clocks took"
    )


class ExplainCost(Model):
    """The cost of recording kernel events, from warm-up stretches that alternate between without and with
    them.
    """

    pairs: int = Field(
        description="stretches without events, each compared with a neighbouring one with events"
    )
    without_ns: float = Field(description="mean of the stretches' medians without events")
    with_ns: float
    median_ns: float = Field(description="mean difference of the medians in pairs: the cost")
    low_ns: float = Field(description="lower end of its 90 % interval, for an equivalence test at 5 %")
    high_ns: float
    bound_ns: int = Field(description="a cost up to this counts as none")

    @property
    def is_equivalent(self) -> bool:
        """Whether two one-sided tests at 5 % show that the cost is within the bound."""
        return -self.bound_ns < self.low_ns and self.high_ns < self.bound_ns

    @property
    def words(self) -> str:
        """ "costs 0.41 us at the median (0.30 to 0.52)", or "has no measurable cost (...)" if the interval
        includes 0.
        """
        between = f"{self.low_ns / 1000:.2f} to {self.high_ns / 1000:.2f}"
        if self.low_ns <= 0:
            return f"has no measurable cost ({between} us at the median)"
        return f"costs {self.median_ns / 1000:.2f} us at the median ({between})"


class ExplainReport(Model):
    """The record of events that explain the largest latencies (moments.ndjson.gz)."""

    events: list[str] = Field(description="group/event: what the kernel recorded")
    moments: int = Field(description="latencies around which that was kept")
    not_captured: dict[str, int] = Field(
        description="reason -> latencies that should have been kept but were not"
    )
    copy_max_ns: int = Field(description="the longest time that copying took; recording continues meanwhile")
    buffer_kb: int
    cost: ExplainCost | None = Field(default=None, description="None: the stretches had too few samples")


class Step(Model):
    """step.json: one probe with its parameters under one load in one deployment."""

    schema_version: int = SCHEMA_VERSION
    id: str = Field(description="folder name, e.g. 01-wakeup-idle")
    key: StepKey
    tool: str = Field(description="the program that measured: 'rtgauge-engine 0.1.0', 'cyclictest 2.40'")
    engine_sha256: str | None = Field(
        default=None, description="SHA-256 of the engine that measured; None: another tool measured"
    )
    boot_id: str | None = Field(
        default=None, description="the kernel's boot_id during the step; None: another tool measured"
    )
    started: str = Field(description="UTC, ISO 8601")
    ended: str
    start_ns: int | None = Field(description="CLOCK_MONOTONIC of the target at `go`")
    end_ns: int | None
    end_reason: str
    parameters: OpenValues = Field(description="every parameter as the engine understood it")
    cpus: list[int]
    cpus_not_measured: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    clock: Clock = Field(default_factory=dict)
    calibrations: list[Calibration] = Field(default_factory=list[Calibration])
    load: LoadReport
    deployment: DeploymentReport | None = Field(
        default=None, description="what was set for the step; None: nothing"
    )
    peer: PeerReport | None = Field(
        default=None, description="the machine that played the other role; None: there was none"
    )
    instrument: InstrumentReport | None = Field(
        default=None, description="the instrument that measured from outside; None: there was none"
    )
    series: list[SeriesSummary]
    total: SeriesSummary | None = Field(
        description="all series of the main metric (latency, otherwise the metric of the first series) "
        "together"
        "; None for "
        "a probe without series"
    )
    outliers: list[Outlier]
    results: list[Result] = Field(
        default_factory=list[Result],
        description="results that are not distributions (docs/formats/stream.md, `result`)",
    )
    marks: list[Mark]
    explain: ExplainReport | None = Field(
        default=None, description="what explains its largest latencies; None: no events were recorded"
    )
    tasks: list[TaskCounts] = Field(
        default_factory=list[TaskCounts], description="taskset: one for each task, in the set's order"
    )
    segments: list[RunSegment] = Field(
        default_factory=list[RunSegment],
        description="taskset: which task ran when, in the first hyperperiods",
    )
    changes: Changes = Field(default_factory=Changes)
    checksums: dict[str, str] = Field(
        default_factory=dict,
        description="file in the step's folder -> its SHA-256; empty in records of earlier versions",
    )

    @property
    def main_series(self) -> list[SeriesSummary]:
        """The series that `total` combines: neither segments (label `segment`) nor another role's series."""
        whole = [
            series
            for series in self.series
            if self.total is not None
            and series.metric == self.total.metric
            and "segment" not in series.labels
        ]
        return [series for series in whole if series.labels.get("role") == whole[0].labels.get("role")]

    @property
    def emulated(self) -> bool:
        """Whether the processor of the target, or of the other machine, was emulated."""
        return MarkKind.EMULATED.is_in(self.marks)

    @property
    def worst(self) -> Severity | None:
        """The severity of the severest mark, or None."""
        return worst_severity(mark.severity for mark in self.marks)

    def doubts_on(self, metric: str) -> list[Mark]:
        """Return the doubtful marks that concern this metric: all except marks on another metric's series."""
        others = {summary.series for summary in self.series if summary.metric != metric}
        return [
            mark
            for mark in self.marks
            if mark.severity is Severity.DOUBTFUL and (mark.series is None or mark.series not in others)
        ]


class VerdictWord(StrEnum):
    """The four possible verdicts."""

    HOLDS = "holds"
    MARGINAL = "marginal"
    FAILS = "fails"
    CANNOT_TELL = "cannot tell"


class Exposure(Model):
    """How much all steps together measured against a bound, and which exceedance rate that excludes."""

    activations: int
    violations: int = Field(description="possible violations")
    runs: int
    boots: int = Field(description="boots that the run made")
    conditions: int = Field(description="different loads, deployments and parameters")
    measured_s: float = Field(description="0: unknown, for example if an imported file does not give it")
    confidence: float
    share_excluded: float = Field(description="a larger share of violations is excluded at this confidence")
    per_hour_excluded: float | None = Field(
        description="the same in violations per hour, on all CPUs together"
    )
    next_share: float = Field(description="the next power of ten below share_excluded")
    next_s: float | None = Field(
        description="how long a measurement must be to exclude next_share; None: no measurement can, or "
        "unknown"
    )
    next_boards: int | None = Field(
        description="the number of boards on which that takes as long as this measurement took"
    )


class Verdict(Model):
    """The verdict on a requirement for one step, or for a whole run (`step` None: the worst of its steps)."""

    word: VerdictWord
    requirement: str
    reason: str
    next: str = Field(description="the next thing to try")
    step: str | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)
    exposure: Exposure | None = Field(
        default=None, description="the exposure of the whole run; only the run's verdict has it"
    )


class Run(Model):
    """run.json."""

    schema_version: int = SCHEMA_VERSION
    id: str
    created: str
    ended: str | None = None
    state: Literal["partial", "complete", "interrupted"]
    rtgauge: str = Field(description="version")
    commit: str | None = Field(
        default=None, description='commit of its sources, with "+" if they were changed; None: unknown'
    )
    command: list[SystemText]
    plan: dict[str, Any]
    targets: list[str]
    seed: int | None = None
    requirement: str | None = None
    verdicts: list[Verdict] = Field(default_factory=list[Verdict])
    steps: list[str] = Field(
        default_factory=list[str], description="ids of the finished steps, in the order they were measured"
    )
    planned: list[StepKey] = Field(
        default_factory=list[StepKey], description="every step of the plan, in the order chosen"
    )
    left_out: list[LeftOut] = Field(default_factory=list[LeftOut])
    allow_left_out: bool = Field(
        default=False, description="whether the requirement may hold even if something was left out"
    )
    marks: list[Mark] = Field(default_factory=list[Mark])


def kept_in_plan(run: Run, key: str, model: type[ModelT], what: str) -> ModelT | None:
    """Read what a record's plan keeps under a key; None if there is nothing.

    `what`: what is missing, for the error about a damaged plan. Raises RecordError.
    """
    written = run.plan.get(key)
    try:
        return None if written is None else model.model_validate(written)
    except ValidationError:
        raise RecordError(f"the record {run.id} is damaged: its plan does not say {what}") from None


class RunDocument(Model):
    """The one document that `--json` prints: a run with its steps and the facts of its targets."""

    run: Run
    steps: list[Step]
    systems: dict[str, Facts]
    record: SystemText | None = Field(description="the record's folder; None if nothing was kept")
