# SPDX-License-Identifier: MIT
"""Describes a step for all exporters: its name in words, its verdict, and its series in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rtgauge.escape import one_line
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import SeriesSummary, Severity, Step, Verdict, VerdictWord
from rtgauge.record.reader import Record


def step_name(step: Step) -> str:
    """Return a distinct name for a step from its probe, load, deployment and so on: "wakeup, idle, as-is"."""
    key = step.key
    parts = [
        key.probe,
        key.load,
        key.deployment,
        *([] if key.tool == "rtgauge" else [key.tool]),
        *([f"repeat {key.repeat}"] if key.repeat > 1 else []),
    ]
    return one_line(", ".join(parts))


def series_name(series: SeriesSummary) -> str:
    """Return the labels of a series, such as "cpu 3, segment irq"; "all" for all series together."""
    return one_line(", ".join(f"{name} {value}" for name, value in series.labels.items())) or "all"


def shown_series(step: Step) -> list[SeriesSummary]:
    """Return all series, and the total if there are several."""
    return [*step.series, *([step.total] if step.total is not None and len(step.series) > 1 else [])]


def missed_of(step: Step, series: SeriesSummary) -> int | None:
    """Return the number of missed activations of a series; None if the tool did not count them."""
    return None if series.missed == 0 and MarkKind.MISSED_UNKNOWN.is_in(step.marks) else series.missed


def missed_text(step: Step, series: SeriesSummary) -> str:
    """Return the number of missed activations of a series, in words."""
    missed = missed_of(step, series)
    return "unknown" if missed is None else str(missed)


def verdict_of(record: Record, step: Step) -> Verdict | None:
    """Return the verdict on a step; None if there is none."""
    return next((verdict for verdict in record.run.verdicts if verdict.step == step.id), None)


def failure_of(record: Record, step: Step) -> str | None:
    """Return why a step fails: the reason of its verdict, or the marks that make it invalid. None if it
    passes or is not judged.
    """
    verdict = verdict_of(record, step)
    if verdict is not None and verdict.word is not VerdictWord.HOLDS:
        return one_line(f"{verdict.word.value}: {verdict.requirement}: {verdict.reason}")
    invalid = [mark for mark in step.marks if mark.severity is Severity.INVALID]
    return one_line("; ".join(f"{mark.name}: {mark.detail}" for mark in invalid)) if invalid else None


def not_judged(record: Record, step: Step) -> str | None:
    """Return why a step was not judged; None if it was judged or there is no requirement."""
    if (
        not record.run.verdicts
        or verdict_of(record, step) is not None
        or failure_of(record, step) is not None
    ):
        return None
    return one_line(f"{record.run.verdicts[0].requirement} does not apply to what this step measured")


@dataclass(frozen=True)
class RunCheck:
    """A check of a whole run. `failure`: why it failed; `skipped`: why it was skipped."""

    name: str
    failure: str | None = None
    skipped: str | None = None

    @property
    def result(self) -> Literal["pass", "fail", "skip"]:
        """The outcome of the check."""
        if self.failure is not None:
            return "fail"
        return "pass" if self.skipped is None else "skip"


def run_checks(record: Record) -> list[RunCheck]:
    """Return checks of the requirement on the whole run, of each item left out, and of the run's completion.
    If the run exits with 0, all checks and all steps pass.

    An item left out fails, unless the requirement allows it; then it is skipped. There are no checks if only
    some of the run's steps are exported.
    """
    run = record.run
    if len(record.steps) < len(run.steps):
        return []
    whole = next((verdict for verdict in run.verdicts if verdict.step is None), None)
    checks: list[RunCheck] = []
    if whole is not None:
        failure = None if whole.word is VerdictWord.HOLDS else one_line(f"{whole.word.value}: {whole.reason}")
        checks.append(RunCheck(one_line(f"requirement {whole.requirement}"), failure))
    needed = whole is not None and not run.allow_left_out
    for item in run.left_out:
        reason = one_line(f"left out: {item.reason}")
        checks.append(RunCheck(one_line(item.what), reason if needed else None, None if needed else reason))
    if run.state != "complete":
        checks.append(
            RunCheck(
                "the run is complete",
                f"{run.state}: {len(run.steps)} of {len(run.planned)} planned steps finished",
            )
        )
    return checks


def microseconds(ns: float | None) -> str:
    """Return a time in us, to the ns; empty if unknown."""
    return "" if ns is None else f"{ns / 1000:.3f}"
