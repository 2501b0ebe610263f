# SPDX-License-Identifier: MIT
"""Makes steps and runs from plain lists of latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.model import LoadReport, Mark, Run, Severity, Step, StepKey
from rtgauge.record.summary import summarise_step

from .windows import info, row, windows_of

if TYPE_CHECKING:
    from rtgauge.record.windows import Windows


def mark(name="throttled", severity=Severity.INVALID, detail="why"):
    return Mark(name=name, severity=severity, detail=detail)


def step(
    latencies,
    *,
    missed=(),
    name="01-wakeup-idle",
    interval_ns=1_000_000,
    load="idle",
    marks=(),
    parameters=None,
    metric="latency",
) -> tuple[Step, Windows]:
    """`latencies`: one list, or one list a CPU."""
    series = latencies if latencies and isinstance(latencies[0], list) else [latencies]
    windows = windows_of(
        *(row(values, series=n, missed=missed if n == 0 else ()) for n, values in enumerate(series))
    )
    summary = summarise_step(windows, [info(n, metric) for n in range(len(series))])
    parameters = {"interval_ns": interval_ns, **(parameters or {})}
    return Step(
        id=name,
        key=StepKey(
            probe="wakeup",
            parameters=parameters,
            load=load,
            deployment="as-is",
            targets={"self": "local"},
            repeat=0,
        ),
        tool="rtgauge-engine 0.1.0",
        started="2026-11-21T10:03:22Z",
        ended="2026-11-21T10:03:32Z",
        start_ns=0,
        end_ns=10**10,
        end_reason="duration",
        parameters=parameters,
        cpus=list(range(len(series))),
        load=LoadReport(name=load),
        series=summary.series,
        total=summary.total,
        outliers=[],
        marks=[*marks, *summary.marks],
    ), windows


def run(record="r", steps=(), state="partial") -> Run:
    return Run(
        id=record, created="2026-11-21T10:03:22Z", state=state, rtgauge="0.1.0", command=["rtgauge", "run"],
        plan={"name": "quick"}, targets=["local"],
        steps=list(steps),
    )  # fmt: skip
