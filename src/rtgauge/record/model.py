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
from rtgauge.record.probe_parameters import OpenParameters, Parameters, check_clock, check_parameters
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
PART = "part"
"""The metric of a watched program's own parts, and the label with the name of one."""
OVERFLOW_CYCLES = "overflow cycles"
"""Name of the results that list the cycles in which a cyclictest thread's latency exceeded its histogram.

Their values are `cycles` (separated by spaces), `others` and `interval_ns`.
"""
COKERNELS = {"cobalt": "Cobalt", "rtai": "RTAI"}
"""Maps a value of the parameter `rt` to the co-kernel's name."""


class ThreadCounts(Model):
    """The kernel's counters of the measuring thread. A counter that could not be read is None."""

    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    run_delay_ns: int | None = None
    cpu_ns: int | None = None
    context_switches: int | None = None
    """Number of context switches; set on co-kernels, which do not count voluntary and involuntary ones
    separately.
    """
    mode_switches: int | None = None
    """How often a co-kernel moved the thread to Linux."""


class Distribution(Model):
    """Count, extremes, moments and quantiles of a set of values.

    `lower_bounds` names the fields that are only lower bounds, because the histogram overflowed. All values
    are None if `count` is 0.
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
    p99_999_ns: int | None = None
    """null in records that older versions of rtgauge wrote."""
    max_ns: int | None
    lower_bounds: list[str] = Field(default_factory=list[str])


class WarmUp(Model):
    """The warm-up phase."""

    count: int = 0
    missed: int = 0
    max_ns: int | None = None


class SeriesSummary(Distribution):
    """The summary of one series, or of all main series together if `series` is None."""

    series: int | None
    metric: str
    unit: str
    labels: dict[str, str | int]
    missed: int
    lost: int = 0
    impossible: int = 0
    exact_quantiles: bool
    """Whether the quantiles were calculated from raw samples and are exact; otherwise they come from the
    histogram and are at most 1 % too large.
    """
    filled: Distribution
    """The figures including missed activations; if none was missed, the same as the figures without them."""
    warm_up: WarmUp
    thread: ThreadCounts | None = None


class Outlier(Model):
    """One of the largest latencies, with its expected release time and its CPU."""

    series: int
    time_ns: int
    value_ns: int
    cpu: int | None


class TableLine(Model):
    """How much each CPU's column in a line of /proc/interrupts or /proc/softirqs grew. Columns that did not
    grow are left out; null means that the counter went backwards.
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
    """What changed on a target during a step. Only counters that grew are listed; null means that a counter
    went backwards. `unknown` means that a value could not be read.
    """

    interrupts: dict[str, TableLine] | Unknown = Field(default_factory=dict[str, TableLine])
    softirqs: dict[str, TableLine] | Unknown = Field(default_factory=dict[str, TableLine])
    counters: dict[str, int | Unknown] = Field(default_factory=dict[str, int | Unknown])
    """Counters of /proc/stat."""
    cpu_time_ns: dict[str, Growth] = Field(default_factory=dict[str, Growth])
    """Time that each CPU spent in user space, in the kernel and so on, from /proc/stat."""
    vmstat: Growth = Field(default_factory=Growth)
    temperature_millicelsius: dict[str, NumberChange] = Field(default_factory=dict[str, NumberChange])
    temperature_limit_millicelsius: dict[str, int] = Field(default_factory=dict[str, int])
    """Temperature of each thermal zone from which the kernel slows processors down."""
    frequency_khz: dict[str, NumberChange] = Field(default_factory=dict[str, NumberChange])
    """Frequency of each CPU."""
    energy_uj: Growth = Field(default_factory=Growth)
    """Energy that each processor package used, from RAPL."""
    throttle_counts: Growth = Field(default_factory=Growth)
    """How often each CPU or package was too hot."""
    throttle_time_ms: Growth = Field(default_factory=Growth)
    """How long each CPU or package was throttled by heat."""
    clock_source: TextChange | None = None
    online_cpus: TextChange | None = None


class RunSegment(Model):
    """An interval in which a task ran without interruption. Times count from the release of its task set."""

    task: str
    activation: int
    """Number of the activation; the first is 1."""
    start_ns: int
    end_ns: int


class TaskCounts(Model):
    """One task's counters in the measured phase. The task's times are in its series."""

    task: str
    cpu: int | None
    activations: int
    deadline_misses: int
    preemptions: int | None
    """How often the task was switched out involuntarily during its activations."""


class LoadPart(Model):
    """One program of a load, with its requested and reached rates."""

    program: str
    version: str | None = None
    argv: list[str]
    wanted: dict[str, Any] = Field(default_factory=dict)
    reached: dict[str, Any] = Field(default_factory=dict)
    ended_early: str | None = None
    """Why the program ended too early; None: it ran as long as it should."""


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

    `error` is None if the machine accepted the value. `put_back` is the result of restoring the old value.
    """

    path: SystemText
    """The setting: a file, or thread:TID:START:policy, group:DIR, ... (docs/formats/agent.md)."""
    old: SystemText | None
    wanted: SystemText
    now: SystemText | None
    error: str | None = None
    put_back: str | None = None
    """What became of the setting: restored, gone, left-changed-by-other, failed, ...; None: not yet restored.
    """


class DeploymentReport(Model):
    """A deployment as it was applied for a step and restored afterwards."""

    name: str
    words: str
    by: Literal["settings", "boot"] = "settings"
    """How the deployment was applied. settings: rtgauge changed settings. boot: rtgauge booted the machine
    with parameters, and changed only settings that have no boot parameter.
    """
    boot_words: str | None = None
    """Boot parameters of the deployment; null: rtgauge did not boot the machine for it."""
    recognised: str | None = None
    """Deployment that rtgauge recognised on the machine after the boot."""
    isolated: str = ""
    """CPUs that were isolated for measuring."""
    settings: list[SettingMade] = Field(default_factory=list[SettingMade])
    noted: int = 0
    """Number of settings that rtgauge noted and restored, because hotplug or moving tasks may change them."""
    moved: int = 0
    """How many tasks rtgauge moved off the isolated CPUs."""
    not_moved: list[SystemText] = Field(default_factory=list[SystemText])
    """First few of the tasks that could not be moved, each with the reason."""
    not_moved_count: int = 0
    not_put_back: list[SystemText] = Field(default_factory=list[SystemText])
    controller: bool = False
    """Whether rtgauge also set the priorities of its controller, of other real-time threads and of IRQ
    threads.
    """
    not_found: list[SystemText] = Field(default_factory=list[SystemText])
    """Devices named in `raise` that have no IRQ thread."""
    not_in_effect: list[str] = Field(default_factory=list[str])
    """Boot parameters of the deployment that this kernel does not know."""

    @property
    def refused(self) -> list[SettingMade]:
        """The settings whose new value the machine refused."""
        return [setting for setting in self.settings if setting.error is not None]


class Result(Model):
    """A result that is not a distribution, e.g. of `inversion`: name, labels and values."""

    name: str
    labels: dict[str, str | int] = Field(default_factory=dict)
    values: dict[str, bool | int | float | str | None]


OpenValues = Annotated[dict[str, Any], AfterValidator(check_parameters)]
"""A step's parameters, as an engine or another tool reports them."""
Clock = Annotated[dict[str, Any], AfterValidator(check_clock)]


class Peer(NamedTuple):
    """The target that plays the other role in a step with two roles."""

    role: str
    target: str


def _parameters(value: object, info: ValidationInfo) -> object:
    """Return a probe's own model unchanged; check values from a file by their names."""
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
    targets: dict[str, str]
    """Role -> target that plays it, e.g. {'self': 'local'}, or {'self': 'ssh://board', 'master': 'local'}."""
    repeat: int
    tool: str = "rtgauge"
    """'rtgauge', or the tool that cross-checks it: 'cyclictest', 'rtla', 'xenomai-latency',
    'xenomai-switchtest', 'rtai-latency', 'rtai-switches'.
    """

    @property
    def id(self) -> str:
        """The key's content as text: JSON with sorted names."""
        return self.id_without()

    def id_without(self, *names: str) -> str:
        """Return the id without these fields and parameters. Steps that differ only in them share this id."""
        fields = self.model_dump(mode="json", exclude=set(names))
        parameters = fields.get("parameters", {})
        fields["parameters"] = {name: parameters[name] for name in parameters if name not in names}
        return json.dumps(fields, sort_keys=True)

    @property
    def without_load(self) -> str:
        """The id without load, deployment, targets and repeat. Steps that differ only in these share it."""
        return self.id_without("load", "deployment", "targets", "repeat")

    def with_parameters(self, **values: Any) -> StepKey:
        """Return a copy of the key with these parameter values."""
        return self.model_copy(update={"parameters": self.parameters.but(**values)})

    def __eq__(self, other: object) -> bool:
        """Return whether both keys name the same step, even if they come from different places."""
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
        """The target that plays the other role; None if the step has only one target."""
        return next((Peer(role, target) for role, target in self.targets.items() if role != "self"), None)


class PeerReport(Model):
    """The other target of a step with two roles. Its own clock timed its measurements."""

    target: str
    role: str
    """The role that the peer played: master or slave."""
    parameters: OpenValues
    """Parameters with which the engine on the peer measured."""
    cpus: list[int]
    clock: Clock = Field(default_factory=dict)
    series: list[int]
    """Numbers of the step's series that the peer measured."""
    clock_offset_ns: int
    """Offset added to the peer's CLOCK_MONOTONIC, so that the peer's windows and outliers fit the target's
    clock; measured times do not contain it.
    """
    clock_uncertainty_ns: int
    """Largest possible error of clock_offset_ns: half the time that reading the clocks three times took."""


class ClockDriftReport(Model):
    """How much faster this machine's clock ran than the instrument's. No time is corrected for it."""

    ppm: float
    low_ppm: float
    """95 % interval of the drift."""
    high_ppm: float
    seconds: float
    """Length of the time over which the drift was estimated."""


class ExactFigures(Model):
    """Totals that the instrument keeps over all values, including values that its stream lost.

    None means that the instrument does not know the total.
    """

    count: int
    min_ns: float | None
    mean_ns: float | None
    std_ns: float | None
    max_ns: float | None


class InstrumentReport(Model):
    """The instrument that measured a step from outside, with a clock of its own."""

    address: str
    """Address of the instrument, as the user gave it: serial:/dev/ttyACM0 or latmon:board, for example."""
    id: str
    """Unique ID of the instrument's flash chip; for a latmon, its host and port."""
    firmware: str
    resolution_ns: float
    configuration: dict[str, Any]
    """The instrument's configuration."""
    series: list[int]
    """Numbers of the step's series that the instrument measured."""
    loopback_ns: tuple[float, float] | None = None
    """Smallest and largest latency of the instrument itself, measured without wires right before the step;
    None: not measured.
    """
    wire_offset_ns: int | None = None
    """Latency of the wires, from the parameter wire-offset; rtgauge never subtracts it."""
    counters: dict[str, int]
    """What the instrument counted in the measured phase."""
    exact: ExactFigures | None = None
    drift: ClockDriftReport | None = None
    """How fast the clock of the instrument drifted against the clock of the target; None: the step was too
    short for an estimate.
    """
    clock_offset_ns: int
    """CLOCK_MONOTONIC of the target when the clock of the instrument was 0; used only to place windows and
    outliers in time.
    """
    clock_uncertainty_ns: int
    """Largest possible error of clock_offset_ns: half the time that starting the instrument and reading the
    clocks took.
    """


class ExplainCost(Model):
    """The cost of recording kernel events, measured in the warm-up, in stretches alternately without and with
    events.
    """

    pairs: int
    """Number of stretches measured without events; each is compared with a neighbouring stretch with events.
    """
    without_ns: float
    """Mean over the medians of all stretches without events."""
    with_ns: float
    median_ns: float
    """Cost of recording: by how much the median with events is larger than without, on average over the
    pairs.
    """
    low_ns: float
    """Lower end of the 90 % confidence interval of the cost (so that the test for equivalence has an error of
    5 %).
    """
    high_ns: float
    bound_ns: int
    """Recording counts as free if the whole interval of the cost lies within this bound."""

    @property
    def is_equivalent(self) -> bool:
        """Whether two one-sided tests at 5 % show that the cost is within the bound."""
        return -self.bound_ns < self.low_ns and self.high_ns < self.bound_ns

    @property
    def words(self) -> str:
        """The cost in words: "costs 0.41 us at the median (0.30 to 0.52)", or "has an unknown cost: ..." if
        the interval includes 0.
        """
        between = f"{self.low_ns / 1000:.2f} to {self.high_ns / 1000:.2f}"
        if self.low_ns <= 0:
            return f"has an unknown cost: it changes the median by {between} us"
        return f"makes the median {self.median_ns / 1000:.2f} us longer ({between})"


SERVER_EVENT = "sched_dl_server_stop"
"""The event (engine/trace/tracepoints.c) at which a server of the scheduler stops."""


class ExplainReport(Model):
    """What was recorded to explain the largest latencies (moments.ndjson.gz)."""

    events: list[str]
    """The events that the kernel recorded, as group/event."""
    moments: int
    """Number of latencies whose events are in the file."""
    not_captured: dict[str, int]
    """Reason -> how many latencies are missing from the file for this reason."""
    copy_max_ns: int
    """Longest time that it took to copy the events of one latency, while the kernel went on recording."""
    buffer_kb: int
    cost: ExplainCost | None = None
    """What recording the events cost; None: too few samples to measure it."""

    @property
    def shows_servers(self) -> bool:
        """Whether the file shows if a server of the scheduler caused the largest latencies (since Linux 7.0).

        Only other latencies may be over the budget.
        """
        traced = any(event.endswith(f"/{SERVER_EVENT}") for event in self.events)
        return traced and set(self.not_captured) <= {"over_budget"}


STOPPED_EARLY = ("stopped", "died", "instrument-died")
"""End reasons of an unfinished step. A resumed run measures such a step again."""


class Step(Model):
    """The content of step.json: one probe with its parameters under one load in one deployment."""

    schema_version: int = SCHEMA_VERSION
    id: str
    """Name of the step's folder, e.g. 01-wakeup-idle."""
    key: StepKey
    tool: str
    """The measuring program and its version, such as 'rtgauge-engine 0.1.0' or 'cyclictest 2.40'."""
    engine_sha256: str | None = None
    """SHA-256 of the engine that measured; None: another tool measured."""
    boot_id: str | None = None
    """The kernel's boot_id during the step; None: another tool measured."""
    started: str
    """UTC, ISO 8601."""
    ended: str
    start_ns: int | None
    """CLOCK_MONOTONIC of the target when rtgauge let the engine begin (`go`)."""
    end_ns: int | None
    end_reason: str
    parameters: OpenValues
    """Every parameter with which the engine measured."""
    cpus: list[int]
    cpus_not_measured: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    clock: Clock = Field(default_factory=dict)
    calibrations: list[Calibration] = Field(default_factory=list[Calibration])
    load: LoadReport
    deployment: DeploymentReport | None = None
    """Deployment that rtgauge set for the step; None: it changed nothing."""
    peer: PeerReport | None = None
    """Target that played the other role; None: the step had only one target."""
    instrument: InstrumentReport | None = None
    """Instrument that measured from outside; None: the step was measured without one."""
    series: list[SeriesSummary]
    total: SeriesSummary | None
    """Summary of all series of the main metric together: of latency, or else of the metric of the first
    series; None if the step has no series.
    """
    outliers: list[Outlier]
    results: list[Result] = Field(default_factory=list[Result])
    """Results that are not distributions (docs/formats/stream.md, `result`)."""
    marks: list[Mark]
    explain: ExplainReport | None = None
    """How rtgauge recorded the events that explain the largest latencies; None: it recorded none."""
    tasks: list[TaskCounts] = Field(default_factory=list[TaskCounts])
    """For the probe taskset, the counts of each task, in the order of the set."""
    segments: list[RunSegment] = Field(default_factory=list[RunSegment])
    """For the probe taskset, when each task ran in the first hyperperiods."""
    changes: Changes = Field(default_factory=Changes)
    checksums: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each file in the folder of the step; empty in records that earlier versions of rtgauge
    wrote.
    """

    @property
    def main_series(self) -> list[SeriesSummary]:
        """The series that `total` combines: no segments (label `segment`), and no series of another role."""
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
        """Whether the target's or its peer's processor was emulated."""
        return MarkKind.EMULATED.is_in(self.marks)

    @property
    def worst(self) -> Severity | None:
        """The highest severity among the marks; None if there are no marks."""
        return worst_severity(mark.severity for mark in self.marks)

    def doubts_on(self, metric: str) -> list[Mark]:
        """Return the doubtful marks that concern this metric: all except marks on other metrics' series."""
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
    """How much the steps together measured against a bound, and which rate of violations that excludes."""

    activations: int
    violations: int
    """Number of samples that exceeded the bound, or may have."""
    runs: int
    boots: int
    """Boots during the run."""
    conditions: int
    """How many combinations of load, deployment and parameters were measured."""
    measured_s: float
    """How long the run measured, in seconds; 0: unknown, for example because an imported file does not say.
    """
    confidence: float
    share_excluded: float
    """The true share of violations is at most this value, at the confidence in `confidence`."""
    assumes_independence: bool = False
    """Whether share_excluded assumes that violations are independent; it does if the counts cannot show
    bursts.
    """
    between_runs: bool = False
    """Whether share_excluded takes differences between runs into account; otherwise it applies only to the
    measured runs.
    """
    per_hour_excluded: float | None
    """share_excluded expressed as violations per hour, on all CPUs together."""
    next_share: float
    """Next smaller power of ten below share_excluded."""
    next_s: float | None
    """How long to measure to exclude next_share, in seconds; None: unknown, or even a longer measurement
    cannot exclude it.
    """
    next_boards: int | None
    """How many boards would have to measure in parallel, each for as long as this measurement, to exclude
    next_share.
    """


class Verdict(Model):
    """The verdict on a requirement for one step, or for a whole run (`step` None: the worst verdict)."""

    word: VerdictWord
    requirement: str
    reason: str
    next: str
    """What to do next."""
    cause: str | None = None
    """What made activations late, if rtgauge could explain it."""
    step: str | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)
    exposure: Exposure | None = None
    """How much the run measured, and which share of violations this excludes; set only in the verdict on the
    whole run.
    """

    def untold(self, reason: str, following: str, **evidence: Any) -> Verdict:
        """Return "cannot tell" instead, for this reason, with what to do next and more evidence."""
        update = {"word": VerdictWord.CANNOT_TELL, "reason": reason, "next": following}
        return self.model_copy(update={**update, "evidence": {**self.evidence, **evidence}})


class Run(Model):
    """The content of run.json."""

    schema_version: int = SCHEMA_VERSION
    id: str
    created: str
    ended: str | None = None
    state: Literal["partial", "complete", "interrupted"]
    rtgauge: str
    """Version of rtgauge."""
    commit: str | None = None
    """Commit from which rtgauge was built, with "+" if its sources had changes; None: unknown."""
    command: list[SystemText]
    plan: dict[str, Any]
    targets: list[str]
    seed: int | None = None
    requirement: str | None = None
    verdicts: list[Verdict] = Field(default_factory=list[Verdict])
    steps: list[str] = Field(default_factory=list[str])
    """IDs of the finished steps, in the order in which they were measured."""
    planned: list[StepKey] = Field(default_factory=list[StepKey])
    """Every step of the plan, in the order in which they are measured."""
    left_out: list[LeftOut] = Field(default_factory=list[LeftOut])
    allow_left_out: bool = False
    """Whether the verdict may be `holds` even if a load or a step could not be measured."""
    marks: list[Mark] = Field(default_factory=list[Mark])


def kept_in_plan(run: Run, key: str, model: type[ModelT], what: str) -> ModelT | None:
    """Read the model that a record's plan keeps under a key; None if the key is missing.

    Raises RecordError if the content does not fit the model; `what` ends its message "its plan does not say
    ...".
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
    record: SystemText | None
    """The record's folder; None if nothing was kept."""
    outcome: str | None = None
    """Result in a word, of the verdict, the gate or the tuning; None if there is none."""
    answer: str | None = None
    """First line of the output on the terminal, without the word in `outcome`."""
