# SPDX-License-Identifier: MIT
"""Writes a whole record made of drawn numbers, so that what reads records can be tested without measuring."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.record.histogram import bin_of
from rtgauge.record.model import (
    Calibration,
    Distribution,
    LeftOut,
    LoadPart,
    LoadReport,
    Mark,
    Outlier,
    Run,
    SeriesSummary,
    Severity,
    Step,
    StepKey,
    ThreadCounts,
    Verdict,
    VerdictWord,
    WarmUp,
)
from rtgauge.record.quantiles import TITLES
from rtgauge.record.windows import Windows
from rtgauge.record.windows_file import write_windows
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9
INTERVAL_NS = 1_000_000


CHANGES: dict[str, Any] = {
    "interrupts": {
        "LOC": {"name": "Local timer interrupts", "total": 12_130, "per_cpu": {"0": 6_010, "1": 6_120}},
        "24": {"name": "virtio0-net", "total": 311, "per_cpu": {"1": 311}},
        "ERR": {"name": "", "total": None, "per_cpu": {}},
    },
    "softirqs": {"TIMER": {"name": "", "total": 5_900, "per_cpu": {"0": 3_000, "1": 2_900}}},
    "counters": {"context_switches": 24_018, "interrupts": 12_441, "processes_created": 0},
    "cpu_time_ns": {
        "0": {"user": 5_430_000_000, "idle": 0, "steal": 10_000_000},
        "1": {"user": 5_440_000_000, "idle": 0, "steal": 0},
    },
    "vmstat": {},
    "frequency_khz": {
        "0": {"before": 3_000_000, "after": 3_400_000},
        "1": {"before": 3_000_000, "after": 3_000_000},
    },
    "clock_source": {"before": "tsc", "after": "tsc"},
}


@dataclass
class Shape:
    """What a drawn record is like; the defaults give a healthy one of 2 CPUs and three loads."""

    cpus: tuple[int, ...] = (0, 1)
    loads: tuple[str, ...] = ("idle", "cpu", "memory")
    repeats: int = 1
    seconds: int = 5
    warm_up_seconds: int = 1
    host: str = "board-7"
    system: dict[str, Any] = field(default_factory=dict)
    verdict: VerdictWord | None = VerdictWord.FAILS
    missed_under: tuple[str, ...] = ("memory",)
    marks: bool = True
    left_out: bool = True
    state: str = "complete"
    seed: int = 1
    sigma: float = 0.35
    alternate: tuple[str, str] | None = None
    """Two sides alternately: the odd repeats are of the first."""
    factors: tuple[float, ...] = ()
    """What each repeat multiplies the median by."""
    median_ns: dict[str, float] = field(
        default_factory=lambda: {"idle": 6_000, "cpu": 9_000, "memory": 14_000}
    )


def distribution(values: np.ndarray) -> Distribution:
    """The figures of `values` (ns), exact, quantiles by nearest rank."""
    if not len(values):
        return Distribution(**dict.fromkeys(TITLES), count=0)
    ordered = np.sort(values)

    def quantile(share: float) -> int:
        return int(ordered[max(0, int(np.ceil(share * len(ordered))) - 1)])

    return Distribution(
        count=len(ordered),
        min_ns=int(ordered[0]),
        mean_ns=float(ordered.mean()),
        std_ns=float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0,
        p50_ns=quantile(0.5),
        p95_ns=quantile(0.95),
        p99_ns=quantile(0.99),
        p99_9_ns=quantile(0.999),
        p99_99_ns=quantile(0.9999),
        p99_999_ns=quantile(0.99999),
        max_ns=int(ordered[-1]),
    )


def _sparse(values: np.ndarray) -> tuple[list[int], list[int]]:
    bins, counts = (
        np.unique(bin_of(values), return_counts=True)
        if len(values)
        else (np.array([], int), np.array([], int))
    )
    return bins.tolist(), counts.tolist()


@dataclass
class _Drawn:
    """One series as drawn: latencies (ns), their release times, and what the missed activations would have
    had.
    """

    values: np.ndarray
    releases: np.ndarray
    missed: np.ndarray
    missed_releases: np.ndarray


def _draw(rng: np.random.Generator, shape: Shape, load: str, start_ns: int, factor: float) -> _Drawn:
    total = (shape.seconds + shape.warm_up_seconds) * SECOND // INTERVAL_NS
    values = np.maximum(
        900, rng.lognormal(np.log(shape.median_ns.get(load, 10_000) * factor), shape.sigma, total)
    ).astype(np.int64)
    tail = rng.choice(total, size=max(1, total // 700), replace=False)
    values[tail] += rng.lognormal(np.log(60_000), 0.7, len(tail)).astype(np.int64)
    if load in shape.missed_under:
        values[int(total * 0.6)] = 3_400_000 + int(rng.integers(0, 500_000))
    keep = np.ones(total, dtype=bool)
    missed: list[int] = []
    missed_releases: list[int] = []
    for at in np.flatnonzero(values > INTERVAL_NS):
        for j in range(1, int((values[at] - 1) // INTERVAL_NS) + 1):
            if at + j < total:
                keep[at + j] = False
                missed.append(int(values[at]) - j * INTERVAL_NS)
                missed_releases.append(start_ns + int(at + j) * INTERVAL_NS)
    releases = start_ns + np.arange(total, dtype=np.int64) * INTERVAL_NS
    return _Drawn(
        values[keep],
        releases[keep],
        np.array(missed, dtype=np.int64),
        np.array(missed_releases, dtype=np.int64),
    )


def _windows(series: int, drawn: _Drawn, start_ns: int, shape: Shape) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(shape.warm_up_seconds + shape.seconds):
        begin = start_ns + number * SECOND
        warm = number < shape.warm_up_seconds
        values = drawn.values[(drawn.releases >= begin) & (drawn.releases < begin + SECOND)]
        missed = drawn.missed[(drawn.missed_releases >= begin) & (drawn.missed_releases < begin + SECOND)]
        bins, counts = _sparse(values)
        missed_bins, missed_counts = _sparse(missed)
        rows.append(
            {
                "series": series,
                "phase": "warm-up" if warm else "measure",
                "index": number if warm else number - shape.warm_up_seconds,
                "start_ns": begin,
                "end_ns": begin + SECOND,
                "count": len(values),
                "missed": len(missed),
                "min_ns": int(values.min()) if len(values) else None,
                "max_ns": int(values.max()) if len(values) else None,
                "sum_ns": int(values.sum()),
                "m2_ns2": float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0,
                "bins": bins,
                "counts": counts,
                "missed_bins": missed_bins,
                "missed_counts": missed_counts,
            }
        )
    return rows


def _summary(
    series: int | None, cpu: int | None, plain: np.ndarray, missed: np.ndarray, warm: WarmUp
) -> SeriesSummary:
    thread = ThreadCounts(
        voluntary_switches=len(plain),
        involuntary_switches=3,
        minor_faults=0,
        major_faults=0,
        run_delay_ns=120_000,
        cpu_ns=50_000_000,
    )
    return SeriesSummary(
        **distribution(plain).model_dump(),
        series=series,
        metric="latency",
        unit="ns",
        labels={} if cpu is None else {"cpu": cpu},
        missed=len(missed),
        exact_quantiles=True,
        filled=distribution(np.concatenate([plain, missed])),
        warm_up=warm,
        thread=None if cpu is None else thread,
    )


def _load_report(load: str, start_ns: int, end_ns: int) -> LoadReport:
    if load == "idle":
        return LoadReport(name="idle")
    part = LoadPart(
        program="stress-ng",
        version="0.17.06",
        argv=["stress-ng", "--cpu", "2", "--cpu-method", "all"],
        wanted={"cpu_share": 1.0},
        reached={"cpu_share": 0.973, "bogo_ops_per_s": 1234.5},
    )
    return LoadReport(
        name=load,
        parts=[part],
        notes=["no real network card is in the path"] if load == "network" else [],
        started_ns=start_ns - SECOND,
        warm_ns=start_ns,
        ended_ns=end_ns,
    )


def _step(
    shape: Shape, number: int, load: str, *, repeat: int, begin_ns: int, rng: np.random.Generator
) -> tuple[Step, Windows]:
    end_ns = begin_ns + (shape.warm_up_seconds + shape.seconds) * SECOND
    measure_from = begin_ns + shape.warm_up_seconds * SECOND
    rows: list[dict[str, Any]] = []
    series: list[SeriesSummary] = []
    outliers: list[Outlier] = []
    all_plain: list[np.ndarray] = []
    all_missed: list[np.ndarray] = []
    warm_total = WarmUp()
    for index, cpu in enumerate(shape.cpus):
        factor = shape.factors[repeat - 1] if shape.factors else 1.0
        drawn = _draw(rng, shape, load, begin_ns, factor)
        rows += _windows(index, drawn, begin_ns, shape)
        measured = drawn.releases >= measure_from
        plain, missed = drawn.values[measured], drawn.missed[drawn.missed_releases >= measure_from]
        warm_values = drawn.values[~measured]
        warm = WarmUp(
            count=len(warm_values),
            missed=len(drawn.missed) - len(missed),
            max_ns=int(warm_values.max()) if len(warm_values) else None,
        )
        warm_total = WarmUp(
            count=warm_total.count + warm.count,
            missed=warm_total.missed + warm.missed,
            max_ns=max(warm_total.max_ns or 0, warm.max_ns or 0) or None,
        )
        series.append(_summary(index, cpu, plain, missed, warm))
        all_plain.append(plain)
        all_missed.append(missed)
        releases = drawn.releases[measured]
        outliers += [
            Outlier(series=index, time_ns=int(releases[i]), value_ns=int(plain[i]), cpu=cpu)
            for i in np.argsort(plain)[::-1][:10]
        ]
    step_id = f"{number:02d}-wakeup-{load}" + (f"-{repeat}" if shape.repeats > 1 else "")
    marks: list[Mark] = []
    if shape.marks and load == "cpu":
        marks.append(
            Mark(
                name="throttled",
                severity=Severity.DOUBTFUL,
                detail=(
                    "the measuring thread on CPU 1 was preempted 41 times: real-time throttling "
                    "(sched_rt_runtime_us)"
                ),
                series=1 if len(shape.cpus) > 1 else 0,
            )
        )
    if shape.marks and load == "memory":
        marks.append(
            Mark(name="steal", severity=Severity.NOTE, detail="the hypervisor took 0.3 % of the time")
        )
    step = Step(
        id=step_id,
        key=StepKey(
            probe="wakeup",
            parameters={"interval_ns": INTERVAL_NS},
            load=load,
            deployment="as-is",
            targets={"self": "local"},
            repeat=repeat,
        ),
        tool="rtgauge-engine 0.1.0",
        started=f"2026-11-21T10:{number:02d}:00Z",
        ended=f"2026-11-21T10:{number:02d}:30Z",
        start_ns=begin_ns,
        end_ns=end_ns,
        end_reason="duration",
        parameters={
            "interval_ns": INTERVAL_NS,
            "policy": "fifo",
            "priority": 95,
            "timer": "nanosleep",
            "phase": "random",
            "warm_up_ns": shape.warm_up_seconds * SECOND,
        },
        cpus=list(shape.cpus),
        cpus_not_measured=[{"cpu": max(shape.cpus) + 1, "reason": "offline"}],
        clock={
            "name": "CLOCK_MONOTONIC",
            "resolution_ns": 1,
            "cost_min_ns": 20,
            "cost_p50_ns": 21,
            "cost_mean_ns": 21.3,
            "cost_p99_ns": 30,
            "cost_max_ns": 900,
            "cost_count": 10000,
        },
        calibrations=[
            Calibration(
                clock="CLOCK_MONOTONIC",
                resolution_ns=1,
                count=100_000,
                min_ns=20,
                p50_ns=21,
                p99_ns=30,
                mean_ns=21.2,
                max_ns=812,
                smallest_step_ns=1,
                bins=[(20, 100_000)],
            ),
            Calibration(
                clock="CLOCK_TAI",
                resolution_ns=None,
                count=0,
                min_ns=None,
                p50_ns=None,
                p99_ns=None,
                mean_ns=None,
                max_ns=None,
                smallest_step_ns=None,
                error="not known to this kernel",
            ),
        ],
        load=_load_report(load, begin_ns, end_ns),
        series=series,
        total=_summary(None, None, np.concatenate(all_plain), np.concatenate(all_missed), warm_total),
        outliers=sorted(outliers, key=lambda o: -o.value_ns)[:10],
        marks=marks,
        changes=CHANGES,
    )
    return step, Windows.of_rows(rows)


def _verdicts(word: VerdictWord, steps: list[Step], requirement: str) -> list[Verdict]:
    texts = {
        VerdictWord.HOLDS: (
            "30,000 activations, none above 200 us",
            "measure longer to support a rarer bound: rtgauge run --duration 1h",
        ),
        VerdictWord.MARGINAL: (
            "the largest latency is 182 us, 91 % of the bound",
            "measure longer, under the load that your machine has",
        ),
        VerdictWord.FAILS: (
            "under memory 38 of 10,000 activations were later than 200 us; the worst took 3.7 ms",
            "try a kernel with PREEMPT_RT: this one is PREEMPT_DYNAMIC",
        ),
        VerdictWord.CANNOT_TELL: (
            "10,000 activations without a violation show 99.97 % at 95 % confidence, not 99.999 %",
            "measure for at least 5 minutes: --duration 5m",
        ),
    }
    reason, following = texts[word]
    evidence = {"bound_ns": 200_000, "period_ns": INTERVAL_NS}
    overall = Verdict(
        word=word, requirement=requirement, reason=reason, next=following, step=None, evidence=evidence
    )
    each = [
        Verdict(
            word=word if s is steps[-1] else VerdictWord.HOLDS,
            requirement=requirement,
            reason=reason,
            next=following,
            step=s.id,
            evidence=evidence,
        )
        for s in steps
    ]
    return [overall, *each]


def write_record(parent: Path, shape: Shape | None = None) -> Path:
    """Write the record that `shape` describes into a new folder in `parent`; its path."""
    shape = shape or Shape()
    rng = np.random.default_rng(shape.seed)
    folder = parent / f"2026-11-21T10-03-22Z-record-quick-{shape.seed:04x}"
    steps: list[Step] = []
    begin_ns = 5_000 * SECOND
    for repeat in range(1, shape.repeats + 1):
        for load in shape.loads:
            step, windows = _step(shape, len(steps) + 1, load, repeat=repeat, begin_ns=begin_ns, rng=rng)
            place = folder / "steps" / step.id
            place.mkdir(parents=True)
            (place / "step.json").write_text(step.model_dump_json(indent=2), encoding="utf-8")
            with (place / "windows.parquet").open("wb") as file:
                write_windows(windows, file)
            steps.append(step)
            begin_ns += (shape.warm_up_seconds + shape.seconds + 3) * SECOND
    facts = {
        "host": shape.host,
        "os": "Debian GNU/Linux 12 (bookworm)",
        "kernel": {
            "release": "6.1.0-18-amd64",
            "preemption": {"model": "dynamic", "sources": {"/sys/kernel/realtime": "unknown"}},
            "hz": 250,
        },
        "cpu": {
            "model": "AMD EPYC 7763 64-Core Processor",
            "online": format_cpu_list([*shape.cpus]),
            "isolated": "",
        },
        "memory": {"total_bytes": 25_276_514_304},
        "clock_source": {"current": "kvm-clock", "available": ["kvm-clock", "tsc"]},
        "machine": {
            "virtual": True,
            "hypervisor": "kvm",
            "emulated": False,
            "evidence": ["/proc/cpuinfo: flag hypervisor"],
        },
        **shape.system,
    }
    system = folder / "targets" / "local"
    system.mkdir(parents=True, exist_ok=True)
    (system / "system.json").write_text(json.dumps(facts), encoding="utf-8")
    requirement = "period=1ms latency<=200us hardness=100%"
    run = Run(
        id=folder.name,
        created="2026-11-21T10:03:22Z",
        ended="2026-11-21T10:04:25Z",
        state=shape.state,  # pyright: ignore[reportArgumentType]
        rtgauge="0.1.0",
        command=["rtgauge", "run", "quick"],
        plan={"name": "quick", **({"alternate": {"sides": shape.alternate}} if shape.alternate else {})},
        targets=["local"],
        seed=42,
        requirement=requirement if shape.verdict else None,
        verdicts=_verdicts(shape.verdict, steps, requirement) if shape.verdict and steps else [],
        steps=[step.id for step in steps],
        planned=[step.key for step in steps],
        left_out=[
            LeftOut(what="load network", reason="iperf3 is not installed", remedy="apt-get install iperf3")
        ]
        if shape.left_out
        else [],
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(run.model_dump_json(indent=2), encoding="utf-8")
    return folder
