# SPDX-License-Identifier: MIT
"""Exports a record as a tidy table (CSV, Parquet), a document (JSON), or in another program's format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rtgauge import extension
from rtgauge.errors import InputError, RecordError
from rtgauge.escape import escaped
from rtgauge.exporters.exporter import Exporter
from rtgauge.exporters.step_figures import missed_of
from rtgauge.record.files import clear_errors, for_polars, whole_file, write_whole
from rtgauge.record.model import Distribution, SeriesSummary, Step, ThreadCounts, WarmUp
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    import polars as pl

GONE = {
    "cyclictest": "parquet with --windows, which has every histogram",
    "hdr": "parquet with --windows, which has every histogram",
    "latex": "csv, or markdown, which pandoc turns into LaTeX",
    "lava": "the exit status of rtgauge run in LAVA's lava-test-case (docs/jobs.md)",
    "tap": "junit",
}
"""What to use instead of each format that earlier versions wrote."""


_NESTED = {"filled", "warm_up", "thread", "labels", "lower_bounds"}


def _key(record: str, step: Step) -> dict[str, Any]:
    return {
        "record": record,
        "step": step.id,
        "probe": step.key.probe,
        "load": step.key.load,
        "deployment": step.key.deployment,
        "target": ",".join(f"{role}={target}" for role, target in sorted(step.key.targets.items())),
        "repeat": step.key.repeat,
        "tool": step.tool,
        "key_parameters": json.dumps(step.key.model_dump(mode="json")["parameters"], sort_keys=True),
        "parameters": json.dumps(step.parameters, sort_keys=True),
        "started": step.started,
        "marks": ";".join(f"{mark.severity}:{mark.name}" for mark in step.marks),
        "worst_mark": step.worst,
    }


def _figures(summary: SeriesSummary) -> dict[str, Any]:
    row: dict[str, Any] = {
        "series": summary.series,
        "all_cpus": summary.series is None,
        "cpu": summary.labels.get("cpu") if isinstance(summary.labels.get("cpu"), int) else None,
        "labels": json.dumps(summary.labels, sort_keys=True),
    }
    row |= {
        name: value
        for name, value in summary.model_dump().items()
        if name not in _NESTED and name != "series"
    }
    row["lower_bounds"] = ";".join(summary.lower_bounds)
    row |= {
        f"filled_{name}": value for name, value in summary.filled.model_dump(exclude={"lower_bounds"}).items()
    }
    row["filled_lower_bounds"] = ";".join(summary.filled.lower_bounds)
    row |= {f"warm_up_{name}": value for name, value in summary.warm_up.model_dump().items()}
    row |= {
        f"thread_{name}": value for name, value in (summary.thread or ThreadCounts()).model_dump().items()
    }
    return row


def _columns() -> dict[str, Any]:
    """Return the polars type of each column by name. All records have the same columns."""
    import polars as pl

    figures: dict[str, Any] = {
        name: pl.Float64 if name in {"mean_ns", "std_ns"} else pl.Int64
        for name in Distribution.model_fields
        if name != "lower_bounds"
    }
    text, whole, yes_no = pl.String, pl.Int64, pl.Boolean
    key = dict.fromkeys(("record", "step", "probe", "load", "deployment", "target"), text) | {"repeat": whole}
    key |= dict.fromkeys(("tool", "key_parameters", "parameters", "started", "marks", "worst_mark"), text)
    series = {"series": whole, "all_cpus": yes_no, "cpu": whole, "labels": text, "metric": text, "unit": text}
    counts = {"lower_bounds": text} | dict.fromkeys(("missed", "lost", "impossible"), whole)
    filled = {f"filled_{name}": kind for name, kind in figures.items()} | {"filled_lower_bounds": text}
    parts = [f"warm_up_{name}" for name in WarmUp.model_fields]
    parts += [f"thread_{name}" for name in ThreadCounts.model_fields]
    return (
        key | series | figures | counts | {"exact_quantiles": yes_no} | filled | dict.fromkeys(parts, whole)
    )


def table(record: Record) -> pl.DataFrame:
    """Return a row with key and statistics for each series of each step, and for all CPUs (`series` null)."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for step in record.steps:
        summaries = [*step.series, *([] if step.total is None else [step.total])]
        rows += [
            _key(record.run.id, step) | _figures(summary) | {"missed": missed_of(step, summary)}
            for summary in summaries
        ]
    return pl.DataFrame(rows, schema=_columns())


def windows_table(record: Record) -> pl.LazyFrame:
    """Return the windows of all steps, with the step's id as the first column. Raises RecordError for a
    damaged record.
    """
    import polars as pl

    frames = [
        record.all_windows(step).select(pl.lit(step.id).alias("step"), pl.all()) for step in record.steps
    ]
    return (
        pl.concat(frames, how="vertical")
        if frames
        else pl.LazyFrame({"step": pl.Series([], dtype=pl.String)})
    )


def _write_windows(record: Record, out: Path) -> None:
    """Write the windows as Parquet. Raises RecordError for a damaged record, OSError if writing fails."""
    import polars as pl

    with whole_file(out) as file:
        try:
            with for_polars(file) as writer:
                windows_table(record).sink_parquet(writer)
        except pl.exceptions.PolarsError as error:
            raise RecordError(
                f"the windows of {record.path} cannot be read ({error}): the record is damaged"
            ) from None


def _csv(record: Record) -> bytes:
    return escaped(table(record).write_csv()).encode()


def _parquet(record: Record) -> bytes:
    buffer = io.BytesIO()
    table(record).write_parquet(buffer)
    return buffer.getvalue()


CSV = Exporter(make=_csv)
JSON = Exporter(make=lambda record: f"{record.document().model_dump_json(indent=1)}\n".encode())
PARQUET = Exporter(make=_parquet, binary=True)


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(extension.registered("exporters"))


def export(
    record: Record, fmt: str, out: Path | None, *, windows: bool = False, exporter: Exporter | None = None
) -> str | None:
    """Write the record in one of `formats` to `out`, or return the text if `out` is None (not for Parquet and
    trace.dat).

    `windows` (Parquet only): export the windows instead of the statistics. `exporter`: used instead of the
    format's. Raises InputError if the format does not fit the options or the record, MeasureError if the disk
    is full, RecordError for a damaged record.
    """
    exporter = exporter or cast("Exporter", extension.load("exporters", fmt, Exporter))
    if windows and fmt != "parquet":
        raise InputError(f"{fmt} cannot contain the windows; use --format parquet with --windows")
    if out is None and exporter.binary:
        raise InputError(f"{fmt} is binary, so it needs a file; give one with -o FILE")
    if windows and out is not None:
        with clear_errors(out, option="-o", kind="file"):
            _write_windows(record, out)
        return None
    data = exporter.make(record)
    if out is None:
        return data.decode()
    with clear_errors(out, option="-o", kind="file"):
        write_whole(out, data)
    return None
