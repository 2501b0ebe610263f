# SPDX-License-Identifier: MIT
"""Writes OpenMetrics text for the textfile collector of Prometheus' node_exporter.

Times are in seconds, and lower bounds have the label `bound`. The label of a quantile is `p`, because
`quantile` belongs to the type summary, which needs a sum (promtool check metrics).
"""

from __future__ import annotations

from datetime import datetime

from rtgauge.escape import one_line
from rtgauge.exporters.exporter import Exporter
from rtgauge.exporters.step_figures import (
    failure_of,
    missed_of,
    run_checks,
    shown_series,
    verdict_of,
)
from rtgauge.record.model import SeriesSummary, Step
from rtgauge.record.quantiles import QUANTILES, times_longer
from rtgauge.record.reader import Record

FAMILIES = {
    "rtgauge_quantile_seconds": "A quantile of a measured time; the label p says which.",
    "rtgauge_min_seconds": "Smallest measured time.",
    "rtgauge_max_seconds": "Largest measured time.",
    "rtgauge_samples": "Measured activations.",
    "rtgauge_missed": "Missed activations.",
    "rtgauge_passes": (
        "1 if the step meets its requirement; 0 if it fails, is marginal or invalid, or if rtgauge cannot "
        "tell."
    ),
    "rtgauge_run_passes": "1 if the whole run passes (exit status 0), otherwise 0.",
    "rtgauge_left_out": "Number of loads and steps of the plan that could not be measured.",
    "rtgauge_step_end_timestamp_seconds": "When the step ended.",
}


def _labels(labels: dict[str, str]) -> str:
    escaped = {
        name: one_line(value).replace("\\", r"\\").replace('"', r"\"") for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"


def _of_step(record: Record, step: Step) -> dict[str, str]:
    host = next(iter(step.key.targets.values()), "local")
    return {
        "record": record.run.id,
        "step": step.id,
        "probe": step.key.probe,
        "load": step.key.load,
        "deployment": step.key.deployment,
        "target": host,
    }


def _of_series(series: SeriesSummary) -> dict[str, str]:
    return {"metric": series.metric, "series": "all" if series.series is None else str(series.series)} | {
        f"label_{''.join(c if c.isascii() and c.isalnum() else '_' for c in name)}": str(value)
        for name, value in series.labels.items()
    }


def openmetrics(record: Record) -> bytes:
    """Return the record as OpenMetrics text."""
    samples: dict[str, list[str]] = {name: [] for name in FAMILIES}

    def add(family: str, labels: dict[str, str], value: float) -> None:
        samples[family].append(f"{family}{_labels(labels)} {value!r}")

    for step in record.steps:
        about = _of_step(record, step)
        for series in shown_series(step):
            labels = about | _of_series(series)

            def bound(field: str, series: SeriesSummary = series) -> dict[str, str]:
                return {"bound": "lower"} if field in series.lower_bounds else {}

            for field, share in QUANTILES.items():
                value = getattr(series, field)
                if value is not None and times_longer(field, series.count) is None:
                    add(
                        "rtgauge_quantile_seconds",
                        labels | {"p": str(float(share))} | bound(field),
                        value / 1e9,
                    )
            for family, field in (("rtgauge_min_seconds", "min_ns"), ("rtgauge_max_seconds", "max_ns")):
                if (value := getattr(series, field)) is not None:
                    add(family, labels | bound(field), value / 1e9)
            add("rtgauge_samples", labels, series.count)
            if (missed := missed_of(step, series)) is not None:
                add("rtgauge_missed", labels, missed)
        if verdict_of(record, step) is not None or failure_of(record, step) is not None:
            add("rtgauge_passes", about, int(failure_of(record, step) is None))
        try:
            add("rtgauge_step_end_timestamp_seconds", about, datetime.fromisoformat(step.ended).timestamp())
        except (ValueError, OverflowError):
            continue
    about = {"record": record.run.id}
    failures = [failure_of(record, step) for step in record.steps] + [
        check.failure for check in run_checks(record)
    ]
    add("rtgauge_run_passes", about, int(not any(failures)))
    add("rtgauge_left_out", about, len(record.run.left_out))
    lines: list[str] = []
    for family, help_text in FAMILIES.items():
        if samples[family]:
            unit = [f"# UNIT {family} seconds"] if family.endswith("_seconds") else []
            lines += [f"# TYPE {family} gauge", *unit, f"# HELP {family} {help_text}", *samples[family]]
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


OPENMETRICS = Exporter(make=openmetrics)
