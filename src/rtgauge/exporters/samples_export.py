# SPDX-License-Identifier: MIT
"""Exports raw samples in CSV, Parquet or the engine's own format."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from rtgauge.record.files import clear_errors, for_polars, whole_file
from rtgauge.record.record_folder import Source, open_source
from rtgauge.record.samples import SamplesHeader, read_samples, read_times

TABLES = (".csv", ".parquet")


def samples_table(source: Source) -> pl.DataFrame:
    """Return a row per sample: cpu, phase, release_ns (CLOCK_MONOTONIC) and latency_ns; or, if the samples
    have times of their own, series, cpu, phase, time_ns and value_ns.
    """
    header, values = read_samples(source)
    times = read_times(source) if header.timed else _releases(header, values)
    phase = np.where(times < header.start_ns + header.warm_up_ns, "warm-up", "measure")
    names = ("time_ns", "value_ns") if header.timed else ("release_ns", "latency_ns")
    series = pl.lit(header.series, dtype=pl.UInt32).alias("series")
    cpu = pl.lit(header.cpu, dtype=pl.Int32).alias("cpu")
    table = pl.DataFrame({"phase": phase, names[0]: times, names[1]: values})
    return table.select(*([series] if header.timed else []), cpu, "phase", *names)


def _releases(
    header: SamplesHeader, latencies: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the release time (ns) of every sample, shape (n,). It is later by an interval for each
    activation that was missed before.
    """
    missed = np.where(latencies > header.interval_ns, (latencies - 1) // header.interval_ns, 0)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(missed + 1)[:-1]]) if len(latencies) else missed
    return header.start_ns + before * header.interval_ns


def export_samples(files: Mapping[int, Source], out: Path) -> list[Path]:
    """Write the samples of every series (series -> its file) to `out` in the format of its suffix. Return the
    files written.

    `.csv` and `.parquet` give one table. Any other suffix is the engine's own format, one file per series:
    `out` itself for one series, otherwise `out` with `-0`, `-1`, ... before the suffix. Raises InputError if
    a file cannot be written, MeasureError if the disk is full.
    """
    with clear_errors(out, option="--samples", kind="file"):
        if out.suffix in TABLES:
            table = pl.concat([samples_table(files[series]) for series in sorted(files)])
            with whole_file(out) as whole, for_polars(whole) as file:
                if out.suffix == ".csv":
                    table.write_csv(file)
                else:
                    table.write_parquet(file)
            return [out]
        targets = {
            series: out if len(files) == 1 else out.with_name(f"{out.stem}-{series}{out.suffix}")
            for series in sorted(files)
        }
        for series, target in targets.items():
            with open_source(files[series]) as source, whole_file(target) as file:
                shutil.copyfileobj(source, file)
        return [*targets.values()]
