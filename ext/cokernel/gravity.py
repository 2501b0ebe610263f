# SPDX-License-Identifier: MIT
"""Presents calibrate on Cobalt: the gravity of Xenomai's timer before and after autotune."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console

from rtgauge.probe.calibrate import AFTER, BEFORE, GRAVITY, PROBE
from rtgauge.record.model import Result, Step
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.step_tables import series_table
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import us, whole


def _results(step: Step, name: str) -> list[Result]:
    return [result for result in step.results if result.name == name]


def _gravity(step: Step, role: str) -> str:
    """Return the gravity in words: "1.0 us irq, 4.0 us kernel, 4.5 us user"."""
    of_role = [result for result in _results(step, "gravity") if result.labels.get("role") == role]
    values = [pair for result in of_role for pair in result.values.items()]
    known = [(name.removesuffix("_ns"), ns if isinstance(ns, int) else None) for name, ns in values]
    return ", ".join(f"{us(ns)} us {name}" for name, ns in known)


def _tuned(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that ran Xenomai's autotune."""
    return [step for step in steps if _results(step, "autotune")]


def _mean_ns(step: Step, role: str) -> float | None:
    """Return the mean latency (ns) over all CPUs in this role; None without values."""
    of_role = (summary for summary in step.series if summary.labels.get("role") == role)
    series = [summary for summary in of_role if summary.mean_ns is not None]
    count = sum(summary.count for summary in series)
    return sum((summary.mean_ns or 0.0) * summary.count for summary in series) / count if count else None


def _left(step: Step) -> str:
    """Return, in words, which gravity is in force after the step."""
    if any(result.values.get("kept") for result in _results(step, "autotune")):
        return "the new gravity stays until the next boot"
    lines = step.deployment.not_put_back if step.deployment is not None else []
    failed = next((line for line in lines if line.startswith(GRAVITY)), None)
    if failed is not None:
        return f"the previous gravity could not be restored ({failed})"
    return "the previous gravity was restored"


def _sentence(step: Step) -> str:
    """Return a sentence with the gravity that autotune found, and its effect on the latency."""
    means = [_mean_ns(step, role) for role in (BEFORE, AFTER)]
    effect = (
        ""
        if None in means
        else f"; the mean latency was {us(means[0])} us before and {us(means[1])} us after"
    )
    return (
        f"autotune changed the gravity from {_gravity(step, BEFORE)} to {_gravity(step, AFTER)}{effect}; "
        f"{_left(step)}"
    )


def gravity_grid(view: RecordView, steps: Sequence[Step]) -> Table | None:
    """Return the table of the gravity before and after autotune; None if autotune did not run."""
    names = view.labels
    rows = [
        [
            f"{names[step.id]}, {PROBE.shown.roles.get(str(result.labels.get('role')), '')}",
            *(whole(ns if isinstance(ns, int) else None) for ns in result.values.values()),
        ]
        for step in _tuned(steps)
        for result in _results(step, "gravity")
    ]
    meaning = (
        "Xenomai's timer fires earlier than a release, by the gravity. It has one value each for interrupt "
        "handlers (irq), tasks in the kernel and tasks in user space. If it is too large, latencies are "
        "negative."
    )
    columns = [*texts(""), *numbers("irq", "kernel", "user")]
    return Table("Gravity of Xenomai's timer (ns)", columns, rows, [meaning]) if rows else None


class GravityPresenter(Presenter):
    """Presents Xenomai's timer in two tables."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """Return the result of autotune; None if it did not run."""
        return "; ".join(_sentence(step) for step in _tuned(steps)) or None

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return the chapter on Xenomai's timer; None if autotune did not run."""
        grid = gravity_grid(view, steps)
        if grid is None:
            return None
        latencies = [series_table(step, view.labels[step.id]) for step in _tuned(steps)]
        measured = "what Xenomai's autotune does to the latency"
        return Chapter("gravity", "Calibration of Xenomai's timer", [grid, *latencies], measured)

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the gravity. The summary gives the latencies."""
        grid = gravity_grid(view, steps)
        print_tables([] if grid is None else [grid], console)


GRAVITY_PRESENTER = GravityPresenter()
