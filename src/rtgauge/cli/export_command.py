# SPDX-License-Identifier: MIT
"""`rtgauge export` writes statistics for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli import completion
from rtgauge.cli.extension_options import AddedValues, ForExport
from rtgauge.cli.shared_options import AllowLeftOut, Require, grouped, option
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.nearest_name import nearest


@grouped
def export(
    *,
    record: Annotated[
        Path, typer.Argument(metavar="RECORD", autocompletion=completion.records, help="A record's folder.")
    ],
    form: Annotated[
        str,
        option(
            "NAME",
            "csv, json, parquet, junit, kcidb, markdown, openmetrics, perfetto or trace.dat.",
            "--format",
        ),
    ] = "csv",
    out: Annotated[
        Path | None,
        option(
            "FILE",
            "File to write (required for parquet and trace.dat); default: standard output.",
            "--out",
            "-o",
        ),
    ] = None,
    step: Annotated[str | None, option("ID", "Only this step, e.g. 01-wakeup-idle.", "--step")] = None,
    require: Require = None,
    allow_left_out: AllowLeftOut = False,
    windows: Annotated[
        bool, typer.Option("--windows", help="Export the windows with their histograms (parquet only).")
    ] = False,
    added: AddedValues,
) -> None:
    """Export the statistics of a record for other tools.

    csv, parquet: one row per step and CPU, with its conditions and all statistics. json: the whole
    document. junit: one test case per step. openmetrics: metrics for node_exporter's textfile collector.
    markdown: the tables. kcidb: results for kernel CI (KCIDB). trace.dat, perfetto: the kernel's events
    around the largest latencies of one explained step; open trace.dat with trace-cmd or KernelShark, and
    perfetto with ui.perfetto.dev.

    \b
    Examples:
      rtgauge export RECORD > statistics.csv
      rtgauge export RECORD --format json
      rtgauge export RECORD --format junit -o rtgauge.xml
      rtgauge export latest --format junit --require "latency<=200us"
      rtgauge export RECORD --format parquet --windows -o windows.parquet
      rtgauge export RECORD --format trace.dat --step 01-wakeup-idle -o trace.dat

      rtgauge export RECORD --format kcidb --kernel-tree ~/linux --origin mylab

    Exit status: 0; with --require or --allow-left-out, the same as rtgauge run.
    """
    from rtgauge.cli.command_end import judged
    from rtgauge.cli.record_argument import open_record, with_one_step
    from rtgauge.exporters.record_export import GONE, formats
    from rtgauge.exporters.record_export import export as write
    from rtgauge.verdict.exit_status import exit_status

    if form in GONE:
        raise InputError(f"rtgauge cannot write {form} any more; use {GONE[form]}")
    if form not in formats():
        raise InputError(
            f"unknown format '{form}'{from_where('exporters', form) or nearest(form, formats())}"
        )
    source = with_one_step(judged(open_record(record), require, allow_left_out=allow_left_out), step)
    exporters = (group.exporter(form) for group in added.of(ForExport))
    exporter = next((known_exporter for known_exporter in exporters if known_exporter is not None), None)
    text = write(source, form, out, windows=windows, exporter=exporter)
    if text is not None:
        typer.echo(text, nl=False)
    if require is not None or allow_left_out:
        verdicts = (
            source.run.verdicts
            if step is None
            else [verdict for verdict in source.run.verdicts if verdict.step == step]
        )
        raise typer.Exit(exit_status(verdicts, source.steps))
