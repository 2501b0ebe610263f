# SPDX-License-Identifier: MIT
"""What the exporters say of a step: its name in words, its verdict, and its series in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.escape import one_line
from rtgauge.record.model import Severity, VerdictWord

if TYPE_CHECKING:
    from rtgauge.record.model import SeriesSummary, Step, Verdict
    from rtgauge.record.reader import Record

QUANTILES = {"p50_ns": "0.5", "p95_ns": "0.95", "p99_ns": "0.99", "p99_9_ns": "0.999", "p99_99_ns": "0.9999"}


def step_name(step: Step) -> str:
    """Probe, load, deployment and what else tells steps apart: "wakeup, idle, as-is"."""
    key = step.key
    parts = [key.probe, key.load, key.deployment, *([] if key.tool == "rtgauge" else [key.tool]), *([f"repeat {key.repeat}"] if key.repeat > 1 else [])]
    return one_line(", ".join(parts))


def series_name(series: SeriesSummary) -> str:
    """The labels of a series: "cpu 3, segment irq"; "all" for all together."""
    return one_line(", ".join(f"{name} {value}" for name, value in series.labels.items())) or "all"


def shown_series(step: Step) -> list[SeriesSummary]:
    """Each series, and the total where there is more than one."""
    return [*step.series, *([step.total] if step.total is not None and len(step.series) > 1 else [])]


def verdict_of(record: Record, step: Step) -> Verdict | None:
    """The verdict on a step; None where there is none."""
    return next((verdict for verdict in record.run.verdicts if verdict.step == step.id), None)


def failure_of(record: Record, step: Step) -> str | None:
    """Why a step does not pass: its verdict, or a mark that makes it invalid; None where it passes."""
    verdict = verdict_of(record, step)
    if verdict is not None and verdict.word is VerdictWord.FAILS:
        return one_line(f"{verdict.requirement}: {verdict.reason}")
    invalid = [mark for mark in step.marks if mark.severity is Severity.INVALID]
    return one_line("; ".join(f"{mark.name}: {mark.detail}" for mark in invalid)) if invalid else None


def undecided(record: Record, step: Step) -> str | None:
    """Why a requirement could not be judged; None where it could, or where there is none."""
    verdict = verdict_of(record, step)
    return one_line(f"{verdict.requirement}: {verdict.reason}") if verdict is not None and verdict.word is VerdictWord.CANNOT_TELL else None


def microseconds(ns: float | None) -> str:
    """A time in us, to the ns; empty where it is unknown."""
    return "" if ns is None else f"{ns / 1000:.3f}"
